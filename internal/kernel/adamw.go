package kernel

import "math"

// AdamStep are the constants of one AdamW step.
type AdamStep struct {
	Rate         float64 // learning rate
	Beta1, Beta2 float64
	Eps          float64
	Decay        float64 // weight decay
	GradScale    float64 // what gradients are multiplied by first
	Correct1     float64 // 1/(1 − β₁ᵗ)
	Correct2     float64 // 1/(1 − β₂ᵗ)
}

// AdamW updates weights w by their gradient g, with running means first and second, and sets g to zero (Loshchilov and
// Hutter, 2017, algorithm 2).
func AdamW[F Float](w, g, first, second []F, s AdamStep) {
	b1, b2 := F(s.Beta1), F(s.Beta2)
	c1, c2 := F(1-s.Beta1), F(1-s.Beta2)
	keep := F(1 - s.Rate*s.Decay)
	rate, root, eps, scale := F(s.Rate*s.Correct1), F(math.Sqrt(s.Correct2)), F(s.Eps), F(s.GradScale)
	split(len(w), grain, func(lo, hi int) {
		w, g, first, second := w[lo:hi], g[lo:hi], first[lo:hi], second[lo:hi]
		for i, d := range g {
			d *= scale
			m := b1*first[i] + c1*d
			v := b2*second[i] + c2*d*d
			first[i], second[i] = m, v
			w[i] = keep*w[i] - rate*m/(F(math.Sqrt(float64(v)))*root+eps)
			g[i] = 0
		}
	})
}

// SumSquares is the sum of the squares of x, added up in float64.
func SumSquares[F Float](x []F) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}
