package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// A sink is a score of every query of a head that belongs to no key (Xiao et al., 2023). It takes part in the softmax,
// so the weights of the keys sum to less than 1. In the log-sum-exp it counts like the score of a key whose value is 0.
// Therefore the backward pass is the same as without sinks. The gradient of a sink is −Σ exp(sink − lse)·rowsum(dO∘O).
// A query that sees no key has weights of 0, and doesn't change the gradient.

// seeded returns the largest score of a query of head h before its first key.
func (a *Attention[F]) seeded(h int) F {
	if a.Sinks == nil {
		return F(math.Inf(-1))
	}
	return a.Sinks[h]
}

// badSink reports whether the sink of head h makes every result NaN. A sink of −Inf is no sink.
func (a *Attention[F]) badSink(h int) bool {
	return a.Sinks != nil && (a.Sinks[h] != a.Sinks[h] || a.Sinks[h] == F(math.Inf(1)))
}

// addSink adds the contribution of one query of head h to the gradient of the head's sink. The argument less is
// rowsum(dO∘O).
func (a *Attention[F]) addSink(h int, lse, less F) {
	if a.SinkGrads != nil {
		a.SinkGrads[h] -= portable.SkipProduct(F(math.Exp(float64(a.Sinks[h]-lse))), less)
	}
}

// sumSinks sets SinkGrads to the contributions of all queries that affect the gradients, in order.
func (a *Attention[F]) sumSinks() {
	heads, queries := a.Mask.Shape[1], a.Mask.Shape[0]*a.Mask.Shape[2]
	clear(a.SinkGrads)
	runRanges(a.cores, len(a.SinkGrads), 1, heads*queries*geluCost, func(h, _ int) {
		for i := range queries {
			row := a.row(i/a.Mask.Shape[2], h, i%a.Mask.Shape[2])
			if a.shift[row] != F(math.Inf(-1)) {
				a.addSink(h, a.shift[row], a.less[row])
			}
		}
	})
}

// SinkSoftmax sets w to the softmax of scores of shape (B, H, T, S) and of a sink for each of the H heads. A score of
// −Inf has weight 0; if all scores of a query are −Inf, all its weights are 0.
func SinkSoftmax[F Float](cores int, w, scores, sinks []F, queries, keys int) {
	runRanges(cores, len(scores)/keys, rowsPerTask(keys, 2), 2*len(scores), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			w, scores, sink := w[r*keys:][:keys], scores[r*keys:][:keys], sinks[r/queries%len(sinks)]
			largest := bodyOf[F]().softmax(w, scores)
			if !portable.Finite(largest) {
				softmaxSpecial(w, scores, largest)
				continue
			}
			keep := 1 / (1 + F(math.Exp(float64(sink-largest)))*portable.MaxOf(w))
			if sink == F(math.Inf(1)) {
				keep = F(math.NaN()) // as in Attention
			}
			for j, x := range w {
				if x != 0 {
					w[j] = x * keep
				}
			}
		}
	})
}

// SinkSoftmaxGrad sets dsinks to the gradient of the sinks, given the weights and their gradient g.
func SinkSoftmaxGrad[F Float](dsinks, w, g []F, queries, keys int) {
	clear(dsinks)
	for r := range len(w) / keys {
		sum, less := F(0), F(0)
		for j, x := range w[r*keys:][:keys] {
			sum += x
			less += portable.SkipProduct(x, g[r*keys+j])
		}
		dsinks[r/queries%len(dsinks)] -= portable.SkipProduct(1-sum, less)
	}
}
