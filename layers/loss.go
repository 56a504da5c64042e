package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
)

// Ignore is a target that CrossEntropy leaves out. It leaves out all negative targets.
const Ignore = -1

// CrossEntropyOptions change what CrossEntropy computes. The zero value changes nothing.
type CrossEntropyOptions struct {
	// Weights holds a weight for each position, with the targets' shape and the logits' dtype. nil means 1 for each.
	Weights *G.Node

	// ClassWeights holds V numbers, at least 0 and finite as float32. The weight of a position is multiplied by the
	// number for its target class. nil means 1 for each.
	//
	// Without LabelSmoothing it is like the argument weight of torch.nn.CrossEntropyLoss. With LabelSmoothing, PyTorch
	// weights every class's share of a target separately; here the whole loss of a position has the weight of its
	// target class.
	ClassWeights []float64

	// LabelSmoothing, ε, from 0 to 1, is the part of every target that is spread evenly over all V classes, so that a
	// model gains nothing from ever greater certainty (Szegedy et al., 2016, section 7). The loss of a position is then
	// −Σ q·log softmax(logits), with q = (1 − ε)·onehot(target) + ε/V.
	//
	// With smoothing, every class counts: a logit of −Inf makes the loss infinite unless its position is ignored.
	// Without smoothing, only a −Inf at the target does. Gradients stay finite.
	LabelSmoothing float64
}

// CrossEntropy returns the weighted mean over positions of −log softmax(logits)[target], in nats: a scalar. The logits
// have shape (…, V), and the targets have the same shape without V and dtype tensor.Int. If wᵢ is the weight of
// position i times the weight of its target class, the loss is Σ wᵢ·lossᵢ / Σ wᵢ.
//
// A negative target, such as Ignore, has weight 0. A position with weight 0 doesn't count: its logits may be NaN, its
// target may be no class, and its gradient is 0. If all weights are 0, the loss is 0. When the graph runs, it is an
// error if a weight is negative, infinite or NaN, or if a target with a weight above 0 is V or more.
//
// Only the logits have a gradient.
func CrossEntropy(b *Build, logits, targets *G.Node, o CrossEntropyOptions) (*G.Node, error) {
	return ops.CrossEntropy(b.Env(), logits, targets, ops.CrossEntropyOptions(o))
}

// BinaryCrossEntropy returns the weighted mean of −t·log σ(x) − (1 − t)·log(1 − σ(x)), in nats, over logits x and
// targets t: a scalar. Logits and targets have the same dtype and the same shape, with at least one axis. Each element
// is a separate yes-or-no question, and its target is the probability of yes, usually 0 or 1. The loss is computed from
// the logits directly, so it doesn't overflow. The gradient of an element is (σ(x) − t)·w / Σ w.
//
// Weights, if not nil, have the logits' dtype, and their shape or its first axes. For logits (B, T, D), weights (B, T,
// D) weight elements, weights (B, T) weight positions, and weights (B) weight examples. The loss is Σ w·loss / Σ w over
// all elements. An element with weight 0 doesn't count: it may be NaN, and its gradient is 0. If all weights are 0, the
// loss is 0. When the graph runs, it is an error if a weight is negative, infinite or NaN, or if the target of an
// element with a weight above 0 isn't from 0 to 1.
//
// Only the logits have a gradient.
func BinaryCrossEntropy(b *Build, logits, targets, weights *G.Node) (*G.Node, error) {
	return ops.MeanDistance(b.Env(), kernel.BinaryCrossEntropy, 0, logits, targets, weights)
}

// MeanSquaredError returns the weighted mean of (x − t)² over outputs x and targets t: a scalar. Shapes, dtypes and
// weights follow the rules of BinaryCrossEntropy. Targets may be any number, and have a gradient too.
func MeanSquaredError(b *Build, outputs, targets, weights *G.Node) (*G.Node, error) {
	return ops.MeanDistance(b.Env(), kernel.SquaredError, 0, outputs, targets, weights)
}

// MeanAbsoluteError returns the weighted mean of |x − t|, whose derivative at x = t is 0. Otherwise it is like
// MeanSquaredError.
func MeanAbsoluteError(b *Build, outputs, targets, weights *G.Node) (*G.Node, error) {
	return ops.MeanDistance(b.Env(), kernel.AbsoluteError, 0, outputs, targets, weights)
}

// HuberError returns the weighted mean of (x − t)²/2 where |x − t| ≤ δ, and of δ·(|x − t| − δ/2) elsewhere (Huber,
// 1964, Robust estimation of a location parameter). The gradient of an outlier is never larger than at distance δ. The
// argument delta is δ; it must be above 0 and at most 1e15. Otherwise it is like MeanSquaredError.
func HuberError(b *Build, outputs, targets, weights *G.Node, delta float64) (*G.Node, error) {
	if !(delta > 0 && delta <= ops.Largest) {
		return nil, fmt.Errorf("huber error: delta must be above 0 and at most %v, got %v; 1 is usual for targets of about unit size", ops.Largest, delta)
	}
	return ops.MeanDistance(b.Env(), kernel.HuberError, delta, outputs, targets, weights)
}
