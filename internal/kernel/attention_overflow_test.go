package kernel

import "testing"

// TestAttentionOverflows has finite operands whose products aren't. They count where they are seen, and nowhere else.
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
		c.dout.from(0, 0, 1)[0] = 0 // so that a column of dV stays finite
		c.run()
		c.check(t, 1e-5)
	})
	t.Run("score of a query that no loss looks at", func(t *testing.T) {
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
