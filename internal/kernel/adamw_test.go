package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestVectorAdamW compares a few steps of AdamW with the same steps in float64, for every length up to 70.
func TestVectorAdamW(t *testing.T) {
	eachBody(t, func(t *testing.T) { testAdamW[float32](t, 2e-6) }, func(t *testing.T) { testAdamW[float64](t, 1e-14) })
}

func testAdamW[F Float](t *testing.T, tol float64) {
	var o operands[F]
	for n := range 71 {
		w, g, first, second := o.random(t, n), o.random(t, n), o.random(t, n), o.random(t, n)
		clear(first)
		clear(second)
		w64, first64, second64 := wide(w), wide(first), wide(second)
		for step := 1.0; step < 4; step++ {
			copy(g, normals[F](uint64(step), n))
			s := AdamStep{
				Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-6, Decay: 0.1, GradScale: 0.5,
				Correct1: 1 / (1 - math.Pow(0.9, step)), Correct2: 1 / (1 - math.Pow(0.99, step)),
			}
			for i := range w64 {
				d := 0.5 * float64(g[i])
				first64[i] = 0.9*first64[i] + 0.1*d
				second64[i] = 0.99*second64[i] + 0.01*d*d
				w64[i] -= 0.1 * 0.1 * w64[i]
				w64[i] -= 0.1 * first64[i] * s.Correct1 / (math.Sqrt(second64[i]*s.Correct2) + 1e-6)
			}
			AdamW(0, w, g, first, second, s)
			closeTo(t, fmt.Sprintf("%d weights", n), w, w64, tol)
			closeTo(t, "gradients", g, wide(normals[F](uint64(step), n)), 0)
		}
		o.intact(t, "adamW")
	}
}
