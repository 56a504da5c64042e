package task

import (
	"math"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// TestLossFromStates compares the validation loss and accuracy of the kinds text and mlm, which training computes
// without all logits, with those from logits.
func TestLossFromStates(t *testing.T) {
	for _, name := range []string{"text", "mlm"} {
		task := fitted(t, small(t, name))
		problem := task.Problem()
		got := must.Get(train.Evaluate(t.Context(), problem))(t)
		problem.Loss = func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			last := len(inputs) - 1
			logits, err := task.Network.Forward(b, inputs[:last])
			if err != nil {
				return layers.Loss{}, nil, err
			}
			loss, err := layers.CrossEntropy(b, logits, inputs[last], layers.CrossEntropyOptions{})
			if err != nil {
				return layers.Loss{}, nil, err
			}
			accuracy, err := train.Accuracy(b, logits, inputs[last])
			return loss, []train.Metric{accuracy}, err
		}
		want := must.Get(train.Evaluate(t.Context(), problem))(t)
		for _, value := range []string{"val_loss", "val_accuracy"} {
			if !(math.Abs(got[value]-want[value]) <= 1e-6*want[value]) {
				t.Errorf("%s: %s is %v, want %v", name, value, got[value], want[value])
			}
		}
	}
}
