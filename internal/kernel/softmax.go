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
	keys := m.Shape[3]
	rows := m.Shape[0] * m.Shape[1] * m.Shape[2]
	spread[F](softmaxPart[F]{}, 4*rows*keys, &vectorWork[F]{n: rows, step: rowsPerTask(keys, 2), out: w, x: scores, mask: m})
}

type softmaxPart[F Float] struct{}

func (softmaxPart[F]) do(w *vectorWork[F], lo, hi int) {
	heads, queries, keys := w.mask.Shape[1], w.mask.Shape[2], w.mask.Shape[3]
	for r := lo; r < hi; r++ {
		end, allow, bias := w.mask.row(r/(heads*queries), r/queries%heads, r%queries)
		maskedSoftmaxRow(w.out[r*keys:][:keys], w.x[r*keys:][:end], allow, bias)
	}
}

// maskedSoftmaxRow sets w to the softmax of the scores that allow and bias leave, and to 0 past the scores.
func maskedSoftmaxRow[F Float](w, scores []F, allow []bool, bias []F) {
	end := len(scores)
	clear(w[end:])
	w = w[:end]
	if allow != nil || bias != nil {
		maskScores(w, scores, allow, bias)
		scores = w
	}
	most := vectorOf[F]().softmax(w, scores)
	if finite(most) {
		return
	}
	inf := F(math.Inf(1))
	for j, s := range scores {
		if s == -inf || most == inf && s != inf {
			w[j] = 0
		} else {
			w[j] = F(math.NaN()) // and it stays in this row
		}
	}
}

// maskScores sets out to the scores plus the bias, and to −Inf where the mask forbids.
func maskScores[F Float](out, scores []F, allow []bool, bias []F) {
	inf := F(math.Inf(-1))
	for j, s := range scores {
		if allow != nil && !allow[j] || bias != nil && bias[j] == inf {
			out[j] = inf
			continue
		}
		if bias != nil {
			s += bias[j]
		}
		out[j] = s
	}
}

// softmaxPortable sets w to exp(scores − m)/Σ exp(scores − m) and returns m, the largest score. Where that isn't finite,
// it leaves w alone.
func softmaxPortable[F Float](w, scores []F) F {
	most := maxPortable(scores)
	if finite(most) {
		scalePortable(w, 1/expShiftPortable(w, scores, most))
	}
	return most
}

// SoftmaxGrad sets ds to w·(g − Σ w·g), row by row of the given width: the gradient of the scores from the weights and
// their gradient. A weight of 0 gives 0, whatever its gradient.
func SoftmaxGrad[F Float](ds, w, g []F, width int) {
	spread[F](softmaxGradPart[F]{}, 2*len(ds), &vectorWork[F]{n: len(ds) / width, step: rowsPerTask(width, 2), out: ds, x: w, y: g, width: width})
}

type softmaxGradPart[F Float] struct{}

func (softmaxGradPart[F]) do(w *vectorWork[F], lo, hi int) {
	lo, hi = lo*w.width, hi*w.width
	w.body.softmaxGrad(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi], w.width)
}

func softmaxGradPortable[F Float](ds, w, g []F, width int) {
	for ; len(ds) > 0; ds, w, g = ds[width:], w[width:], g[width:] {
		var dot F
		for j, p := range w[:width] {
			if p != 0 && g[j] != 0 {
				dot += p * g[j]
			}
		}
		for j, p := range w[:width] {
			if d := g[j] - dot; p != 0 && d != 0 {
				ds[j] = p * d
			} else {
				ds[j] = 0
			}
		}
	}
}

// SumBroadcast sets sum, of shape small, to the sum of x, of shape large, over the axes where small has 1. Where the
// last axis of small is shorter, what lies past it is left out.
func SumBroadcast[F Float](sum, x []F, small, large [4]int) {
	clear(sum)
	width, keys := small[3], large[3]
	for b := range large[0] {
		for h := range large[1] {
			for t := range large[2] {
				axpy(sum[broadcastRow(small, b, h, t):][:width], 1, x[((b*large[1]+h)*large[2]+t)*keys:][:width])
			}
		}
	}
}
