package kernel

import (
	"math"
	"testing"
)

// SinkSoftmax must give the weights of the fused kernel, also for sinks that aren't finite: NaN for +Inf and NaN, and
// the usual softmax for −Inf.
func TestSinkSoftmax(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	scores := []float64{0, math.Log(2), math.Inf(-1)}
	for _, tt := range []struct {
		sink float64
		want [3]float64
	}{{0, [3]float64{0.25, 0.5, 0}}, {-inf, [3]float64{1. / 3, 2. / 3, 0}}, {2000, [3]float64{}}, {inf, [3]float64{nan, nan, 0}}, {nan, [3]float64{nan, nan, 0}}} {
		w := make([]float64, 3)
		SinkSoftmax(1, w, scores, []float64{tt.sink}, 1, 3)
		for j, want := range tt.want {
			if x := w[j]; !(math.Abs(x-want) < 1e-15 || x != x && want != want) {
				t.Errorf("sink %v: the weights are %v, want %v", tt.sink, w, tt.want)
				break
			}
		}
	}
}
