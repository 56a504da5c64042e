package layers

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// Ignore marks a target that CrossEntropy leaves out. Any negative target is left out.
const Ignore = -1

// CrossEntropy is the mean over positions of −log softmax(logits)[target], in nats: a scalar. The logits have shape
// (…, V), the targets the same without V and dtype tensor.Int. A negative target, such as Ignore, counts neither in the
// sum nor in the mean, and nothing at its position has a gradient; with every target ignored the loss is 0. A target of
// V or more is an error when the graph runs.
func CrossEntropy(logits, targets *G.Node) (*G.Node, error) {
	if err := checkFloat("cross-entropy", "the logits", logits); err != nil {
		return nil, err
	}
	if targets == nil {
		return nil, fmt.Errorf("cross-entropy: the targets are nil")
	}
	s := logits.Shape()
	if len(s) < 2 {
		return nil, fmt.Errorf("cross-entropy: the logits must have shape (…, V), a row for every target, got %v", s)
	}
	if targets.Dtype() != tensor.Int || !slices.Equal(targets.Shape(), s[:len(s)-1]) {
		return nil, fmt.Errorf("cross-entropy: the targets must be int of shape %v, got %v of shape %v", s[:len(s)-1], targets.Dtype(), targets.Shape())
	}
	return ops.CrossEntropy(logits, targets)
}
