package kernel

import "math"

// A Mask says which keys each query may attend to, for scores of shape (B, H, T, S), and what is added to the scores. Its
// parts combine by intersection. A part that is absent (nil, false) allows everything.
//
// Query t of batch element b is at position p = t + Offset, or t + Offsets[b] if there are Offsets; key j is at j.
type Mask[F Float] struct {
	Shape [4]int // B, H, T, S

	Offset  int
	Offsets []int // per batch element

	Causal      bool // j ≤ p
	Window      bool // p − Left ≤ j ≤ p + Right; −1 leaves a side open
	Left, Right int

	Lengths    []int  // per batch element, how many keys are valid
	Allow      []bool // true means attend
	AllowShape [4]int // 1 on an axis broadcasts, but on the last: keys past it are masked

	Slopes    []F    // per head: −Slopes[h]·|p − j| is added to the scores
	Bias      []F    // added to the scores; −Inf masks
	BiasShape [4]int // as AllowShape
}

// MaxOffset is the largest offset, and the largest side of a window, that can be told from a larger one: callers clamp
// to it, so that no sum overflows.
const MaxOffset = math.MaxInt / 4

// position is that of query t of batch element b.
func (m *Mask[F]) position(b, t int) int {
	if m.Offsets != nil {
		return t + m.Offsets[b]
	}
	return t + m.Offset
}

// Span is the range of keys that query t of batch element b may attend to, subject to Allow and Bias: 0 ≤ start ≤ end ≤ S.
func (m *Mask[F]) Span(b, t int) (start, end int) { return m.span(b, t, t+1) }

// span is the range of keys that no query of batch element b from t0 to t1 sees a key outside of.
func (m *Mask[F]) span(b, t0, t1 int) (start, end int) {
	end = m.Shape[3]
	if m.Causal {
		end = min(end, m.position(b, t1-1)+1)
	}
	if m.Window && m.Right >= 0 {
		end = min(end, m.position(b, t1-1)+m.Right+1)
	}
	if m.Lengths != nil {
		end = min(end, m.Lengths[b])
	}
	if m.Allow != nil {
		end = min(end, m.AllowShape[3])
	}
	if m.Bias != nil {
		end = min(end, m.BiasShape[3])
	}
	end = max(end, 0)
	if m.Window && m.Left >= 0 {
		start = min(max(m.position(b, t0)-m.Left, 0), end)
	}
	return start, end
}

// queries is the range of queries of batch element b outside of which none sees a key from j0 to j1: the converse of
// span.
func (m *Mask[F]) queries(b, j0, j1 int) (start, end int) {
	zero := m.position(b, 0)
	end = m.Shape[2]
	if m.Causal {
		start = max(start, j0-zero)
	}
	if m.Window && m.Right >= 0 {
		start = max(start, j0-m.Right-zero)
	}
	if m.Window && m.Left >= 0 {
		end = max(0, min(end, j1+m.Left-zero))
	}
	return min(start, end), end
}

// scored tells whether a score in a query's span may be changed by the mask.
func (m *Mask[F]) scored() bool { return m.Allow != nil || m.Bias != nil || m.Slopes != nil }

// apply adds to the scores of query (b, h, t) with the keys from j0 on, all in its span, what the mask adds, and sets
// those of keys that it forbids to −Inf.
func (m *Mask[F]) apply(scores []F, b, h, t, j0 int) {
	if len(scores) == 0 {
		return
	}
	body := vectorOf[F]()
	if m.Slopes != nil {
		addSlope(body, scores, m.Slopes[h], m.position(b, t)-j0)
	}
	if m.Bias != nil {
		body.addBias(scores, m.Bias[broadcastRow(m.BiasShape, b, h, t)+j0:][:len(scores)])
	}
	if m.Allow != nil {
		body.forbid(scores, m.Allow[broadcastRow(m.AllowShape, b, h, t)+j0:][:len(scores)])
	}
}

// addSlope subtracts slope·|d − i| from element i of x.
func addSlope[F Float](body *vectorBody[F], x []F, slope F, d int) {
	exact := min(1<<53, math.MaxInt) // up to here each integer is an F
	if is32[F]() {
		exact = 1 << 24
	}
	if d <= exact && len(x)-d <= exact {
		body.addSlope(x, slope, F(d))
		return
	}
	for i := range x {
		x[i] -= slope * F(max(d-i, i-d))
	}
}

func addSlopePortable[F Float](x []F, slope, d F) {
	for i := range x {
		far := d - F(i)
		if far < 0 {
			far = -far
		}
		x[i] -= slope * far
	}
}

func addBiasPortable[F Float](x, bias []F) {
	inf := F(math.Inf(-1))
	bias = bias[:len(x)]
	for i := range x {
		if b := bias[i]; b == inf {
			x[i] = inf
		} else {
			x[i] += b
		}
	}
}

func forbidPortable[F Float](x []F, allow []bool) {
	inf := F(math.Inf(-1))
	allow = allow[:len(x)]
	for i := range x {
		if !allow[i] {
			x[i] = inf
		}
	}
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
