package train

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// A Metric is a measure of a model's quality besides the loss. Each batch has a Sum and a Count. The value over all
// batches is Of(ΣSum/ΣCount), so every target counts the same, whatever the sizes of the batches.
//
// The functions of this package that return a Metric add nodes to the graph. These nodes have no gradient. If two
// metrics of a loss have the same Name, rename one. You can make your own Metric from scalar nodes of dtype float32 or
// float64. For example, these are the root of a mean squared error and the perplexity of a mean cross-entropy in nats:
//
//	Metric{Name: "rmse", Sum: meanSquaredError, Of: math.Sqrt}
//	Metric{Name: "perplexity", Sum: crossEntropy, Of: math.Exp}
//
// If the value isn't a function of one mean, make Sum a vector, and set Value, which computes the value from the sum of
// the vectors. For example, the absolute error as a share of the targets y needs Σ|x−y| and Σ|y|:
//
//	Metric{Name: "relative_error", Sum: sums, Value: func(s []float64) float64 { return s[0] / s[1] }}
//
// Sums are added up in the order of the batches and micro-batches, so neither workers nor processes change a value.
type Metric struct {
	Name string  // name in the history, after "train_" or "val_"
	Sum  *G.Node // sum over the batch: a scalar, or with Value a vector (N)

	// Count is the number of terms in Sum, or their total weight. If Count is nil, Sum is a mean over the same
	// targets as the loss, with the same Count. With Value, it must be nil.
	Count *G.Node

	// Of computes the value from the mean over all batches. If Of is nil, the value is the mean. With Value, it must be
	// nil.
	Of func(mean float64) float64

	// Value computes the value from ΣSum, the N elements of the vector added up over all batches. N is the same in all
	// graphs of the loss and at most 262,144. Value may change its argument.
	Value func(sums []float64) float64
}

// Accuracy returns a metric named "accuracy": the fraction of targets whose class has the largest logit. As in
// layers.CrossEntropy, logits has shape (…, V), and targets has the same shape without V and dtype tensor.Int. If
// several logits are the largest, the first one wins. If any of the V logits is NaN, the target counts as wrong.
//
// A negative target, such as layers.Ignore, doesn't count, and its logits may be anything. If a target is V or more,
// running the graph returns an error.
func Accuracy(b *layers.Build, logits, targets *G.Node) (Metric, error) {
	return share("accuracy", b, logits, targets, false)
}

// ExactMatch returns a metric named "exact_match": the fraction of rows, along the first axis of targets, in which
// every target is right. Rows in which no target counts are ignored. Otherwise ExactMatch is like Accuracy.
func ExactMatch(b *layers.Build, logits, targets *G.Node) (Metric, error) {
	return share("exact_match", b, logits, targets, true)
}

func share(name string, b *layers.Build, logits, targets *G.Node, whole bool) (Metric, error) {
	right, counted, err := ops.CountRight(b.Env(), logits, targets, -1, whole)
	return Metric{Name: name, Sum: right, Count: counted}, err
}

// Balance returns a metric named "balance": the mean of the Balance of the Build's Routings, which is 1 if all experts
// of a layer get equally many tokens. It returns no metric for a model without experts, and for one without the loss.
// Call it after Forward.
func Balance(b *layers.Build) ([]Metric, error) {
	var sum *G.Node
	layers := 0.0
	for _, r := range b.Routings() {
		if r.Balance == nil {
			continue
		}
		if layers++; sum == nil {
			sum = r.Balance
			continue
		}
		var err error
		if sum, err = G.Add(sum, r.Balance); err != nil {
			return nil, err
		}
	}
	if sum == nil {
		return nil, nil
	}
	return []Metric{{Name: "balance", Sum: sum, Of: func(mean float64) float64 { return mean / layers }}}, nil
}

// MacroF1 returns a metric named "macro_f1": the mean over classes of their F1 scores, so that rare classes count as
// much as common ones. The F1 score of a class is 2·right/(answers + targets), from its numbers of right answers, of
// answers and of targets over all batches. A class without answers and targets doesn't count, and a class without right
// answers has 0, as in scikit-learn with zero_division=0. If no target counts, the value is NaN.
//
// Logits, targets and answers are the same as in Accuracy. If any of the V logits is NaN, the target has no answer. V
// may be up to 131,072.
func MacroF1(b *layers.Build, logits, targets *G.Node) (Metric, error) {
	v := 0
	if s := logits.Shape(); len(s) > 0 {
		v = s[len(s)-1]
	}
	sums, err := ops.SumAnswers(b.Env(), "macro f1", logits, targets, 2*v, func(sums []float64, answers, targets []int) {
		right, either := sums[:v], sums[v:] // either is the number of answers and targets
		for i, t := range targets {
			if t < 0 {
				continue
			}
			either[t]++
			if answers[i] >= 0 {
				either[answers[i]]++
			}
			if answers[i] == t {
				right[t]++
			}
		}
	})
	return Metric{Name: "macro_f1", Sum: sums, Value: meanF1}, err
}

// meanF1 returns the mean of the F1 scores of classes, given the number of right answers for each, and then the number
// of answers and targets.
func meanF1(sums []float64) float64 {
	total, classes, v := 0.0, 0.0, len(sums)/2
	for class, either := range sums[v:] {
		if either > 0 {
			total += 2 * sums[class] / either
			classes++
		}
	}
	return total / classes
}

// ClassMetrics returns four metrics of one of the V classes. With its numbers of right answers, of answers and of
// targets over all batches, they are
//
//   - "precision": right/answers,
//   - "recall": right/targets,
//   - "f1": 2·right/(answers + targets),
//   - "average_precision": the mean, over the targets of the class, of the precision of answering the class wherever
//     its probability is at least as high as there.
//
// Where a denominator is 0, the value is 0, as in scikit-learn with zero_division=0. Logits, targets and answers are
// the same as in Accuracy. Probabilities are counted in bins by log(p/(1−p)): see AUC. If the logits of a target of the
// class have a NaN, its probability is the lowest; otherwise a NaN makes it the highest.
func ClassMetrics(b *layers.Build, logits, targets *G.Node, class int) ([]Metric, error) {
	sums, err := ops.SumAnswers(b.Env(), fmt.Sprint("class ", class), logits, targets, 3, func(sums []float64, answers, targets []int) {
		for i, t := range targets {
			if t == class && answers[i] == class {
				sums[0]++
			}
			if answers[i] == class {
				sums[1]++
			}
			if t == class {
				sums[2]++
			}
		}
	})
	if err != nil {
		return nil, err
	}
	ranks, err := ops.ClassRankSums(b.Env(), logits, targets, class)
	return []Metric{
		{Name: "precision", Sum: sums, Value: func(s []float64) float64 { return s[0] / max(s[1], 1) }},
		{Name: "recall", Sum: sums, Value: func(s []float64) float64 { return s[0] / max(s[2], 1) }},
		{Name: "f1", Sum: sums, Value: func(s []float64) float64 { return 2 * s[0] / max(s[1]+s[2], 1) }},
		{Name: "average_precision", Sum: ranks, Value: ops.AveragePrecision},
	}, err
}

// LabelMetrics returns four metrics of labels that don't exclude each other, with logits (B, V), targets (B, V) that
// are 1 for right labels and otherwise 0, and weights (B), which are 0 for rows that don't count:
//
//   - "micro_f1": the F1 score of all labels together,
//   - "macro_f1": the mean of the F1 scores of the labels, as in MacroF1,
//   - "average_precision": the mean, over all right labels, of the share of right ones among the labels whose logits
//     are at least as high. Logits are counted in bins: see AUC,
//   - "subset_accuracy": the share of rows with exactly the right labels.
//
// An answer has the labels whose logits are at least 0. V may be up to 131,071.
func LabelMetrics(b *layers.Build, logits, targets, weights *G.Node) ([]Metric, error) {
	sums, err := ops.LabelSums(b.Env(), logits, targets, weights)
	if err != nil {
		return nil, err
	}
	ranks, err := ops.RankSums(b.Env(), logits, targets, weights)
	return []Metric{
		{Name: "micro_f1", Sum: sums, Value: func(s []float64) float64 {
			right, either, v := 0.0, 0.0, len(s)/2-1
			for i := range v {
				right, either = right+s[2+i], either+s[2+v+i]
			}
			return 2 * right / max(either, 1)
		}},
		{Name: "macro_f1", Sum: sums, Value: func(s []float64) float64 { return meanF1(s[2:]) }},
		{Name: "average_precision", Sum: ranks, Value: ops.AveragePrecision},
		{Name: "subset_accuracy", Sum: sums, Value: func(s []float64) float64 { return s[0] / s[1] }},
	}, err
}

// AUC returns a metric named "auc": the area under the ROC curve of binary logits. It is the probability that a logit
// whose target is above 1/2 is larger than a logit whose target isn't, where equal logits count one half, as in
// scikit-learn. It is NaN if all targets are on one side of 1/2. A logit that is NaN loses to all others. Shapes,
// dtypes and weights are the same as in layers.BinaryCrossEntropy.
//
// AUC counts logits in 5,125 bins, and logits in one bin count as equal. Two logits share a bin only if they differ by
// less than 1/128 of their size, or if both are smaller than 0.001, or if both are larger than 1,024 and have the same
// sign. The value is therefore off by at most half the share of pairs in one bin, and usually by far less.
func AUC(b *layers.Build, logits, targets, weights *G.Node) (Metric, error) {
	sums, err := ops.RankSums(b.Env(), logits, targets, weights)
	return Metric{Name: "auc", Sum: sums, Value: ops.AreaUnderCurve}, err
}

// BinaryAccuracy returns a metric named "accuracy": the weighted fraction of right logits. A logit is right if it is
// above 0 and its target is above 1/2, or if neither is. A logit that is NaN is never right. Shapes, dtypes and weights
// are the same as in layers.BinaryCrossEntropy.
func BinaryAccuracy(b *layers.Build, logits, targets, weights *G.Node) (Metric, error) {
	right, count, err := ops.SumDistance(b.Env(), kernel.RightSide, logits, targets, weights)
	return Metric{Name: "accuracy", Sum: right, Count: count}, err
}

// MeanAbsoluteError returns a metric named "mean_absolute_error": the weighted mean of |x − t| over outputs x and
// targets t. Shapes, dtypes and weights are the same as in layers.MeanAbsoluteError.
func MeanAbsoluteError(b *layers.Build, outputs, targets, weights *G.Node) (Metric, error) {
	sum, count, err := ops.SumDistance(b.Env(), kernel.AbsoluteError, outputs, targets, weights)
	return Metric{Name: "mean_absolute_error", Sum: sum, Count: count}, err
}

// RSquared returns a metric named "r2": the coefficient of determination, 1 − Σw(x−t)²/Σw(t−m)², over outputs x and
// targets t, where m is the weighted mean of all targets. A model that always answers m has 0, and a perfect model has
// 1. If all targets are equal, the value is 1 if all outputs are right, and otherwise 0, as in scikit-learn. If fewer
// than two targets have a weight, the value is NaN. Shapes, dtypes and weights are the same as in
// layers.MeanAbsoluteError.
//
// The sums of the targets have no rounding error. So the value is right even if the mean is large, and doesn't depend
// on the sizes of the batches. If a target isn't finite, or larger than 1e90, the value is NaN.
func RSquared(b *layers.Build, outputs, targets, weights *G.Node) (Metric, error) {
	sums, err := ops.SquareSums(b.Env(), outputs, targets, weights)
	return Metric{Name: "r2", Sum: sums, Value: ops.Determination}, err
}
