package ops

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// The bins of RankSums's histogram. For each sign, each power of two from 2^-rankRange to 2^rankRange has 2^rankBits
// bins, and all larger logits share one bin. All smaller logits share one bin, whatever their sign. At each end, there
// is a bin for NaN.
const (
	rankBits  = 7
	rankRange = 10
	rankSide  = 2*rankRange<<rankBits + 1 // bins of one sign
	rankBins  = 2*rankSide + 3
)

// RankSums returns a histogram of logits, from which AreaUnderCurve computes the area under the ROC curve. It is a
// vector of dtype float64 without a gradient: the weights of the logits in each bin whose targets are at most 1/2, and
// then the weights of the others. A NaN is below all other logits if its target is above 1/2, and otherwise above them.
// Inputs are the same as in SumDistance for binary cross-entropy, and so are the errors.
func RankSums(e *Env, logits, targets, weights *G.Node) (*G.Node, error) {
	return sumVector(e, "auc", kernel.RightSide, logits, targets, weights, 2*rankBins, func(sums []float64, _ int, x, t, w float64) {
		sums[rankBin(x, t > 0.5)] += w
	})
}

// ClassRankSums is like RankSums for one of V classes against all others. The logit of a row is the logarithm of the
// class's odds, log(p/(1−p)), and its target says whether the row is of the class. Logits and targets are the same as
// in SumAnswers. Rows whose target is below 0 don't count.
func ClassRankSums(e *Env, logits, targets *G.Node, class int) (*G.Node, error) {
	const name = "average precision"
	if err := checkTargets(name, "logits", "V", logits, targets); err != nil {
		return nil, err
	}
	if _, vocab := rows(logits.Shape()); class < 0 || class >= vocab {
		return nil, fmt.Errorf("%s: the class must be from 0 to %d, got %d", name, vocab-1, class)
	}
	fill := ByDtype(logits, classRanks[float32], classRanks[float64])(logits, class)
	return e.apply(newOp(fmt.Sprint(name, logits.Shape(), class), tensor.Shape{2 * rankBins}, fill), logits, targets)
}

func classRanks[F kernel.Float](logits *G.Node, class int) func(sums []float64, values []G.Value) {
	count, vocab := rows(logits.Shape())
	return func(sums []float64, values []G.Value) {
		logits := elements[F](values[0], count*vocab)
		clear(sums)
		for i, t := range elements[int](values[1], count) {
			switch {
			case t >= vocab:
				failClass(t, i, vocab)
			case t >= 0:
				sums[rankBin(logOdds(logits[i*vocab:][:vocab], class), t == class)]++
			}
		}
	}
}

// logOdds returns the logarithm of the odds of a class, or NaN if a logit is NaN.
func logOdds[F kernel.Float](logits []F, class int) float64 {
	highest, sum := math.Inf(-1), 0.0
	for i, x := range logits {
		if i != class {
			highest = max(highest, float64(x)) // NaN if x is NaN
		}
	}
	if math.IsInf(highest, 0) {
		return float64(logits[class]) - highest
	}
	for i, x := range logits {
		if i != class {
			sum += math.Exp(float64(x) - highest)
		}
	}
	return float64(logits[class]) - highest - math.Log(sum)
}

// rankBin returns the bin of a logit. The argument yes says whether its target is above 1/2.
func rankBin(x float64, yes bool) int {
	middle := rankSide + 1
	if yes {
		middle += rankBins
	}
	switch size := math.Abs(x); {
	case x != x && yes:
		return rankBins
	case x != x:
		return rankBins - 1
	case size < 1.0/(1<<rankRange):
		return middle
	default:
		bin := rankSide
		if size < 1<<rankRange {
			bin = 1 + int(math.Float64bits(size)>>(52-rankBits)) - (1023-rankRange)<<rankBits
		}
		if x < 0 {
			return middle - bin
		}
		return middle + bin
	}
}

// AreaUnderCurve returns the area under the ROC curve for a histogram from RankSums: the probability that a logit with
// a target above 1/2 is larger than a logit with another target. Two logits in the same bin count one half. It returns
// NaN if all targets are on the same side.
func AreaUnderCurve(sums []float64) float64 {
	no, yes := sums[:rankBins], sums[rankBins:]
	var below, total, area float64
	for i, n := range no {
		area += yes[i] * (below + n/2)
		below += n
		total += yes[i]
	}
	return area / (below * total)
}

// AveragePrecision returns the mean of the precisions at each target above 1/2, from the largest logit down, for a
// histogram from RankSums. Logits in the same bin are answered together. Without such a target, it returns 0.
func AveragePrecision(sums []float64) float64 {
	no, yes := sums[:rankBins], sums[rankBins:]
	var right, answers, area float64
	for i := rankBins - 1; i >= 0; i-- {
		right += yes[i]
		answers += yes[i] + no[i]
		if yes[i] > 0 {
			area += yes[i] * right / answers
		}
	}
	return area / max(right, 1)
}
