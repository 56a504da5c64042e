package kernel

import "math"

// A Mask says which keys each query may attend to, for scores of shape (B, H, T, S). Its parts combine by intersection.
// A part that is absent (nil, false) allows everything.
type Mask[F Float] struct {
	Shape      [4]int // B, H, T, S
	Causal     bool   // query i sees key j where j ≤ i
	Lengths    []int  // per batch element, how many keys are valid
	Allow      []bool // true means attend
	AllowShape [4]int // 1 on an axis broadcasts, but on the last: keys past it are masked
	Bias       []F    // added to the scores; −Inf masks
	BiasShape  [4]int // as AllowShape
}

// row is the part of the mask that one query sees: it may attend to keys before end, subject to allow and bias, each of
// which is nil or of at least end elements.
func (m *Mask[F]) row(b, h, t int) (end int, allow []bool, bias []F) {
	end = m.Shape[3]
	if m.Causal {
		end = min(end, t+1)
	}
	if m.Lengths != nil {
		end = min(end, m.Lengths[b])
	}
	if m.Allow != nil {
		end = min(end, m.AllowShape[3])
		allow = m.Allow[broadcastRow(m.AllowShape, b, h, t):]
	}
	if m.Bias != nil {
		end = min(end, m.BiasShape[3])
		bias = m.Bias[broadcastRow(m.BiasShape, b, h, t):]
	}
	return end, allow, bias
}

// broadcastRow is where row (b, h, t) of a tensor of the given shape begins, an axis of 1 serving every index.
func broadcastRow(shape [4]int, b, h, t int) int {
	at := 0
	for i, j := range [3]int{b, h, t} {
		at *= shape[i]
		if shape[i] > 1 {
			at += j
		}
	}
	return at * shape[3]
}

// MaskedSoftmax sets w to the softmax of the scores over the keys that the mask allows, for every query. A masked score
// is not read: its weight is 0. A query without keys has weights of 0.
func MaskedSoftmax[F Float](w, scores []F, m Mask[F]) {
	heads, queries, keys := m.Shape[1], m.Shape[2], m.Shape[3]
	split(m.Shape[0]*heads*queries, rowsPerTask(keys*8), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			end, allow, bias := m.row(r/(heads*queries), r/queries%heads, r%queries)
			maskedSoftmaxRow(w[r*keys:][:keys], scores[r*keys:][:end], allow, bias)
		}
	})
}

func maskedSoftmaxRow[F Float](w, scores []F, allow []bool, bias []F) {
	end := len(scores)
	clear(w[end:])
	inf := F(math.Inf(-1))
	most := inf
	for j, s := range scores {
		if allow != nil && !allow[j] || bias != nil && bias[j] == inf {
			w[j] = inf
			continue
		}
		if bias != nil {
			s += bias[j]
		}
		w[j] = s
		most = max(most, s) // NaN wins, and stays in this row
	}
	if most == inf {
		clear(w[:end])
		return
	}
	var sum F
	for j, s := range w[:end] {
		if s == inf {
			w[j] = 0
			continue
		}
		e := F(math.Exp(float64(s - most)))
		w[j] = e
		sum += e
	}
	for j := range w[:end] {
		if w[j] != 0 {
			w[j] /= sum
		}
	}
}

// SoftmaxGrad sets ds to w·(g − Σ w·g), row by row of the given width: the gradient of the scores from the weights and
// their gradient. A weight of 0 gives 0, whatever its gradient.
func SoftmaxGrad[F Float](ds, w, g []F, width int) {
	split(len(ds)/width, rowsPerTask(width), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			ds, w, g := ds[r*width:][:width], w[r*width:][:width], g[r*width:][:width]
			var dot F
			for j, p := range w {
				if p != 0 && g[j] != 0 {
					dot += p * g[j]
				}
			}
			for j, p := range w {
				if d := g[j] - dot; p != 0 && d != 0 {
					ds[j] = p * d
				} else {
					ds[j] = 0
				}
			}
		}
	})
}

// SumBroadcast sets sum, of shape small, to the sum of x, of shape large, over the axes where small has 1. Where the
// last axis of small is shorter, what lies past it is left out.
func SumBroadcast[F Float](sum, x []F, small, large [4]int) {
	clear(sum)
	width, keys := small[3], large[3]
	for b := range large[0] {
		for h := range large[1] {
			for t := range large[2] {
				to := sum[broadcastRow(small, b, h, t):][:width]
				for j, v := range x[((b*large[1]+h)*large[2]+t)*keys:][:width] {
					to[j] += v
				}
			}
		}
	}
}
