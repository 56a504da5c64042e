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
	body, inGo := bodyOf[F](), vectorPortable[F]()
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
				inGo.scoreGrad(wantG, wantP, less, least)
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
