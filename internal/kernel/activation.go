package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// ReLU sets y to max(0, x). For this and the other activations, y may be x itself.
func ReLU[F Float](cores int, y, x []F) { runUnary(cores, bodyOf[F]().relu, 1, y, x) }

// ReLUGrad sets dx to g where x is above 0, and to 0 elsewhere.
func ReLUGrad[F Float](cores int, dx, x, g []F) { runBinary(cores, bodyOf[F]().reluGrad, 1, dx, x, g) }

// geluCost is the cost of GELU per element, where an addition costs 1.
const geluCost = 8

// GELU sets y to x·Φ(x) = x·(1 + erf(x/√2))/2. In float32 the error is below 2⁻²⁰·|x|, and below 2⁻²⁰·|y| for x ≥ −1.
func GELU[F Float](cores int, y, x []F) { runUnary(cores, bodyOf[F]().gelu, geluCost, y, x) }

// GELUGrad sets dx to g·(Φ(x) + x·φ(x)), and to 0 where g is 0. In float32 the error is below 2⁻²¹·|g|.
func GELUGrad[F Float](cores int, dx, x, g []F) {
	runBinary(cores, bodyOf[F]().geluGrad, geluCost, dx, x, g)
}

// GELUTanh sets y to the tanh approximation of x·Φ(x). In float32 the error is below 2⁻²⁰·|x|, and below 2⁻²⁰·|y| for
// x ≥ −1.
func GELUTanh[F Float](cores int, y, x []F) { runUnary(cores, bodyOf[F]().geluTanh, geluCost, y, x) }

// GELUTanhGrad sets dx to g times the derivative of GELUTanh, and to 0 where g is 0. In float32 the error is below
// 2⁻²¹·|g|.
func GELUTanhGrad[F Float](cores int, dx, x, g []F) {
	runBinary(cores, bodyOf[F]().geluTanhGrad, geluCost, dx, x, g)
}

// Tanh sets y to tanh(x). For the error, see Softcap. y may be x.
func Tanh[F Float](cores int, y, x []F) { Softcap(cores, y, x, 1) }

// TanhGrad sets dx to g·(1 − y²), where y is the result of Tanh, and to 0 where g is 0. dx may be y or g.
func TanhGrad[F Float](cores int, dx, y, g []F) { SoftcapGrad(cores, dx, y, g, 1) }

// siluCost is the cost of SiLU per element, where an addition costs 1.
const siluCost = 4

// SiLU sets y to x·σ(x), for σ(x) = exp(x)/(1 + exp(x)). In float32 the error is below 2⁻²¹·|x|, and below 2⁻²¹·|y| for
// x ≥ −1. y may be x.
func SiLU[F Float](cores int, y, x []F) { runUnary(cores, bodyOf[F]().silu, siluCost, y, x) }

// SiLUGrad sets dx to g·σ(x)·(1 + x·(1 − σ(x))), and to 0 where g is 0. In float32 the error is below 2⁻²¹·|g|. dx may
// be x or g.
func SiLUGrad[F Float](cores int, dx, x, g []F) {
	runBinary(cores, bodyOf[F]().siluGrad, siluCost, dx, x, g)
}

// Sigmoid sets y to σ(x) = 1/(1 + exp(−x)) = 1/2 + tanh(x/2)/2. y may be x.
func Sigmoid[F Float](cores int, y, x []F) {
	runLoop[F](cores, sigmoidLoop[F]{}, len(y)*softcapCost, &loopWork[F]{n: len(y), step: grain / softcapCost, out: y, x: x})
}

type sigmoidLoop[F Float] struct{}

func (sigmoidLoop[F]) run(w *loopWork[F], lo, hi int) {
	y := w.out[lo:hi]
	w.body.softcap(y, w.x[lo:hi], 2)
	for i, v := range y {
		y[i] = v/4 + 1.0/2
	}
}

// SigmoidGrad sets dx to g·y·(1 − y), where y is the result of Sigmoid, and to 0 where g is 0. dx may be y or g.
func SigmoidGrad[F Float](cores int, dx, y, g []F) {
	runLoop[F](cores, sigmoidGradLoop[F]{}, 2*len(dx), &loopWork[F]{n: len(dx), step: grain / 2, out: dx, x: y, y: g})
}

type sigmoidGradLoop[F Float] struct{}

func (sigmoidGradLoop[F]) run(w *loopWork[F], lo, hi int) {
	portable.SigmoidGrad(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi])
}
