package train

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// A Metric is a number beside the loss that says how well a model does. Each batch gives a Sum and a Count; the value
// over all of them is Of(ΣSum/ΣCount). So every target counts once, however many a batch has.
//
// The functions of this package that return a Metric add nodes to the graph of their inputs, which have no gradient. Of
// two with one name, one needs another Name. A metric of one's own is this struct, with scalar nodes of dtype float32
// or float64. The root of a mean squared error, and the perplexity of a mean cross-entropy in nats, are
//
//	Metric{Name: "rmse", Sum: meanSquaredError, Of: math.Sqrt}
//	Metric{Name: "perplexity", Sum: crossEntropy, Of: math.Exp}
type Metric struct {
	Name string  // with "train_" or "val_" before it, its name in the history
	Sum  *G.Node // of the batch

	// Count is what Sum is a sum of. With nil, Sum is a mean, and counts for as much as the batch's Weight says.
	Count *G.Node

	// Of turns the mean over all batches into the value; with nil it is the value.
	Of func(mean float64) float64
}

// Accuracy returns the share of targets whose class has the largest logit, named "accuracy". The logits have shape (…,
// V), the targets the same without V and dtype tensor.Int, as in layers.CrossEntropy. Of several logits that are
// largest, the first is the one that is chosen; where one of the V is NaN, none is.
//
// A negative target, such as layers.Ignore, doesn't count, and its logits may be anything. When the graph runs, it is
// an error if a target is V or more.
func Accuracy(b *layers.Build, logits, targets *G.Node) (Metric, error) {
	return share("accuracy", b, logits, targets, false)
}

// ExactMatch returns the share of rows, along the first axis of the targets, whose every target is chosen, named
// "exact_match". A row in which no target counts doesn't count either. Otherwise it is like Accuracy.
func ExactMatch(b *layers.Build, logits, targets *G.Node) (Metric, error) {
	return share("exact_match", b, logits, targets, true)
}

func share(name string, b *layers.Build, logits, targets *G.Node, whole bool) (Metric, error) {
	right, counted, err := ops.CountRight(b.Env(), logits, targets, -1, whole)
	return Metric{Name: name, Sum: right, Count: counted}, err
}

// BinaryAccuracy returns the weighted share of numbers decided rightly, named "accuracy": logit x says yes if it is
// above 0, and target t if it is above 1/2. A logit that is NaN is never right. Shapes, dtypes and weights are those of
// layers.BinaryCrossEntropy.
func BinaryAccuracy(b *layers.Build, logits, targets, weights *G.Node) (Metric, error) {
	right, count, err := ops.SumDistance(b.Env(), kernel.RightSide, logits, targets, weights)
	return Metric{Name: "accuracy", Sum: right, Count: count}, err
}

// MeanAbsoluteError returns the weighted mean of |x − t|, over outputs x and targets t, named "mean_absolute_error".
// Shapes, dtypes and weights are those of layers.MeanAbsoluteError.
func MeanAbsoluteError(b *layers.Build, outputs, targets, weights *G.Node) (Metric, error) {
	sum, count, err := ops.SumDistance(b.Env(), kernel.AbsoluteError, outputs, targets, weights)
	return Metric{Name: "mean_absolute_error", Sum: sum, Count: count}, err
}
