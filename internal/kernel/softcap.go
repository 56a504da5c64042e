package kernel

// softcapCost is the cost of Softcap per element, where an addition costs 1.
const softcapCost = 8

// Softcap sets y to c·tanh(x/c), for a finite c above 0. The result is nearly x for small x, and always from −c to c.
// ±Inf gives ±c, and NaN gives NaN. The error is at most 4 ulp, unless x/c is subnormal. y may be x.
func Softcap[F Float](cores int, y, x []F, c F) {
	runLoop[F](cores, softcapLoop[F]{}, len(y)*softcapCost, &loopWork[F]{n: len(y), step: grain / softcapCost, out: y, x: x, a: c})
}

type softcapLoop[F Float] struct{}

func (softcapLoop[F]) run(w *loopWork[F], lo, hi int) {
	w.body.softcap(w.out[lo:hi], w.x[lo:hi], w.a)
}

// SoftcapGrad sets dx to g·(1 − (y/c)²), where y is the result of Softcap, and to 0 where g is 0. dx may be y or
// g.
func SoftcapGrad[F Float](cores int, dx, y, g []F, c F) {
	runLoop[F](cores, softcapGradLoop[F]{}, 2*len(dx), &loopWork[F]{n: len(dx), step: grain / 2, out: dx, x: y, y: g, a: c})
}

type softcapGradLoop[F Float] struct{}

func (softcapGradLoop[F]) run(w *loopWork[F], lo, hi int) {
	w.body.softcapGrad(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi], w.a)
}
