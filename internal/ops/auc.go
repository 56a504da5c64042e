package ops

import (
	"math"

	G "gorgonia.org/gorgonia"

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
	return sumVector(e, "auc", kernel.RightSide, logits, targets, weights, 2*rankBins, func(sums []float64, x, t, w float64) {
		yes := 0
		if t > 0.5 {
			yes = 1
		}
		sums[yes*rankBins+rankBin(x, yes == 1)] += w
	})
}

// rankBin returns the bin of a logit.
func rankBin(x float64, yes bool) int {
	const middle = rankSide + 1
	switch size := math.Abs(x); {
	case x != x && yes:
		return 0
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
