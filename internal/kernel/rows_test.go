package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestSumRows checks sums of any number of rows. If 100,000 rows were added up in order, the sum in float32 would be
// wrong by 1e-3.
func TestSumRows(t *testing.T) {
	for _, rows := range []int{0, 1, 2, 15, 16, 17, 31, 32, 33, 47, 50, 100, 1000, 4097, 100000} {
		for _, w := range []int{1, 3, 130} {
			if rows*w > 400000 {
				continue
			}
			m := normals[float32](1, rows*w)
			sum, want := normals[float32](2, w), make([]float64, w)
			for i := range m {
				m[i] += 3
				want[i%w] += float64(m[i])
			}
			SumRows(0, sum, m)
			for i, v := range sum {
				if math.Abs(float64(v)-want[i]) > 3e-7*want[i] {
					t.Errorf("the sum of %d rows is %v in column %d of %d, want %v", rows, v, i, w, want[i])
				}
			}
		}
	}
}

func TestMeanRows(t *testing.T) {
	nan := float32(math.NaN())
	x := []float32{
		1, 2, 3, 6, nan, nan,
		nan, nan, nan, nan, nan, nan,
		1, 2, 3, 4, 5, 12,
		nan, nan, 7, 8, nan, nan,
	}
	spans := []Span{{0, 2}, {}, {0, 3}, {1, 2}}
	out := slices.Repeat([]float32{nan}, 8)
	MeanRows(0, out, x, spans, 3, 2)
	if want := []float32{2, 4, 0, 0, 3, 6, 7, 8}; !slices.Equal(out, want) {
		t.Errorf("got %v, want %v", out, want)
	}
	dx := slices.Repeat([]float32{nan}, len(x))
	MeanRowsGrad(dx, []float32{2, 4, nan, 5, 3, -6, 7, 8}, spans, 3, 2)
	if want := []float32{1, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, -2, 1, -2, 1, -2, 0, 0, 7, 8, 0, 0}; !slices.Equal(dx, want) {
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
