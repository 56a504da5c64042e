package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// A Router chooses experts for each token from logits of shape (N, Experts), and their shares of the token's output.
// The score of an expert is the softmax of the token's logits or, with Sigmoid, σ(logit).
type Router struct {
	Experts, Top int // number of experts, and of experts for each token

	// With Groups above 0, the experts are divided into equal groups, and a token's experts are from its TopGroups best
	// groups. The score of a group is its largest score or, with Sigmoid, the sum of its two largest scores.
	Groups, TopGroups int

	Sigmoid   bool
	Normalize bool    // a token's shares are divided by their sum
	Scale     float64 // and multiplied by this
}

// scores sets s to the scores of one token.
func (r Router) scores(s, logits []float64) {
	if r.Sigmoid {
		sigmoidLoop[float64]{}.run(&loopWork[float64]{body: bodyOf[float64](), out: s, x: logits}, 0, len(s))
		return
	}
	routerSoftmax(s, logits)
}

// routerSoftmax sets w to the softmax of scores.
func routerSoftmax(w, scores []float64) {
	if largest := bodyOf[float64]().softmax(w, scores); !portable.Finite(largest) {
		softmaxSpecial(w, scores, largest)
	}
}

// Choose sets ids, of shape (N, Top), to the experts with the largest sums of score and bias, the largest first. The
// bias may be nil. Of equal sums, the first one counts. NaN is below all numbers.
func Choose[F Float](cores int, r Router, ids []int, logits, bias []F) {
	runRanges(cores, len(ids)/r.Top, rowsPerTask(r.Experts, geluCost), len(logits)*geluCost, func(lo, hi int) {
		scores, wide := make([]float64, r.Experts), make([]float64, r.Experts)
		for n := lo; n < hi; n++ {
			for j, x := range logits[n*r.Experts:][:r.Experts] {
				wide[j] = float64(x)
			}
			r.scores(scores, wide)
			for j, x := range bias {
				scores[j] += float64(x)
			}
			for j, x := range scores {
				if x != x {
					scores[j] = math.Inf(-1)
				}
			}
			r.limit(scores)
			for i := range r.Top {
				best := r.best(scores)
				ids[n*r.Top+i], scores[best] = best, math.NaN()
			}
		}
	})
}

// best returns the index of the largest score that isn't NaN.
func (r Router) best(scores []float64) int {
	best := -1
	for j, x := range scores {
		if x == x && (best < 0 || x > scores[best]) {
			best = j
		}
	}
	return best
}

// limit sets the scores outside the best groups to NaN.
func (r Router) limit(scores []float64) {
	if r.Groups == 0 {
		return
	}
	size, groups := r.Experts/r.Groups, make([]float64, r.Groups)
	for g := range groups {
		first, second := math.Inf(-1), math.Inf(-1)
		for _, x := range scores[g*size:][:size] {
			if x > first {
				first, second = x, first
			} else if x > second {
				second = x
			}
		}
		if groups[g] = first; r.Sigmoid && size > 1 {
			groups[g] += second
		}
	}
	for range r.TopGroups {
		groups[r.best(groups)] = math.NaN()
	}
	for g, x := range groups {
		if x == x {
			for j := range size {
				scores[g*size+j] = math.NaN()
			}
		}
	}
}

// Share sets shares, of shape (N, Top), to the shares of the experts ids.
func Share[F Float](cores int, r Router, shares, logits []F, ids []int) {
	r.each(cores, len(logits), func(s *routed, n int) {
		routedToken(s, r, logits, ids, n)
		for i, x := range s.shares {
			shares[n*r.Top+i] = F(x * r.Scale)
		}
	})
}

// ShareGrad sets dlogits to the gradient of the logits, given g, the gradient of the shares. It is 0 for a token whose
// gradients are all 0, even if its logits are NaN.
func ShareGrad[F Float](cores int, r Router, dlogits, logits []F, ids []int, g []F) {
	r.each(cores, len(logits), func(s *routed, n int) {
		d, g := dlogits[n*r.Experts:][:r.Experts], g[n*r.Top:][:r.Top]
		if clear(d); portable.AllZero(g) {
			return
		}
		routedToken(s, r, logits, ids, n)
		mean := 0.0 // of g, weighted by the shares
		for i, x := range s.shares {
			mean += x * float64(g[i])
		}
		if !r.Sigmoid && !r.Normalize { // the other experts' logits count
			for j, x := range s.scores {
				d[j] = F(-x * mean * r.Scale)
			}
		}
		for i, id := range ids[n*r.Top:][:r.Top] {
			x := float64(g[i]) * r.Scale
			if !r.Sigmoid {
				if r.Normalize {
					x -= mean * r.Scale
				}
				d[id] += F(s.shares[i] * x)
				continue
			}
			if r.Normalize {
				x = (x - mean*r.Scale) / s.sum
			}
			d[id] = F(x * s.scores[id] * (1 - s.scores[id]))
		}
	})
}

// A routed holds the scores of a token, and its shares before Scale.
type routed struct {
	wide, scores, shares []float64
	sum                  float64 // of the chosen scores
}

// each calls do for every token of logits with the given number of elements.
func (r Router) each(cores, logits int, do func(s *routed, n int)) {
	runRanges(cores, logits/r.Experts, rowsPerTask(r.Experts, geluCost), logits*geluCost, func(lo, hi int) {
		s := &routed{make([]float64, r.Experts), make([]float64, r.Experts), make([]float64, r.Top), 0}
		for n := lo; n < hi; n++ {
			do(s, n)
		}
	})
}

// routedToken computes the shares of token n.
func routedToken[F Float](s *routed, r Router, logits []F, ids []int, n int) {
	for j, x := range logits[n*r.Experts:][:r.Experts] {
		s.wide[j] = float64(x)
	}
	ids = ids[n*r.Top:][:r.Top]
	if !r.Sigmoid && r.Normalize { // the softmax of the chosen logits, which is more exact
		for i, id := range ids {
			s.wide[i], s.shares[i] = float64(logits[n*r.Experts+id]), 0
		}
		routerSoftmax(s.shares, s.wide[:r.Top])
		return
	}
	r.scores(s.scores, s.wide)
	s.sum = 0
	for i, id := range ids {
		s.shares[i] = s.scores[id]
		s.sum += s.scores[id]
	}
	if r.Normalize {
		s.sum += 1e-20 // as in DeepSeek-V3
		for i := range s.shares {
			s.shares[i] /= s.sum
		}
	}
}

// Balance returns Experts·Σ f·P over the experts, where f is the share of all choices that chose an expert, and P the
// mean of its scores over the tokens, divided by the sum of a token's scores. It is 1 if all experts are chosen equally
// often. It adds the number of tokens of each expert to counts.
func Balance[F Float](r Router, counts []int, logits []F, ids []int) (balance float64) {
	for _, id := range ids {
		counts[id]++
	}
	s, tokens := &routed{make([]float64, r.Experts), make([]float64, r.Experts), nil, 0}, len(logits)/r.Experts
	for n := range tokens {
		balance += routedMean(s, r, counts, logits, n)
	}
	return balance * float64(r.Experts) / float64(len(ids)*tokens)
}

// routedMean sets the scores of token n, divided by their sum, and returns their mean weighted by the counts.
func routedMean[F Float](s *routed, r Router, counts []int, logits []F, n int) (mean float64) {
	for j, x := range logits[n*r.Experts:][:r.Experts] {
		s.wide[j] = float64(x)
	}
	r.scores(s.scores, s.wide)
	s.sum = 0
	for _, x := range s.scores {
		s.sum += x
	}
	for j := range s.scores {
		s.wide[j] = s.scores[j] / s.sum
		mean += float64(counts[j]) * s.wide[j]
	}
	return mean
}

// BalanceGrad sets dlogits to the gradient of Balance, multiplied by g. The counts are the numbers of
// tokens of each expert.
func BalanceGrad[F Float](cores int, r Router, dlogits, logits []F, counts []int, g float64) {
	tokens := len(logits) / r.Experts
	by := g * float64(r.Experts) / (float64(tokens*r.Top) * float64(tokens))
	r.each(cores, len(logits), func(s *routed, n int) {
		mean := routedMean(s, r, counts, logits, n)
		for j, p := range s.wide {
			d := by * p * (float64(counts[j]) - mean)
			if r.Sigmoid {
				d *= 1 - s.scores[j]
			}
			dlogits[n*r.Experts+j] = F(d)
		}
	})
}
