package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// TestAttention tests random shapes and options, with some operands that hold NaN or infinities.
func TestAttention(t *testing.T) {
	attentionRounds(t, testseed.Cases(240))
}

// TestAttentionOfEachBody is a shorter TestAttention for each instruction set. The other tests use only the best one.
func TestAttentionOfEachBody(t *testing.T) {
	eachSet(t, func(t *testing.T) { attentionRounds(t, testseed.Cases(60)) })
}

// TestAttentionReach compares a query's bounds within a tile with the mask's span.
func TestAttentionReach(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 12))
	for range 1000 {
		a := Attention[float32]{Mask: Mask[float32]{Shape: [4]int{1 + r.IntN(3), 1, 1 + r.IntN(20), 1 + r.IntN(20)}}}
		a.Mask.random(r)
		a.Mask.Documents = nil // maskSeen considers them
		b, q, j0 := r.IntN(a.Mask.Shape[0]), r.IntN(a.Mask.Shape[2]), r.IntN(a.Mask.Shape[3])
		n := r.IntN(a.Mask.Shape[3]-j0) + 1
		start, end := a.Mask.span(b, q, q+1)
		start, end = min(max(0, start-j0), n), min(max(0, end-j0), n)
		from, stop := a.Mask.reach(b).bounds(q, j0, n)
		if from > stop || stop-from != end-start || stop > from && from != start {
			t.Fatalf("%s: batch element %[3]d, query %[2]d: in the tile of %[6]d keys from %[7]d on, got bounds %[4]d to %[5]d, want the span %[8]d to %[9]d", &a.Mask, q, b, from, stop, n, j0, start, end)
		}
	}
}

func attentionRounds(t *testing.T, rounds int) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 1))
	size := func(small, large int) int {
		if r.IntN(3) == 0 {
			return 1 + r.IntN(large)
		}
		return 1 + r.IntN(small)
	}
	for round := range rounds {
		shape := [4]int{1 + r.IntN(3), 1 + r.IntN(6), size(20, 300), size(20, 300)}
		if r.IntN(4) == 0 {
			shape[2] = 1 + r.IntN(2)
		}
		if product4(shape) > 100_000 {
			shape[0], shape[1] = 1, 1+r.IntN(2)
		}
		groups := 0
		if r.IntN(2) == 0 {
			groups = 1 + r.IntN(shape[1])
			shape[1] -= shape[1] % groups
		}
		width, value, side := size(8, 70), size(8, 70), r.IntN(2) == 0
		poison := r.IntN(3) == 0
		if round%2 == 0 {
			attentionRound(t, r, newGroupedCase[float64](r.Uint64(), shape, groups, width, value, side), poison, 1e-12)
		} else {
			attentionRound(t, r, newGroupedCase[float32](r.Uint64(), shape, groups, width, value, side), poison, 1e-4)
		}
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
}

func attentionRound[F Float](t *testing.T, r *rand.Rand, c *attentionCase[F], poison bool, tol float64) {
	name := c.options(r)
	shape := c.a.Mask.Shape
	if r.IntN(2) == 0 { // the gradient of some queries is 0
		for range 3 {
			clear(c.dout.from(r.IntN(shape[0]), r.IntN(shape[1]), r.IntN(shape[2]))[:c.a.Value])
		}
	}
	if poison {
		bad := []F{F(math.NaN()), F(math.Inf(1)), F(math.Inf(-1))}
		operands := [][]F{c.q.Data, c.k.Data, c.v.Data, c.dout.Data, c.a.Mask.Bias, c.a.Mask.Slopes}
		if d := c.a.Distances; d != nil {
			operands = append(operands, d.Keys, d.Queries)
		}
		for _, x := range operands {
			if len(x) > 0 && r.IntN(3) == 0 {
				x[r.IntN(len(x))] = bad[r.IntN(3)]
			}
		}
	}
	c.run()
	c.check(t, tol)
	if t.Failed() {
		t.Errorf("%T, width %d, value %d, poison %t, %s", F(0), c.a.Width, c.a.Value, poison, name)
	}
}

// TestAttentionSkips puts NaN into many keys and values. It checks that a tile skips the keys and values that none of
// its queries sees.
func TestAttentionSkips(t *testing.T) {
	const length, window, bad = 2000, 50, 1000
	poison := func(c *attentionCase[float32], from, stop int) {
		for j := from; j < stop; j++ {
			c.k.from(0, 0, j)[0], c.v.from(0, 0, j)[0] = float32(math.NaN()), float32(math.NaN())
		}
	}
	finiteFrom := func(what string, rows Rows[float32], first int) {
		t.Helper()
		if anyNaN(rows.from(0, 0, first)) {
			t.Errorf("%s has NaN in the vectors from %d on, want none", what, first)
		}
	}
	t.Run("window", func(t *testing.T) {
		c := newAttentionCase[float32](1, [4]int{1, 1, length, length}, 8, 8, false)
		m := &c.a.Mask
		m.Causal, m.Window = true, &Window{window, -1}
		c.run()
		poison(c, 0, bad)
		c.a.attentionOperands = attentionOperands[float32]{q: c.q, k: c.k, v: c.v, out: c.out, dout: c.dout, lse: c.lse, dq: c.dq, dk: c.dk, dv: c.dv}
		c.a.backward()
		const clean = bad + window + 2*attentionQueries // a tile may exceed what its queries see, by up to a block of queries and a panel of keys
		finiteFrom("dQ", c.dq, clean)
		finiteFrom("dK", c.dk, bad)
		finiteFrom("dV", c.dv, bad)
		c.a.forward()
		finiteFrom("output", c.out, clean)
	})
	t.Run("documents", func(t *testing.T) {
		for _, causal := range []bool{false, true} {
			c := newAttentionCase[float32](1, [4]int{1, 1, length, length}, 8, 8, false)
			numbers := make([]int, length)
			for j := range numbers {
				numbers[j] = (j + 500) / 300 // a document begins at 700 and at 1000
			}
			c.a.Mask.Causal, c.a.Mask.Documents = causal, documents(length, numbers...)
			c.run()
			poison(c, 0, 700-64) // a tile may exceed what its queries see by a panel of keys
			poison(c, 1000, length)
			c.a.attentionOperands = attentionOperands[float32]{q: c.q, k: c.k, v: c.v, out: c.out, dout: c.dout, lse: c.lse, dq: c.dq, dk: c.dk, dv: c.dv}
			c.a.forward()
			if anyNaN(c.out.Data[704*8 : 960*8]) { // the tiles whose queries belong to one document
				t.Errorf("causal %t: the outputs of a document have NaN", causal)
			}
			c.a.backward()
			if anyNaN(c.dq.Data[704*8 : 960*8]) {
				t.Errorf("causal %t: the gradients of a document's queries have NaN", causal)
			}
		}
	})
	t.Run("decoding", func(t *testing.T) {
		for _, queries := range []int{1, 20} {
			c := newAttentionCase[float32](1, [4]int{1, 1, queries, length}, 8, 8, false)
			m := &c.a.Mask
			m.Causal, m.Offset, m.Window = true, 700, &Window{300, -1}
			poison(c, 0, 400)
			poison(c, 700+queries, length)
			c.a.attentionOperands = attentionOperands[float32]{q: c.q, k: c.k, v: c.v, out: c.out, lse: c.lse}
			if c.a.forward() {
				t.Errorf("%d queries: the output has NaN, want none", queries)
			}
		}
	})
}

// TestAttentionDecodes compares the outputs of one call for all queries with calls for one or several queries each.
func TestAttentionDecodes(t *testing.T) {
	const heads, groups, length, width = 4, 2, 150, 16
	whole := newGroupedCase[float64](1, [4]int{2, heads, length, length}, groups, width, width, false)
	whole.a.Mask.Causal, whole.a.Softcap = true, 2
	whole.run()
	for _, part := range []int{1, 3, 50} {
		for first := 0; first < length; first += part {
			c := newGroupedCase[float64](1, [4]int{2, heads, part, length}, groups, width, width, false)
			c.a.Mask.Causal, c.a.Softcap = true, 2
			c.a.Mask.Offsets = []int{first, first}
			for b := range 2 {
				for h := range heads {
					copy(c.q.from(b, h, 0)[:part*width], whole.q.from(b, h, first))
				}
			}
			c.a.Forward(0, c.q, whole.k, whole.v, c.out, c.lse)
			for b := range 2 {
				for h := range heads {
					for i, x := range c.out.from(b, h, 0)[:part*width] {
						if want := whole.out.from(b, h, first)[i]; math.Abs(x-want) > 1e-13 {
							t.Fatalf("%d queries per call, from query %d: %v, want %v", part, first, x, want)
						}
					}
				}
			}
		}
	}
}

// TestAttentionDropsAll drops all weights of some queries. Their output and their contributions to the gradients must
// be 0.
func TestAttentionDropsAll(t *testing.T) {
	for _, keys := range []int{3, 200} {
		c := newAttentionCase[float64](1, [4]int{1, 1, 40, keys}, 4, 4, false)
		c.a.Dropout = AttentionDropout{P: 1 - 1.0/(1<<31), Seed: 1}
		c.k.Data[0] = math.NaN()
		c.run()
		for i, x := range c.results() {
			for _, x := range x {
				if x != 0 {
					t.Fatalf("%d keys: %s has the element %v, want 0", keys, attentionResults[i], x)
				}
			}
		}
	}
}
