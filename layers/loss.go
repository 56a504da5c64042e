package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
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
	return ops.CrossEntropy(b.Env(), logits, targets, ops.CrossEntropyOptions(o))
}

// BinaryCrossEntropy returns the weighted mean of −t·log σ(x) − (1 − t)·log(1 − σ(x)), in nats, over logits x and
// targets t: a scalar. Both have one shape, of one axis or more, and one dtype. Each number is a question of its own,
// whose target is the chance that the answer is yes, mostly 0 or 1. It is computed from the logits, so that none is too
// large: a gradient is σ(x) − t times the number's part in the mean.
//
// Weights, if not nil, have the logits' dtype and their shape or its first axes: of logits (B, T, D) they weigh every
// number, or have shape (B, T) and weigh positions, or (B) and weigh examples. The loss is Σ w·loss / Σ w over all
// numbers. What has a weight of 0 counts nowhere: it may be NaN, and its gradient is 0. If all weights are 0, so is the
// loss. When the graph runs, it is an error if a weight is negative, infinite or NaN, or if a target that counts isn't
// from 0 to 1.
//
// The gradient reaches the logits. Targets and weights have none: they are taken as given.
func BinaryCrossEntropy(b *Build, logits, targets, weights *G.Node) (*G.Node, error) {
	return ops.MeanDistance(b.Env(), kernel.BinaryCrossEntropy, 0, logits, targets, weights)
}

// MeanSquaredError returns the weighted mean of (x − t)², over outputs x and targets t: a scalar. Shapes, dtypes and
// weights are those of BinaryCrossEntropy; targets may be any number, and the gradient reaches them too.
func MeanSquaredError(b *Build, outputs, targets, weights *G.Node) (*G.Node, error) {
	return ops.MeanDistance(b.Env(), kernel.SquaredError, 0, outputs, targets, weights)
}

// MeanAbsoluteError returns the weighted mean of |x − t|, whose derivative at x = t is 0. Otherwise it is like
// MeanSquaredError.
func MeanAbsoluteError(b *Build, outputs, targets, weights *G.Node) (*G.Node, error) {
	return ops.MeanDistance(b.Env(), kernel.AbsoluteError, 0, outputs, targets, weights)
}

// HuberError returns the weighted mean of (x − t)²/2 where |x − t| ≤ δ, and of δ·(|x − t| − δ/2) elsewhere (Huber,
// 1964, Robust estimation of a location parameter): an outlier pulls no harder than something at a distance of delta.
// delta must be above 0 and at most 1e15. Otherwise it is like MeanSquaredError.
func HuberError(b *Build, outputs, targets, weights *G.Node, delta float64) (*G.Node, error) {
	if !(delta > 0 && delta <= ops.Largest) {
		return nil, fmt.Errorf("huber error: delta must be above 0 and at most %v, got %v; 1 is usual for targets of about unit size", ops.Largest, delta)
	}
	return ops.MeanDistance(b.Env(), kernel.HuberError, delta, outputs, targets, weights)
}
