package metrics

import (
	"math"
	"testing"
)

// Equal scores are answered together, and NaN, the lowest of all, equals itself.
func TestAveragePrecision(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		scores []float64
		right  []bool
		want   float64
	}{
		{[]float64{3, 1, 2}, []bool{true, true, false}, (1 + 2.0/3) / 2},
		{[]float64{1, 1, 2, 1}, []bool{true, false, false, true}, 0.5},
		{[]float64{nan, 5, nan}, []bool{false, true, true}, (1 + 2.0/3) / 2},
		{[]float64{1}, []bool{false}, nan},
		{nil, nil, nan},
	} {
		if got := AveragePrecision(test.scores, test.right); math.Abs(got-test.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(test.want) {
			t.Errorf("%v, %v: got %v, want %v", test.scores, test.right, got, test.want)
		}
	}
}
