package train_test

import (
	"math"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// The values are scikit-learn's for the first six rows. The last row doesn't count.
func TestLabelMetrics(t *testing.T) {
	nan := math.NaN()
	targets := []float64{1, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, nan, nan, nan}
	var logits []float64
	for _, p := range []float64{.9, .2, .4, .3, .8, .4, .6, .3, .1, .55, .5, .4, .2, .1, .3, .6, .6, .2, nan, nan, nan} {
		logits = append(logits, math.Log(p/(1-p)))
	}
	want := map[string]float64{"micro_f1": 0.5714285714285714, "macro_f1": 0.41269841269841273, "average_precision": 0.7141483516483518, "subset_accuracy": 1. / 6}
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		g := newMetricGraph(t, dt)
		metrics := must.Get(train.LabelMetrics(&layers.Build{}, g.floats(logits, 7, 3), g.floats(targets, 7, 3), g.floats([]float64{1, 1, 1, 1, 1, 1, 0}, 7)))(t)
		for _, m := range metrics {
			if got := g.value(m); math.Abs(got-want[m.Name]) > 1e-9 {
				t.Errorf("%v: %s is %v, want %v", dt, m.Name, got, want[m.Name])
			}
		}
		if len(metrics) != len(want) {
			t.Errorf("got %d metrics, want %d", len(metrics), len(want))
		}
		_, err := train.LabelMetrics(&layers.Build{}, g.floats(logits, 21), g.floats(targets, 21), nil)
		must.Fail(t, err, "the logits must have shape (B, V), got (21)")
	}
}
