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

// CrossEntropy returns the mean over positions of −log softmax(logits)[target], in nats: a scalar. The logits have
// shape (…, V), the targets the same without V and dtype tensor.Int. A negative target, such as Ignore, counts neither
// in the sum nor in the mean, and nothing at its position has a gradient; with every target ignored the loss is 0. A
// target of V or more is an error when the graph runs.
func CrossEntropy(b *Build, logits, targets *G.Node) (*G.Node, error) {
	return CrossEntropyWith(b, logits, targets, CrossEntropyOptions{})
}

// CrossEntropyOptions change what CrossEntropyWith computes; the zero value is CrossEntropy.
type CrossEntropyOptions struct {
	// LabelSmoothing, from 0 to 1, is the share ε of every target that is spread evenly over the V classes, the
	// target's own among them, so that a model gains nothing by being ever more certain (Szegedy et al., 2016, section
	// 7). The loss of a position is then −Σ q·log softmax(logits), with q = (1 − ε)·onehot(target) + ε/V.
	//
	// Every class counts then: a logit of −Inf at a position that isn't ignored makes the loss infinite, where without
	// smoothing only a target's own does. Gradients stay finite.
	LabelSmoothing float64
}

// CrossEntropyWith computes CrossEntropy with options.
func CrossEntropyWith(b *Build, logits, targets *G.Node, o CrossEntropyOptions) (*G.Node, error) {
	const name = "cross-entropy"
	if err := ops.CheckFloat(name, "the logits", logits); err != nil {
		return nil, err
	}
	if targets == nil {
		return nil, fmt.Errorf("%s: the targets are nil", name)
	}
	s := logits.Shape()
	if len(s) < 2 {
		return nil, fmt.Errorf("%s: the logits must have shape (…, V), a row for every target, got %v", name, s)
	}
	if targets.Dtype() != tensor.Int || !slices.Equal(targets.Shape(), s[:len(s)-1]) {
		return nil, fmt.Errorf("%s: the targets must be int of shape %v, got %v of shape %v", name, s[:len(s)-1], targets.Dtype(), targets.Shape())
	}
	if e := o.LabelSmoothing; !(e >= 0 && e <= 1) {
		return nil, fmt.Errorf("%s: LabelSmoothing must be from 0 to 1, got %v", name, e)
	}
	return ops.CrossEntropy(b.env(), logits, targets, o.LabelSmoothing)
}
