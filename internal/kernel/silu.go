package kernel

// siluCost is what an element of SiLU costs, in cheap elements.
const siluCost = 4

// siluOne is from where on exp(−x)·x is nothing beside 1, in float64 too: σ(x) is 1 there, and exp(x) may be infinite
// further on.
const siluOne = 42

// SiLU sets y to x·σ(x), for σ(x) = exp(x)/(1 + exp(x)). In float32 the error is below 2⁻²¹·|x|, and below
// 2⁻²¹·|y| for x ≥ −1. y may be x.
func SiLU[F Float](y, x []F) {
	spread[F](siluPart[F]{}, len(y)*siluCost, &vectorWork[F]{n: len(y), step: grain / siluCost, out: y, x: x})
}

type siluPart[F Float] struct{}

func (siluPart[F]) do(w *vectorWork[F], lo, hi int) { w.body.silu(w.out[lo:hi], w.x[lo:hi]) }

func siluPortable[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		if v > siluOne {
			y[i] = v
		} else {
			e := expOf(v)
			y[i] = v * (e / (1 + e))
		}
	}
}

// SiLUGrad sets dx to g·σ(x)·(1 + x·(1 − σ(x))), and to 0 where g is 0. In float32 the error is below 2⁻²¹·|g|. dx may
// be x or g.
func SiLUGrad[F Float](dx, x, g []F) {
	spread[F](siluGradPart[F]{}, len(dx)*siluCost, &vectorWork[F]{n: len(dx), step: grain / siluCost, out: dx, x: x, y: g})
}

type siluGradPart[F Float] struct{}

func (siluGradPart[F]) do(w *vectorWork[F], lo, hi int) {
	w.body.siluGrad(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi])
}

func siluGradPortable[F Float](dx, x, g []F) {
	x, g = x[:len(dx)], g[:len(dx)]
	for i, v := range x {
		switch {
		case g[i] == 0:
			dx[i] = 0
		case v > siluOne:
			dx[i] = g[i]
		default:
			e := expOf(v)
			rest := 1 / (1 + e) // 1 − σ(x)
			dx[i] = g[i] * (e * rest * (1 + v*rest))
		}
	}
}
