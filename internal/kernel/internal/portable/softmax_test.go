package portable

import (
	"math"
	"testing"
)

// TestScoreGrad tests single weights and gradients.
func TestScoreGrad(t *testing.T) {
	const tiny = 0x1p-100
	inf, nan := math.Inf(1), math.NaN()
	same := func(x, y float64) bool { return x == y || x != x && y != y }
	for _, c := range []struct{ p, g, less, tiny, wantP, wantG float64 }{
		{0.5, 3, 1, tiny, 0.5, 1},
		{0, nan, 1, tiny, 0, 0}, // masked
		{0, 3, nan, 0, 0, 0},
		{tiny, 3, 1, tiny, tiny, 2 * tiny},
		{tiny / 2, 3, 1, tiny, 0, 0},
		{tiny / 2, 3, 1, 0, tiny / 2, tiny},
		{tiny / 2, inf, 1, tiny, tiny / 2, inf},
		{tiny / 2, 3, inf, tiny, tiny / 2, -inf},
		{tiny / 2, nan, 1, tiny, tiny / 2, nan},
		{nan, 3, 1, tiny, nan, nan},
		{nan, 1, 1, tiny, nan, nan},
	} {
		p, g := []float64{c.p}, []float64{c.g}
		ScoreGrad(g, p, c.less, c.tiny)
		if !same(p[0], c.wantP) || !same(g[0], c.wantG) {
			t.Errorf("%v: weight %v and gradient %v, want %v and %v", c, p[0], g[0], c.wantP, c.wantG)
		}
	}
}
