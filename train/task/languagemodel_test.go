package task

import (
	"math"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// TestTextLossFromStates compares the validation loss and accuracy of a text model, which training computes without all
// logits, with those from logits.
func TestTextLossFromStates(t *testing.T) {
	task := fitted(t, small(t, "text"))
	problem := task.Problem()
	got, err := train.Evaluate(t.Context(), problem)
	if err != nil {
		t.Fatal(err)
	}
	problem.Loss = func(b *layers.Build, inputs G.Nodes) (*G.Node, []train.Metric, error) {
		logits, err := task.network.forward(b, inputs[:1])
		if err != nil {
			return nil, nil, err
		}
		loss, err := layers.CrossEntropy(b, logits, inputs[1], layers.CrossEntropyOptions{})
		if err != nil {
			return nil, nil, err
		}
		accuracy, err := train.Accuracy(b, logits, inputs[1])
		return loss, []train.Metric{accuracy}, err
	}
	want, err := train.Evaluate(t.Context(), problem)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"val_loss", "val_accuracy"} {
		if !(math.Abs(got[name]-want[name]) <= 1e-6*want[name]) {
			t.Errorf("%s is %v, want %v", name, got[name], want[name])
		}
	}
}
