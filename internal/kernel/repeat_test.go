package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestRepeat(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	y := make([]float64, 18)
	Repeat(y, x, 2, 3)
	if want := []float64{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 5, 6, 5, 6, 5, 6}; !slices.Equal(y, want) {
		t.Errorf("got %v, want %v", y, want)
	}
	for i := range y {
		y[i] += float64(i % 6)
	}
	sum := make([]float64, 6)
	SumRepeats(sum, y, 2, 3)
	if want := []float64{9, 15, 15, 21, 21, 27}; !slices.Equal(sum, want) {
		t.Errorf("sums are %v, want %v", sum, want)
	}
}

func TestMaskScores(t *testing.T) {
	negInf := math.Inf(-1)
	m := Mask[float64]{Shape: [4]int{1, 1, 2, 4}, Causal: true, Offset: 1, Bias: []float64{0.5, negInf, 1, 1}, BiasShape: [4]int{1, 1, 1, 4}}
	scores := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	got := make([]float64, len(scores))
	MaskScores(got, scores, m)
	if want := []float64{1.5, negInf, negInf, negInf, 5.5, negInf, 8, negInf}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
