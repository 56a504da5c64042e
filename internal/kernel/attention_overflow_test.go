package kernel

import (
	"math"
	"testing"
)

// TestAttentionOverflows tests finite operands whose products are infinite, and slopes that give weights of NaN.
// Products of masked keys and unused queries must not affect any result.
func TestAttentionOverflows(t *testing.T) {
	fill := func(x []float32, value float32) {
		for i := range x {
			x[i] = value
		}
	}
	score := func(c *attentionCase[float32]) {
		fill(c.q.from(0, 0, 1)[:4], 1e30)
		fill(c.k.from(0, 0, 2)[:4], 1e30)
	}
	slope := func(slope float64) func(c *attentionCase[float32]) {
		return func(c *attentionCase[float32]) {
			c.a.Mask.Slopes = []float32{0.5, float32(slope)}
			for j := range 6 {
				c.v.from(0, 1, j)[1] = 0 // one element of each value
			}
		}
	}
	for name, spoil := range map[string]func(c *attentionCase[float32]){
		"score": func(c *attentionCase[float32]) {
			score(c)
			c.dout.from(0, 0, 1)[0] = 0 // keeps a column of dV finite
		},
		"score of a query that no loss reads": func(c *attentionCase[float32]) {
			score(c)
			clear(c.dout.from(0, 0, 1)[:3])
		},
		"masked value": func(c *attentionCase[float32]) {
			c.a.Mask.AllowShape, c.a.Mask.Allow = [4]int{1, 1, 1, 6}, []bool{true, true, false, true, true, true}
			fill(c.v.from(0, 1, 2)[:3], 1e30)
			fill(c.dout.from(0, 1, 3)[:3], 1e10)
		},
		"slope of NaN": slope(math.NaN()), "slope of +Inf": slope(math.Inf(1)), "slope of -Inf": slope(math.Inf(-1)),
	} {
		t.Run(name, func(t *testing.T) {
			c := newAttentionCase[float32](3, [4]int{1, 2, 5, 6}, 4, 3, false)
			spoil(c)
			c.run()
			c.check(t, 1e-5)
		})
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
