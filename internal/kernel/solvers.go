package kernel

import "math"

// Spread calls do(i) for each item i from 0 to n − 1, on several cores if possible. The argument cost is the cost of
// all items, where an addition costs 1. A call of do may itself divide its work. Spread allocates memory.
func Spread(cores, n, cost int, do func(i int)) {
	runRanges(cores, n, 1, cost, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			do(i)
		}
	})
}

// SGDStep holds the constants of one step of gradient descent.
type SGDStep struct {
	Rate, Momentum, Decay float64
	GradScale             float64 // gradients are multiplied by it first
	Nesterov              bool
}

// SGD updates the weights w from the gradient g, which it overwrites. If s.Momentum isn't 0, velocity is the decaying
// sum of gradients (Sutskever et al., 2013, in PyTorch's form: the learning rate multiplies the velocity, and weight
// decay is part of the gradient). Otherwise velocity is not used.
func SGD[F Float](cores int, w, g, velocity []F, s SGDStep) {
	b := bodyOf[F]()
	runElements(cores, len(w), 4, func(lo, hi int) {
		w, g := w[lo:hi], g[lo:hi]
		step := g
		if s.GradScale != 1 {
			b.scale(g, F(s.GradScale))
		}
		if s.Decay != 0 {
			b.axpy(g, w, F(s.Decay))
		}
		if s.Momentum != 0 {
			v := velocity[lo:hi]
			b.scale(v, F(s.Momentum))
			b.add(v, v, g)
			if s.Nesterov {
				b.axpy(g, v, F(s.Momentum))
			} else {
				step = v
			}
		}
		b.axpy(w, step, F(-s.Rate))
	})
}

// Adam is like AdamW, but adds weight decay to the gradient g, so the decay also affects the running means (Kingma and
// Ba, 2015). With weight decay, it overwrites g.
func Adam[F Float](cores int, w, g, first, second []F, s AdamStep) {
	if s.Decay != 0 {
		b := bodyOf[F]()
		runElements(cores, len(w), 2, func(lo, hi int) {
			b.scale(g[lo:hi], F(s.GradScale))
			b.axpy(g[lo:hi], w[lo:hi], F(s.Decay))
		})
		s.GradScale, s.Decay = 1, 0
	}
	AdamW(cores, w, g, first, second, s)
}

// LionStep holds the constants of one step of Lion.
type LionStep struct {
	Rate, Beta1, Beta2, Decay float64
	GradScale                 float64 // gradients are multiplied by it first
}

// Lion updates the weights w and the running mean from the gradient g (Chen et al., 2023, algorithm 2).
func Lion[F Float](cores int, w, g, mean []F, s LionStep) {
	scale, b1, c1, b2, c2 := F(s.GradScale), F(s.Beta1), F(1-s.Beta1), F(s.Beta2), F(1-s.Beta2)
	keep, rate := F(1-s.Rate*s.Decay), float64(F(s.Rate))
	runElements(cores, len(w), 4, func(lo, hi int) {
		w, g, mean := w[lo:hi], g[lo:hi], mean[lo:hi]
		for i, d := range g {
			d *= scale
			var step F
			if towards := b1*mean[i] + c1*d; towards != 0 {
				step = F(math.Copysign(rate, float64(towards)))
			}
			w[i] = keep*w[i] - step
			mean[i] = b2*mean[i] + c2*d
		}
	})
}

// Approach moves y towards x by the fraction a of the distance: y = (1 − a)·y + a·x.
func Approach[F Float](cores int, y, x []F, a float64) {
	b := bodyOf[F]()
	runElements(cores, len(y), 2, func(lo, hi int) { approach(b, y[lo:hi], x[lo:hi], a) })
}

func approach[F Float](b *body[F], y, x []F, a float64) {
	b.scale(y, F(1-a))
	b.axpy(y, x, F(a))
}

// ScaleClamp multiplies the elements of x by scale, then limits them to [−limit, limit].
func ScaleClamp[F Float](cores int, x []F, scale, limit float64) {
	a, m := F(scale), F(limit)
	runElements(cores, len(x), 1, func(lo, hi int) {
		for i, v := range x[lo:hi] {
			x[lo+i] = min(max(a*v, -m), m)
		}
	})
}
