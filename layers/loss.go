package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Ignore marks a target that CrossEntropy leaves out. Any negative target is left out.
const Ignore = -1

// CrossEntropyOptions change what CrossEntropy computes. The zero value changes nothing.
type CrossEntropyOptions struct {
	// Weights is how much each position counts: of the targets' shape and the logits' dtype. nil stands for 1 each.
	Weights *G.Node

	// ClassWeights is how much a position with a target of each class counts: V numbers, finite as a float32 and at
	// least 0. It multiplies Weights. nil stands for 1 each.
	//
	// Without LabelSmoothing it is the weight of torch.nn.CrossEntropyLoss. With it, PyTorch weighs every class's share
	// of a target by itself; here the whole loss of a position has the weight of its target's class.
	ClassWeights []float64

	// LabelSmoothing, from 0 to 1, is the share ε of every target that is spread evenly over the V classes, the
	// target's own among them, so that a model gains nothing by being ever more certain (Szegedy et al., 2016, section
	// 7). The loss of a position is then −Σ q·log softmax(logits), with q = (1 − ε)·onehot(target) + ε/V.
	//
	// Every class counts then: a logit of −Inf at a position that isn't ignored makes the loss infinite, where without
	// smoothing only a target's own does. Gradients stay finite.
	LabelSmoothing float64
}

// CrossEntropy returns the weighted mean over positions of −log softmax(logits)[target], in nats: a scalar. The logits
// have shape (…, V), the targets the same without V and dtype tensor.Int. With wᵢ the weight of a position times that
// of its target's class, the loss is Σ wᵢ·lossᵢ / Σ wᵢ.
//
// A negative target, such as Ignore, has a weight of 0. A position whose weight is 0 counts nowhere: its logits may be
// NaN and its target no class, and its gradient is 0. If all weights are 0, so is the loss. When the graph runs, it is
// an error if a weight is negative, infinite or NaN, or if a target that counts is V or more.
//
// The gradient reaches the logits. Weights have none: they are taken as given.
func CrossEntropy(b *Build, logits, targets *G.Node, o CrossEntropyOptions) (*G.Node, error) {
	return ops.CrossEntropy(b.env(), logits, targets, ops.CrossEntropyOptions(o))
}
