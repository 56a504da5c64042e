package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// attentionCase is operands and results of attention.
type attentionCase[F Float] struct {
	a                              *Attention[F]
	q, k, v, out, dout, dq, dk, dv Rows[F]
	lse, dbias                     []F
}

// newAttentionCase makes random operands.
func newAttentionCase[F Float](seed uint64, shape [4]int, width, value int, side bool) *attentionCase[F] {
	b, h, t, s := shape[0], shape[1], shape[2], shape[3]
	rows := func(i uint64, length, width int) Rows[F] {
		data := normals[F](seed+i, b*h*length*width)
		if side {
			return SideRows(data, h, length, width)
		}
		return HeadRows(data, h, length, width)
	}
	return &attentionCase[F]{
		a: &Attention[F]{Mask: Mask[F]{Shape: shape}, Width: width, Value: value, Scale: F(1 / math.Sqrt(float64(width)))},
		q: rows(1, t, width), k: rows(2, s, width), v: rows(3, s, value), out: rows(4, t, value), dout: rows(5, t, value),
		dq: rows(6, t, width), dk: rows(7, s, width), dv: rows(8, s, value), lse: make([]F, b*h*t),
	}
}

func (c *attentionCase[F]) run() {
	c.a.Forward(c.q, c.k, c.v, c.out, c.lse)
	c.a.Backward(c.q, c.k, c.v, c.out, c.dout, c.lse, c.dq, c.dk, c.dv, c.dbias)
}

func (c *attentionCase[F]) results() [][]F {
	return [][]F{c.out.Data, c.dq.Data, c.dk.Data, c.dv.Data, c.dbias}
}

// naive is the results from the formulas, one query after the other, where zero times anything is zero.
func (c *attentionCase[F]) naive() [][]F {
	n := *c
	n.a = &Attention[F]{Mask: c.a.Mask, Width: c.a.Width, Value: c.a.Value, Scale: c.a.Scale}
	for _, r := range []*Rows[F]{&n.out, &n.dq, &n.dk, &n.dv} {
		r.Data = make([]F, len(r.Data))
	}
	n.dbias = make([]F, len(c.dbias))
	shape := c.a.Mask.Shape
	scores, w, g := make([]F, shape[3]), make([]F, shape[3]), make([]F, shape[3])
	for b := range shape[0] {
		for h := range shape[1] {
			for t := range shape[2] {
				q, dout := c.q.from(b, h, t)[:c.a.Width], c.dout.from(b, h, t)[:c.a.Value]
				for j := range scores {
					scores[j] = c.a.Scale * dotPortable(q, c.k.from(b, h, j)[:c.a.Width])
				}
				end, allow, bias := c.a.Mask.row(b, h, t)
				maskedSoftmaxRow(w, scores[:max(0, end)], allow, bias)
				var less F
				for j, p := range w {
					g[j] = skipDot(dout, c.v.from(b, h, j))
					skipAxpy(n.out.from(b, h, t)[:c.a.Value], p, c.v.from(b, h, j))
					skipAxpy(n.dv.from(b, h, j)[:c.a.Value], p, dout)
					if p != 0 && g[j] != 0 {
						less += p * g[j]
					}
				}
				for j, p := range w {
					d := g[j] - less
					if p == 0 || d == 0 {
						continue
					}
					d *= p
					if c.dbias != nil {
						n.dbias[broadcastRow(c.a.Mask.BiasShape, b, h, t)+j] += d
					}
					skipAxpy(n.dq.from(b, h, t)[:c.a.Width], d*c.a.Scale, c.k.from(b, h, j))
					skipAxpy(n.dk.from(b, h, j)[:c.a.Width], d*c.a.Scale, q)
				}
			}
		}
	}
	return n.results()
}

var attentionResults = []string{"output", "dQ", "dK", "dV", "dbias"}

// check compares with naive: NaN and infinities must be the same, all else within tol of the largest.
func (c *attentionCase[F]) check(t *testing.T, tol float64) {
	t.Helper()
	want := c.naive()
	for i, got := range c.results() {
		most := 1.0
		for _, x := range want[i] {
			if finite(x) {
				most = max(most, math.Abs(float64(x)))
			}
		}
		for j, x := range got {
			w := want[i][j]
			if x == w || x != x && w != w {
				continue
			}
			if d := math.Abs(float64(x - w)); !(d <= tol*most) {
				t.Errorf("%s: element %d is %v, want %v", attentionResults[i], j, x, w)
				return
			}
		}
	}
}

// mask adds some options to a case, and returns what they are.
func (c *attentionCase[F]) mask(r *rand.Rand) string {
	m := &c.a.Mask
	broadcast := func() [4]int {
		s := m.Shape
		for i := range 3 {
			if r.IntN(2) == 0 {
				s[i] = 1
			}
		}
		if r.IntN(3) == 0 {
			s[3] = 1 + r.IntN(s[3])
		}
		return s
	}
	m.Causal = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		m.Lengths = make([]int, m.Shape[0])
		for i := range m.Lengths {
			m.Lengths[i] = r.IntN(m.Shape[3] + 1)
		}
	}
	if r.IntN(3) == 0 {
		m.AllowShape = broadcast()
		m.Allow = make([]bool, product4(m.AllowShape))
		for i := range m.Allow {
			m.Allow[i] = r.IntN(4) > 0
		}
	}
	if r.IntN(3) == 0 {
		m.BiasShape = broadcast()
		m.Bias = normals[F](r.Uint64(), product4(m.BiasShape))
		for i := range m.Bias {
			if r.IntN(4) == 0 {
				m.Bias[i] = F(math.Inf(-1))
			}
		}
		if r.IntN(4) > 0 {
			c.dbias = make([]F, len(m.Bias))
		}
	}
	return fmt.Sprintf("causal %t, lengths %v, allow %v, bias %v (gradient %t)", m.Causal, m.Lengths, m.AllowShape, m.BiasShape, c.dbias != nil)
}

func product4(s [4]int) int { return s[0] * s[1] * s[2] * s[3] }

// TestAttention draws shapes and masks, and some operands that aren't finite.
func TestAttention(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	size := func(small, large int) int {
		if r.IntN(3) == 0 {
			return 1 + r.IntN(large)
		}
		return 1 + r.IntN(small)
	}
	for round := range rounds {
		shape := [4]int{1 + r.IntN(3), 1 + r.IntN(3), size(20, 300), size(20, 300)}
		if product4(shape) > 100_000 {
			shape[0], shape[1] = 1, 1
		}
		width, value, side := size(8, 70), size(8, 70), r.IntN(2) == 0
		poison := r.IntN(3) == 0
		if round%2 == 0 {
			attentionRound[float64](t, r, shape, width, value, side, poison, 1e-12)
		} else {
			attentionRound[float32](t, r, shape, width, value, side, poison, 5e-5)
		}
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
}

func attentionRound[F Float](t *testing.T, r *rand.Rand, shape [4]int, width, value int, side, poison bool, tol float64) {
	c := newAttentionCase[F](r.Uint64(), shape, width, value, side)
	name := c.mask(r)
	if r.IntN(2) == 0 { // some queries that no loss looks at
		for range 3 {
			clear(c.dout.from(r.IntN(shape[0]), r.IntN(shape[1]), r.IntN(shape[2]))[:value])
		}
	}
	if poison {
		bad := []F{F(math.NaN()), F(math.Inf(1)), F(math.Inf(-1))}
		for _, x := range [][]F{c.q.Data, c.k.Data, c.v.Data, c.dout.Data} {
			if r.IntN(3) == 0 {
				x[r.IntN(len(x))] = bad[r.IntN(3)]
			}
		}
	}
	c.run()
	c.check(t, tol)
	if t.Failed() {
		t.Errorf("%T, shape %v, width %d, value %d, side by side %t, poison %t, %s", F(0), shape, width, value, side, poison, name)
	}
}

// TestAttentionIsTheSameBits for every number of workers, in shapes that are divided in every way.
func TestAttentionIsTheSameBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, shape := range [][4]int{{1, 1, 300, 300}, {1, 3, 500, 500}, {2, 5, 130, 257}, {30, 2, 16, 16}} {
		for _, bias := range []bool{false, true} {
			c := newAttentionCase[float32](1, shape, 32, 16, true)
			c.a.Mask.Causal = true
			if bias {
				c.a.Mask.BiasShape = [4]int{1, 1, shape[2], shape[3]}
				c.a.Mask.Bias = normals[float32](4, shape[2]*shape[3])
				c.dbias = make([]float32, len(c.a.Mask.Bias))
			}
			var want [][]float32
			for _, procs := range []int{1, 2, 3} {
				runtime.GOMAXPROCS(procs)
				c.run()
				var got [][]float32
				for _, x := range c.results() {
					got = append(got, append([]float32(nil), x...))
				}
				if want == nil {
					want = got
				}
				for i := range want {
					for j := range want[i] {
						if math.Float32bits(got[i][j]) != math.Float32bits(want[i][j]) {
							t.Fatalf("%v, bias %t: %s differs with GOMAXPROCS %d", shape, bias, attentionResults[i], procs)
						}
					}
				}
			}
		}
	}
}

// TestAttentionAllocatesNothing once it has its memory, and that is linear in the length.
func TestAttentionAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops what pools hold")
	}
	for _, shape := range [][4]int{{32, 2, 16, 16}, {1, 1, 300, 300}} {
		c := newAttentionCase[float32](1, shape, 16, 16, true)
		c.a.Mask.Causal = true
		c.run()
		if n := testing.AllocsPerRun(20, c.run); n > 1 {
			t.Errorf("%v: %v allocations a run", shape, n)
		}
	}
}

// TestAttentionMemoryIsLinear allocates for 16,384 queries and keys, at once and in a run.
func TestAttentionMemoryIsLinear(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("some seconds")
	}
	const length, width = 16384, 8
	c := newAttentionCase[float32](1, [4]int{1, 1, length, length}, width, width, false)
	c.a.Mask.Causal = true
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.run()
	runtime.ReadMemStats(&after)
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(10*4*length*width+4<<20); got > limit {
		t.Errorf("allocated %d bytes, want at most %d: the scores would be %d", got, limit, 4*length*length)
	}
}
