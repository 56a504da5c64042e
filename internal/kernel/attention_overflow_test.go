package kernel

import (
	"math"
	"testing"
)

// TestAttentionOverflows tests finite operands whose products are infinite. Products of masked keys and unused queries
// must not affect any result.
func TestAttentionOverflows(t *testing.T) {
	newCase := func() *attentionCase[float32] { return newAttentionCase[float32](3, [4]int{1, 2, 5, 6}, 4, 3, false) }
	fill := func(x []float32, value float32) {
		for i := range x {
			x[i] = value
		}
	}
	t.Run("score", func(t *testing.T) {
		c := newCase()
		fill(c.q.from(0, 0, 1)[:4], 1e30)
		fill(c.k.from(0, 0, 2)[:4], 1e30)
		c.dout.from(0, 0, 1)[0] = 0 // keeps a column of dV finite
		c.run()
		c.check(t, 1e-5)
	})
	t.Run("score of a query that no loss reads", func(t *testing.T) {
		c := newCase()
		fill(c.q.from(0, 0, 1)[:4], 1e30)
		fill(c.k.from(0, 0, 2)[:4], 1e30)
		clear(c.dout.from(0, 0, 1)[:3])
		c.run()
		c.check(t, 1e-5)
	})
	t.Run("masked value", func(t *testing.T) {
		c := newCase()
		c.a.Mask.AllowShape, c.a.Mask.Allow = [4]int{1, 1, 1, 6}, []bool{true, true, false, true, true, true}
		fill(c.v.from(0, 1, 2)[:3], 1e30)
		fill(c.dout.from(0, 1, 3)[:3], 1e10)
		c.run()
		c.check(t, 1e-5)
	})
}

// TestAttentionInfiniteSlope tests slopes that give weights of NaN. One element of each value is 0.
func TestAttentionInfiniteSlope(t *testing.T) {
	for _, slope := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		c := newAttentionCase[float32](3, [4]int{1, 2, 5, 6}, 4, 3, false)
		c.a.Mask.Slopes = []float32{0.5, slope}
		for j := range 6 {
			c.v.from(0, 1, j)[1] = 0
		}
		c.run()
		c.check(t, 1e-5)
	}
}

// TestAttentionDropsNaN puts NaN into a value. If dropout drops this value for a query, the query's output must not
// change.
func TestAttentionDropsNaN(t *testing.T) {
	const queries, bad = 40, 7
	for _, keys := range []int{20, 200} {
		c := newAttentionCase[float32](3, [4]int{1, 1, queries, keys}, 4, 3, false)
		c.a.Dropout = AttentionDropout{P: 0.5, Seed: 1}
		keep := make([]float32, queries*keys)
		DropoutMask(0, keep, 0.5, 1, 0, 0)
		c.a.Forward(0, c.q, c.k, c.v, c.out, c.lse)
		want := append([]float32(nil), c.out.Data...)
		c.v.from(0, 0, bad)[1] = float32(math.NaN())
		c.a.Forward(0, c.q, c.k, c.v, c.out, c.lse)
		for q := range queries {
			for i, x := range c.out.from(0, 0, q)[:3] {
				if dropped := keep[q*keys+bad] == 0; dropped && x != want[3*q+i] || !dropped && i == 1 && x == x {
					t.Errorf("%d keys: element %d of query %d's output is %v with a NaN in a value and %v without; want the same if dropout drops the value, NaN in element 1 if not; dropped: %t", keys, i, q, x, want[3*q+i], dropped)
				}
			}
		}
	}
}
