package kernel

// siluCost is what an element of SiLU costs, in cheap elements.
const siluCost = 4

// siluOne is from where on exp(−x)·x is nothing beside 1, in float64 too: σ(x) is 1 there, and exp(x) may be infinite
// further on.
const siluOne = 42

// SiLU sets y to x·σ(x), for σ(x) = exp(x)/(1 + exp(x)). y may not be x.
func SiLU[F Float](y, x []F) {
	if len(y) <= grain/siluCost {
		silu(y, x) // a gate's part: nothing is allocated
		return
	}
	divide(len(y), grain/siluCost, len(y)*siluCost, func(lo, hi int) { silu(y[lo:hi], x[lo:hi]) })
}

func silu[F Float](y, x []F) {
	expShift(y, x, 0)
	y = y[:len(x)]
	for i, v := range x {
		if e := y[i]; v > siluOne {
			y[i] = v
		} else {
			y[i] = v * (e / (1 + e))
		}
	}
}

// SiLUGrad sets dx to g·σ(x)·(1 + x·(1 − σ(x))), and to 0 where g is 0. dx may be neither x nor g.
func SiLUGrad[F Float](dx, x, g []F) {
	if len(dx) <= grain/siluCost {
		siluGrad(dx, x, g)
		return
	}
	divide(len(dx), grain/siluCost, len(dx)*siluCost, func(lo, hi int) { siluGrad(dx[lo:hi], x[lo:hi], g[lo:hi]) })
}

func siluGrad[F Float](dx, x, g []F) {
	expShift(dx, x, 0)
	dx, g = dx[:len(x)], g[:len(x)]
	for i, v := range x {
		switch e := dx[i]; {
		case g[i] == 0:
			dx[i] = 0
		case v > siluOne:
			dx[i] = g[i]
		default:
			rest := 1 / (1 + e) // 1 − σ(x)
			dx[i] = g[i] * (e * rest * (1 + v*rest))
		}
	}
}
