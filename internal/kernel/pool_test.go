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
	MeanRows(out, x, counts, 3, 2)
	if want := []float32{2, 4, 0, 0, 3, 6}; !slices.Equal(out, want) {
		t.Errorf("got %v, want %v", out, want)
	}
	dx := slices.Repeat([]float32{nan}, len(x))
	MeanRowsGrad(dx, []float32{2, 4, nan, 5, 3, -6}, counts, 3, 2)
	if want := []float32{1, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, -2, 1, -2, 1, -2}; !slices.Equal(dx, want) {
		t.Errorf("gradient %v, want %v", dx, want)
	}
}
