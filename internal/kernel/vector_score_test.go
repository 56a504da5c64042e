package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// TestVectorScoreGrad compares every body with the Go function, bit by bit, for every length up to 100. The weights
// include numbers near tiny, NaN and infinities.
func TestVectorScoreGrad(t *testing.T) {
	eachBody(t, testScoreGrad[float32], testScoreGrad[float64])
}

func testScoreGrad[F Float](t *testing.T) {
	body, portable := bodyOf[F](), vectorPortable[F]()
	bits := func(x F) uint64 {
		if x != x {
			return 1 // the same for all kinds of NaN
		}
		return math.Float64bits(float64(x))
	}
	inf, nan := F(math.Inf(1)), F(math.NaN())
	const tiny = 0x1p-100
	weights := []F{0, 1, tiny, 0x1p-101, 0x1p-140, 0.3, nan, inf, 0x1p-99}
	grads := []F{0, F(math.Copysign(0, -1)), 1.5, -2, 0x1p127, 0x1p-140, nan, inf, -inf}
	r := rand.New(rand.NewPCG(testseed.Of(t), 10))
	var o operands[F]
	for n := range 101 {
		for _, less := range []F{0, 0.7, -0x1p127, inf, nan} {
			for _, least := range []F{0, tiny} {
				p, g := o.random(t, n), o.random(t, n)
				for i := range p {
					if r.IntN(3) > 0 {
						p[i], g[i] = weights[r.IntN(len(weights))], grads[r.IntN(len(grads))]
					}
				}
				wantP, wantG := slices.Clone(p), slices.Clone(g)
				portable.scoreGrad(wantG, wantP, less, least)
				oldP, oldG := slices.Clone(p), slices.Clone(g)
				body.scoreGrad(g, p, less, least)
				what := fmt.Sprintf("%d elements, less %v, tiny %v", n, less, least)
				for i := range p {
					if bits(p[i]) != bits(wantP[i]) || bits(g[i]) != bits(wantG[i]) {
						t.Fatalf("%s: weight %v and gradient %v become %v and %v, want %v and %v", what, oldP[i], oldG[i], p[i], g[i], wantP[i], wantG[i])
					}
				}
				o.intact(t, what)
			}
		}
	}
}

// TestScoreGradPortable tests single weights and gradients.
func TestScoreGradPortable(t *testing.T) {
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
		scoreGradPortable(g, p, c.less, c.tiny)
		if !same(p[0], c.wantP) || !same(g[0], c.wantG) {
			t.Errorf("%v: weight %v and gradient %v, want %v and %v", c, p[0], g[0], c.wantP, c.wantG)
		}
	}
}
