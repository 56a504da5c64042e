package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestMeanRows(t *testing.T) {
	nan := float32(math.NaN())
	x := []float32{
		1, 2, 3, 6, nan, nan,
		nan, nan, nan, nan, nan, nan,
		1, 2, 3, 4, 5, 12,
	}
	counts := []int{2, 0, 3}
	out := []float32{nan, nan, nan, nan, nan, nan}
	MeanRows(0, out, x, counts, 3, 2)
	if want := []float32{2, 4, 0, 0, 3, 6}; !slices.Equal(out, want) {
		t.Errorf("got %v, want %v", out, want)
	}
	dx := slices.Repeat([]float32{nan}, len(x))
	MeanRowsGrad(dx, []float32{2, 4, nan, 5, 3, -6}, counts, 3, 2)
	if want := []float32{1, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, -2, 1, -2, 1, -2}; !slices.Equal(dx, want) {
		t.Errorf("gradient %v, want %v", dx, want)
	}
}

func TestRepeat(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	y := make([]float64, 18)
	Repeat(0, y, x, 2, 3)
	if want := []float64{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 5, 6, 5, 6, 5, 6}; !slices.Equal(y, want) {
		t.Errorf("got %v, want %v", y, want)
	}
	for i := range y {
		y[i] += float64(i % 6)
	}
	sum := make([]float64, 6)
	SumRepeats(0, sum, y, 2, 3)
	if want := []float64{9, 15, 15, 21, 21, 27}; !slices.Equal(sum, want) {
		t.Errorf("sums are %v, want %v", sum, want)
	}
}
