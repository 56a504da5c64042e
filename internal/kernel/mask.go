package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// A Mask defines which keys each query may attend to, and what to add to the scores, of shape (B, H, T, S). A query may
// attend to a key if every field of the Mask allows it. A field that is nil or false allows everything.
//
// Query t of batch element b has position p = t + Offset, or t + Offsets[b] if Offsets is set; key j has position j.
type Mask[F Float] struct {
	Shape [4]int // B, H, T, S

	Offset  int
	Offsets []int // one per batch element

	Causal bool    // j ≤ p
	Window *Window // nil means no limit

	KeyLengths []int      // number of valid keys of each batch element
	Documents  *Documents // nil means that a row is one document
	Blocks     *Blocks    // positions of queries, and keys; nil means all
	Allow      []bool     // true means attend
	AllowShape [4]int     // an axis of size 1 broadcasts, except the last: keys past its end are masked

	Slopes    []F    // one per head: −Slopes[h]·|p − j| is added to the scores
	Bias      []F    // added to the scores; −Inf masks
	BiasShape [4]int // like AllowShape
}

// A Window limits the keys that a query at position p sees to those from p − Left to p + Right. A field of −1 means no
// limit.
type Window struct {
	Left, Right int
}

// MaxOffset is the largest offset and the largest side of a window. Callers reduce larger values to MaxOffset, so that
// no sum overflows. This changes no result.
const MaxOffset = math.MaxInt / 4

// position returns the position of query t of batch element b.
func (m *Mask[F]) position(b, t int) int {
	if m.Offsets != nil {
		return t + m.Offsets[b]
	}
	return t + m.Offset
}

// maskReach defines which keys the queries of one batch element see, without Allow and Bias: query t sees key j if
// t−back ≤ j < min(t+ahead, end).
type maskReach struct{ back, ahead, end int }

// reach returns the reach of the queries of batch element b.
func (m *Mask[F]) reach(b int) maskReach {
	r := maskReach{MaxOffset, MaxOffset, m.Shape[3]} // every key
	zero := m.position(b, 0)
	if m.Causal {
		r.ahead = zero + 1
	}
	if w := m.Window; w != nil && w.Right >= 0 {
		r.ahead = min(r.ahead, zero+w.Right+1)
	}
	if w := m.Window; w != nil && w.Left >= 0 {
		r.back = w.Left - zero
	}
	if m.KeyLengths != nil {
		r.end = min(r.end, m.KeyLengths[b])
	}
	if m.Allow != nil {
		r.end = min(r.end, m.AllowShape[3])
	}
	if m.Bias != nil {
		r.end = min(r.end, m.BiasShape[3])
	}
	return r
}

// bounds returns the range of the keys [j0, j0+n) that query t sees. The results count from j0.
func (r maskReach) bounds(t, j0, n int) (from, stop int) {
	stop = max(0, min(t+r.ahead, r.end, j0+n)-j0)
	return min(max(0, t-r.back-j0), stop), stop
}

// span returns the smallest range that contains every key that queries t0 to t1 of batch element b see, without Allow
// and Bias: 0 ≤ start ≤ end ≤ S.
func (m *Mask[F]) span(b, t0, t1 int) (start, end int) {
	r := m.reach(b)
	end = max(0, min(t1-1+r.ahead, r.end))
	start = min(max(0, t0-r.back), end)
	if d := m.Documents; d != nil {
		lo, hi := d.cover(b, m.position(b, t0), m.position(b, t1))
		start, end = overlap(start, end, lo, hi)
	}
	return start, end
}

// queries returns the smallest range that contains every query of batch element b that sees a key from j0 to j1.
func (m *Mask[F]) queries(b, j0, j1 int) (start, end int) {
	r := m.reach(b)
	end = max(0, min(m.Shape[2], j1+r.back))
	start = min(max(0, j0+1-r.ahead), end)
	if d := m.Documents; d != nil {
		zero := m.position(b, 0)
		lo, hi := d.cover(b, j0, j1)
		start, end = overlap(start, end, lo-zero, hi-zero)
	}
	return start, end
}

// query returns the batch element, the head and the index in its head of query r among all queries.
func (m *Mask[F]) query(r int) (b, h, t int) {
	heads, queries := m.Shape[1], m.Shape[2]
	return r / (heads * queries), r / queries % heads, r % queries
}

// scored reports whether the mask may change a score within a query's span.
func (m *Mask[F]) scored() bool {
	return m.Allow != nil || m.Bias != nil || m.Slopes != nil || m.Blocks != nil || m.Documents != nil && m.Documents.scattered
}

// apply adds slope and bias to the scores of query (b, h, t) for the keys from j0 on, which must be in the query's
// span. It sets the scores of forbidden keys to −Inf.
func (m *Mask[F]) apply(scores []F, b, h, t, j0 int) {
	if len(scores) == 0 {
		return
	}
	body := bodyOf[F]()
	if m.Slopes != nil {
		addSlope(body, scores, m.Slopes[h], m.position(b, t)-j0)
	}
	if m.Bias != nil {
		body.addBias(scores, m.Bias[broadcastRow(m.BiasShape, b, h, t)+j0:][:len(scores)])
	}
	if m.Allow != nil {
		body.forbid(scores, m.Allow[broadcastRow(m.AllowShape, b, h, t)+j0:][:len(scores)])
	}
	if m.Blocks != nil {
		hideBlocks(m.Blocks, scores, m.position(b, t), j0)
	}
	if d := m.Documents; d != nil && d.scattered {
		forbidOthers(d, scores, b, m.position(b, t), j0)
	}
}

// addSlope subtracts slope·|d − i| from element i of x.
func addSlope[F Float](body *body[F], x []F, slope F, d int) {
	exact := min(1<<53, math.MaxInt) // F can represent every integer up to here
	if portable.Is32[F]() {
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

// broadcastRow returns the index at which row (b, h, t) begins in a tensor of the given shape. An axis of size 1
// broadcasts.
func broadcastRow(shape [4]int, b, h, t int) int {
	row := 0
	for i, j := range [3]int{b, h, t} {
		row *= shape[i]
		if shape[i] > 1 {
			row += j
		}
	}
	return row * shape[3]
}

// SumBroadcast sums x, whose shape is large, over each of the first three axes that has size 1 in small. It writes the
// result to sum, whose shape is small. If the last axis of small is shorter, SumBroadcast ignores the elements of x
// past its end.
func SumBroadcast[F Float](sum, x []F, small, large [4]int) {
	clear(sum)
	width, keys := small[3], large[3]
	for b := range large[0] {
		for h := range large[1] {
			for t := range large[2] {
				Axpy(sum[broadcastRow(small, b, h, t):][:width], 1, x[((b*large[1]+h)*large[2]+t)*keys:][:width])
			}
		}
	}
}
