package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
)

// A Loss is the mean over the targets of a batch, with the number that it divides by. A mean over several batches is
// the mean of their Means, weighted by their Counts. So package train computes the loss and the gradient of a step with
// several micro-batches, and the loss in validation: they don't depend on how the examples are divided into batches.
//
// A loss of your own is a Loss with your Mean. To add a term to a loss, change its Mean.
type Loss struct {
	Mean *G.Node // a scalar, with a gradient

	// Count is the number of targets that count in the Mean, or the sum of their weights: a scalar of dtype float32 or
	// float64, at least 0. If it is 0, Mean is ignored. Count should depend only on inputs such as targets and weights,
	// because it is computed before the Mean. A nil Count stands for the number of examples in the batch.
	Count *G.Node
}

// Ignore is a target for positions that CrossEntropy should ignore. All other negative targets mean the same.
const Ignore = -1

// CrossEntropyOptions holds the options of CrossEntropy. The zero value means equal weights and no smoothing.
type CrossEntropyOptions struct {
	// Weights holds a weight for each position, with the targets' shape and the logits' dtype. nil means 1 for each.
	Weights *G.Node

	// ClassWeights holds a weight for each of the V classes, at least 0 and finite as a float32. CrossEntropy
	// multiplies the weight of a position by the weight of its target class. nil means 1 for each.
	//
	// Without LabelSmoothing, this is the same as the argument weight of torch.nn.CrossEntropyLoss. With
	// LabelSmoothing, PyTorch multiplies the loss term of each class by the weight of that class. Here the weight of
	// the target class multiplies the whole loss of a position.
	ClassWeights []float64

	// LabelSmoothing, ε, from 0 to 1, is the part of each target that is spread evenly over all V classes. It keeps a
	// model from becoming too certain (Szegedy et al., 2016, section 7). The loss of a position is then −Σ q·log
	// softmax(logits), with q = (1 − ε)·onehot(target) + ε/V.
	//
	// With smoothing, any logit of −Inf makes the loss infinite, unless its position is ignored. Without smoothing,
	// only a logit of −Inf at the target class does. Gradients stay finite.
	LabelSmoothing float64
}

// CrossEntropy returns the weighted mean over positions of −log softmax(logits)[target], in nats. The logits have shape
// (…, V). The targets have the same shape without the last axis, and dtype tensor.Int. If wᵢ is the weight of position
// i times the weight of its target class, the Mean is Σ wᵢ·lossᵢ / Σ wᵢ, and the Count is Σ wᵢ.
//
// A position with a negative target, such as Ignore, has weight 0. A position with weight 0 doesn't count: its logits
// may be NaN, its target may be out of range, and its gradient is 0. If all weights are 0, the Mean is 0. Running the
// graph returns an error if a weight is negative, infinite or NaN, or if a target of V or more has a weight above 0.
//
// Only the logits have a gradient.
func CrossEntropy(b *Build, logits, targets *G.Node, o CrossEntropyOptions) (Loss, error) {
	mean, count, err := ops.CrossEntropy(b.Env(), logits, targets, ops.CrossEntropyOptions(o))
	return Loss{mean, count}, err
}

// HeadCrossEntropy returns the CrossEntropy of a head's logits, and the predicted ids. It applies the head itself, to
// states of shape (…, D) and the head's dtype. If softcap isn't 0, a logit z becomes softcap·tanh(z/softcap): see
// ModelConfig.LogitSoftcap. The targets have shape (…) and dtype tensor.Int; the options are the same as in
// CrossEntropy. States, weight and bias have a gradient.
//
// The predicted ids have the shape and dtype of the targets and no gradient. They are the classes with the largest
// logit, the first one if there are several. The id of a position is −1 if a logit is NaN, or if its weight is 0.
//
// The loss equals CrossEntropy's up to rounding, but needs less memory, and less time if many positions are ignored.
// The logits are computed for some rows at a time, and only where the weight isn't 0; the states of other positions may
// be NaN. In a graph with gradients, the same pass computes them, so a graph can have them only once. If the head's
// weight is also the table of an Embedding that leads to the states, both gradients share one buffer.
//
// With Composed in the Build, an Adapter for the head, or int8 weights, it applies the head and then CrossEntropy.
//
// HeadCrossEntropy returns an error if dtypes or shapes don't fit together, or if softcap is negative or not finite.
// For errors when the graph runs, see CrossEntropy.
func HeadCrossEntropy(b *Build, states *G.Node, head *Linear, softcap float64, targets *G.Node, o CrossEntropyOptions) (loss Loss, predicted *G.Node, err error) {
	if _, adapted := b.Adapter.pair(head.Weight); b.Composed || adapted != nil || b.own(head.Weight).int8 != nil {
		x, err := logits(b, states, head, softcap)
		if err != nil {
			return Loss{}, nil, err
		}
		if loss, err = CrossEntropy(b, x, targets, o); err != nil {
			return Loss{}, nil, err
		}
		predicted, err = ops.Predicted(b.Env(), x, loss.Mean)
		return loss, predicted, err
	}
	w, bias, err := head.bind(b, states)
	if err != nil {
		return Loss{}, nil, err
	}
	loss.Mean, loss.Count, predicted, err = ops.HeadCrossEntropy(b.Env(), states, w, bias, softcap, targets, ops.CrossEntropyOptions(o))
	return loss, predicted, err
}

// BinaryCrossEntropy returns the weighted mean of −t·log σ(x) − (1 − t)·log(1 − σ(x)), in nats, over logits x and
// targets t. Logits and targets have the same dtype and the same shape, with at least one axis. Each element
// is a separate yes-or-no question, and its target is the probability of yes, usually 0 or 1. The loss is computed from
// the logits directly, so it doesn't overflow. The gradient of an element is (σ(x) − t)·w / Σ w.
//
// Weights, if not nil, have the logits' dtype. Their shape is the logits' shape or the first axes of it. For example,
// if the logits have shape (B, T, D), the weights may have shape (B, T, D), for elements, (B, T), for positions, or
// (B), for examples. The Mean is Σ w·loss / Σ w over all elements, and the Count is Σ w. An element with weight 0
// doesn't count: its logit and target may be NaN, and its gradient is 0. If all weights are 0, the Mean is 0. Running
// the graph returns an error if a weight is negative, infinite or NaN, or if a target outside [0, 1] has a weight above
// 0.
//
// Only the logits have a gradient.
func BinaryCrossEntropy(b *Build, logits, targets, weights *G.Node) (Loss, error) {
	return distance(b, kernel.BinaryCrossEntropy, 0, logits, targets, weights)
}

// MeanSquaredError returns the weighted mean of (x − t)² over outputs x and targets t. Shapes, dtypes and
// weights follow the rules of BinaryCrossEntropy. Targets may be any numbers, and they also have a gradient.
func MeanSquaredError(b *Build, outputs, targets, weights *G.Node) (Loss, error) {
	return distance(b, kernel.SquaredError, 0, outputs, targets, weights)
}

// MeanAbsoluteError returns the weighted mean of |x − t|, whose derivative at x = t is 0. Otherwise MeanAbsoluteError
// is like MeanSquaredError.
func MeanAbsoluteError(b *Build, outputs, targets, weights *G.Node) (Loss, error) {
	return distance(b, kernel.AbsoluteError, 0, outputs, targets, weights)
}

// HuberError returns the weighted mean of (x − t)²/2 where |x − t| ≤ δ, and of δ·(|x − t| − δ/2) elsewhere (Huber,
// 1964, Robust estimation of a location parameter). The gradient doesn't grow beyond distance δ, so outliers have less
// influence. The argument delta is δ. It must be above 0 and at most 1e15. Otherwise HuberError is like
// MeanSquaredError.
func HuberError(b *Build, outputs, targets, weights *G.Node, delta float64) (Loss, error) {
	if !(delta > 0 && delta <= ops.Largest) {
		return Loss{}, fmt.Errorf("huber error: delta must be above 0 and at most %v, got %v; 1 is usual for targets of about unit size", ops.Largest, delta)
	}
	return distance(b, kernel.HuberError, delta, outputs, targets, weights)
}

func distance(b *Build, d kernel.Distance, delta float64, outputs, targets, weights *G.Node) (Loss, error) {
	mean, count, err := ops.MeanDistance(b.Env(), d, delta, outputs, targets, weights)
	return Loss{mean, count}, err
}

// Balanced returns a loss plus the Balance of every Routing, multiplied by its weight in the ExpertsConfig, if the
// graph is for training. In other graphs, and without weights above 0, it returns the loss itself. Call it after
// Forward.
func (b *Build) Balanced(loss Loss) (Loss, error) {
	if !b.Training {
		return loss, nil
	}
	for _, r := range b.routings {
		if r.Balance == nil {
			continue
		}
		term, err := ops.WeightedSum(b.Env(), r.Balance, []float64{r.weight}, fmt.Sprint(r.weight))
		if err != nil {
			return Loss{}, err
		}
		if loss.Mean, err = G.Add(loss.Mean, term); err != nil {
			return Loss{}, err
		}
	}
	return loss, nil
}
