package kernel

import "math"

// ReLU sets y to max(0, x). For this and the other activations, y may be x itself.
func ReLU[F Float](cores int, y, x []F) { runUnary(cores, bodyOf[F]().relu, 1, y, x) }

// ReLUGrad sets dx to g where x is above 0, and to 0 elsewhere.
func ReLUGrad[F Float](cores int, dx, x, g []F) { runBinary(cores, bodyOf[F]().reluGrad, 1, dx, x, g) }

func reluPortable[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		if v > 0 || v != v {
			y[i] = v
		} else {
			y[i] = 0
		}
	}
}

func reluGradPortable[F Float](dx, x, g []F) {
	x, g = x[:len(dx)], g[:len(dx)]
	for i, v := range x {
		if v > 0 {
			dx[i] = g[i]
		} else {
			dx[i] = 0
		}
	}
}

// geluCost is the cost of GELU per element, where an addition costs 1.
const geluCost = 8

// GELU sets y to x·Φ(x) = x·(1 + erf(x/√2))/2. In float32 the error is below 2⁻²⁰·|x|, and below 2⁻²⁰·|y| for x ≥ −1.
func GELU[F Float](cores int, y, x []F) { runUnary(cores, bodyOf[F]().gelu, geluCost, y, x) }

// GELUGrad sets dx to g·(Φ(x) + x·φ(x)), and to 0 where g is 0. In float32 the error is below 2⁻²¹·|g|.
func GELUGrad[F Float](cores int, dx, x, g []F) {
	runBinary(cores, bodyOf[F]().geluGrad, geluCost, dx, x, g)
}

// The tanh approximation of GELU: y = x/2·(1 + tanh(c·(x + a·x³))) = x/(1 + exp(−2·c·(x + a·x³))).
const (
	geluC = 0.7978845608028654 // √(2/π)
	geluA = 0.044715
)

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

// normalCDF returns Φ(x), the distribution function of the standard normal, and exp(−x²/2).
func normalCDF[F Float](x F) (cdf, bell F) {
	if is32[F]() {
		c, b := normalCDF32(float32(x))
		return F(c), F(b)
	}
	v := float64(x)
	return F((1 + math.Erf(v/math.Sqrt2)) / 2), F(math.Exp(-v * v / 2))
}

// normalTail holds the coefficients of t, t², … in a polynomial that approximates Φ(−x)·exp(x²/2) for 0 ≤ x ≤ 14.5,
// where t = 1/(1 + 0.3·x). Remez's algorithm has minimised its largest relative error, which is below 2⁻²⁸. For larger
// x, exp(−x²/2) is 0 in float32.
var normalTail = [10]float32{
	0.1196866898, 0.1195718143, 0.1102354209, 0.07838966811, 0.09615677753,
	-0.07942338682, 0.1917844076, -0.2282135038, 0.1124355721, -0.02062346147,
}

func normalCDF32(x float32) (cdf, bell float32) {
	bell = exp32(-0.5 * x * x)
	t := 1 / (1 + 0.3*float32(math.Abs(float64(x))))
	var tail float32
	for i := range normalTail {
		tail = tail*t + normalTail[len(normalTail)-1-i]
	}
	tail *= t * bell
	if math.Signbit(float64(x)) {
		return tail, bell
	}
	return 1 - tail, bell
}

func geluPortable[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		cdf, _ := normalCDF(v)
		y[i] = v * cdf
	}
}

func geluGradPortable[F Float](dx, x, g []F) {
	x, g = x[:len(dx)], g[:len(dx)]
	for i, v := range x {
		if g[i] == 0 {
			dx[i] = 0
			continue
		}
		cdf, bell := normalCDF(v)
		dx[i] = g[i] * (cdf + v*(bell*0.3989422804014327)) // 1/√(2π)
	}
}

// geluSigmoid returns s = 1/(1 + e) and e = exp(−2·c·(x + a·x³)).
func geluSigmoid[F Float](x F) (s, e F) {
	e = expOf(x * (-2*geluC - 2*geluC*geluA*(x*x)))
	return 1 / (1 + e), e
}

func geluTanhPortable[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		s, _ := geluSigmoid(v)
		y[i] = v * s
	}
}

func geluTanhGradPortable[F Float](dx, x, g []F) {
	x, g = x[:len(dx)], g[:len(dx)]
	for i, v := range x {
		if g[i] == 0 {
			dx[i] = 0
			continue
		}
		v = max(min(v, 10), -10) // for larger |v|, the derivative is 1 or 0
		s, e := geluSigmoid(v)
		dx[i] = g[i] * (s + v*(s*e*s)*(2*geluC+6*geluC*geluA*(v*v))) // s·e is 1 − s
	}
}

// siluCost is the cost of SiLU per element, where an addition costs 1.
const siluCost = 4

// For x above siluOne, σ(x) and the derivative of SiLU round to 1, even in float64. The formulas with exp(x) would fail
// for large x, where exp(x) is infinite.
const siluOne = 42

// SiLU sets y to x·σ(x), for σ(x) = exp(x)/(1 + exp(x)). In float32 the error is below 2⁻²¹·|x|, and below 2⁻²¹·|y| for
// x ≥ −1. y may be x.
func SiLU[F Float](cores int, y, x []F) { runUnary(cores, bodyOf[F]().silu, siluCost, y, x) }

func siluPortable[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = siluOf(v, expOf(v))
	}
}

// siluOf returns SiLU of x, from e = exp(x).
func siluOf[F Float](x, e F) F {
	if x > siluOne {
		return x
	}
	return x * (e / (1 + e))
}

// SiLUGrad sets dx to g·σ(x)·(1 + x·(1 − σ(x))), and to 0 where g is 0. In float32 the error is below 2⁻²¹·|g|. dx may
// be x or g.
func SiLUGrad[F Float](cores int, dx, x, g []F) {
	runBinary(cores, bodyOf[F]().siluGrad, siluCost, dx, x, g)
}

func siluGradPortable[F Float](dx, x, g []F) {
	x, g = x[:len(dx)], g[:len(dx)]
	for i, v := range x {
		dx[i] = siluGradOf(v, expOf(v), g[i])
	}
}

// siluGradOf returns g times the derivative of SiLU at x, from e = exp(x).
func siluGradOf[F Float](x, e, g F) F {
	switch {
	case g == 0:
		return 0
	case x > siluOne:
		return g
	}
	rest := 1 / (1 + e) // 1 − σ(x)
	return g * (e * rest * (1 + x*rest))
}
