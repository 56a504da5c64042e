package kernel

// This file holds the building blocks of everything but the matrix product. Each runs on one goroutine, in the best
// body that the processor has. Its result depends on the body, never on the number of workers.

// dotOf returns Σ x[i]·y[i]. y must be at least as long as x.
func dotOf[F Float](x, y []F) F { return vectorOf[F]().dot(x, y[:len(x)]) }

// axpy adds a·x to y, which must be at least as long as x.
func axpy[F Float](y []F, a F, x []F) { vectorOf[F]().axpy(y[:len(x)], x, a) }

// scale multiplies x by a.
func scale[F Float](x []F, a F) { vectorOf[F]().scale(x, a) }

// vectorBody is one way to compute the building blocks. The slices that are written come first. Elementwise, all are of
// one length; a row m of a matrix has the length of the other operands, or the width given. What each function computes
// is said in Go in vector_portable.go.
type vectorBody[F Float] struct {
	name string

	add, mul, skipMul func(out, x, y []F)

	relu, gelu, geluTanh, silu                 func(y, x []F)
	reluGrad, geluGrad, geluTanhGrad, siluGrad func(dx, x, g []F)

	softcap             func(y, x []F, c F)
	softcapGrad         func(dx, y, g []F, c F)
	scoreGrad           func(g, p []F, less, tiny F)
	addSlope            func(x []F, slope, d F)
	addBias             func(x, bias []F)
	forbid              func(x []F, allow []bool)
	rotate, rotatePairs func(y, x, cos, sin []F, sign F, rows, stride int)
	scale               func(x []F, a F)
	axpy                func(y, x []F, a F)
	adamW               func(w, g, first, second []F, f *[9]F)
	dropout             func(keep []F, key0, key1, threshold uint32, scale F)

	maxOf      func(x []F) F
	dot        func(x, y []F) F
	hasNaN     func(x []F) bool
	sumSquares func(x []F) float64
	expShift   func(dst, src []F, shift F) F
	expSum     func(src []F, shift F) F

	addRow        func(m, row []F, rows int)
	sumRows       func(sum, m []F, rows, stride int)
	copyRows      func(dst, src []F, rows, width, dstStride, srcStride int)
	softmax       func(w, scores []F) F
	softmaxGrad   func(ds, w, g []F, width int)
	layerNorm     func(y, x, gamma, beta []F, width, eps F, rows int)
	layerNormGrad func(dx, dgamma, dbeta, x, gamma, g []F, width, eps F, rows int)
	rmsNorm       func(y, x, gamma []F, width F, eps float64, rows int)
	rmsNormGrad   func(dx, dgamma, x, gamma, g []F, width F, eps float64, rows int)
}

// vectorBodies lists what this processor can run, best first.
var (
	vectorBodies32 = append(vectorAsm32(), vectorPortable[float32]())
	vectorBodies64 = append(vectorAsm64(), vectorPortable[float64]())
	vectorBody32   = vectorBodies32[0]
	vectorBody64   = vectorBodies64[0]
)

// vectorOf returns the body in use.
func vectorOf[F Float]() *vectorBody[F] {
	if is32[F]() {
		return any(vectorBody32).(*vectorBody[F])
	}
	return any(vectorBody64).(*vectorBody[F])
}
