package kernel

import "math"

// AdamStep holds the constants of one AdamW step.
type AdamStep struct {
	Rate         float64 // learning rate
	Beta1, Beta2 float64
	Eps          float64
	Decay        float64 // weight decay
	GradScale    float64 // factor of the gradients, applied first
	Correct1     float64 // 1/(1 − β₁ᵗ)
	Correct2     float64 // 1/(1 − β₂ᵗ)
}

// AdamW updates the weights w and the running means first and second from the gradient g (Loshchilov and Hutter, 2017,
// algorithm 2).
func AdamW[F Float](cores int, w, g, first, second []F, s AdamStep) {
	const cost = 4
	runLoop[F](cores, adamLoop[F]{}, cost*len(w), &loopWork[F]{
		n: len(w), step: grain / cost, out: w, x: g, y: first, z: second, factors: adamFactors[F](s),
	})
}

type adamLoop[F Float] struct{}

func (adamLoop[F]) run(w *loopWork[F], lo, hi int) {
	w.body.adamW(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi], w.z[lo:hi], &w.factors)
}

// adamFactors returns the factors of an update, in the order that the assembly expects.
func adamFactors[F Float](s AdamStep) [9]F {
	return [9]F{
		F(s.GradScale), F(s.Beta1), F(1 - s.Beta1), F(s.Beta2), F(1 - s.Beta2),
		F(1 - s.Rate*s.Decay), F(s.Rate * s.Correct1), F(math.Sqrt(s.Correct2)), F(s.Eps),
	}
}
