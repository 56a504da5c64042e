package portable

import "math"

// Relu sets y to max(0, x), and to NaN where x is NaN.
func Relu[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		if v > 0 || v != v {
			y[i] = v
		} else {
			y[i] = 0
		}
	}
}

// ReluGrad sets dx to g where x > 0, and to 0 elsewhere.
func ReluGrad[F Float](dx, x, g []F) {
	x, g = x[:len(dx)], g[:len(dx)]
	for i, v := range x {
		if v > 0 {
			dx[i] = g[i]
		} else {
			dx[i] = 0
		}
	}
}

// normalCDF returns Φ(x), the distribution function of the standard normal, and exp(−x²/2).
func normalCDF[F Float](x F) (cdf, bell F) {
	if Is32[F]() {
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

// Gelu sets y to x·Φ(x).
func Gelu[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		cdf, _ := normalCDF(v)
		y[i] = v * cdf
	}
}

// GeluGrad sets dx to g·(Φ(x) + x·φ(x)), and to 0 where g is 0.
func GeluGrad[F Float](dx, x, g []F) {
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

// The tanh approximation of GELU: y = x/2·(1 + tanh(c·(x + a·x³))) = x/(1 + exp(−2·c·(x + a·x³))).
const (
	geluC = 0.7978845608028654 // √(2/π)
	geluA = 0.044715
)

// geluSigmoid returns s = 1/(1 + e) and e = exp(−2·c·(x + a·x³)).
func geluSigmoid[F Float](x F) (s, e F) {
	e = exp(x * (-2*geluC - 2*geluC*geluA*(x*x)))
	return 1 / (1 + e), e
}

// GeluTanh sets y to the tanh approximation of x·Φ(x).
func GeluTanh[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		s, _ := geluSigmoid(v)
		y[i] = v * s
	}
}

// GeluTanhGrad sets dx to g times the derivative of GeluTanh, and to 0 where g is 0.
func GeluTanhGrad[F Float](dx, x, g []F) {
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

// For x above siluOne, σ(x) and the derivative of SiLU round to 1, even in float64. The formulas with exp(x) would fail
// for large x, where exp(x) is infinite.
const siluOne = 42

// Silu sets y to x·exp(x)/(1 + exp(x)).
func Silu[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = SiluOf(v, exp(v))
	}
}

// SiluOf returns SiLU of x, from e = exp(x).
func SiluOf[F Float](x, e F) F {
	if x > siluOne {
		return x
	}
	return x * (e / (1 + e))
}

// SiluGrad sets dx to g·σ(x)·(1 + x·(1 − σ(x))), and to 0 where g is 0.
func SiluGrad[F Float](dx, x, g []F) {
	x, g = x[:len(dx)], g[:len(dx)]
	for i, v := range x {
		dx[i] = SiluGradOf(v, exp(v), g[i])
	}
}

// SiluGradOf returns g times the derivative of SiLU at x, from e = exp(x).
func SiluGradOf[F Float](x, e, g F) F {
	switch {
	case g == 0:
		return 0
	case x > siluOne:
		return g
	}
	rest := 1 / (1 + e) // 1 − σ(x)
	return g * (e * rest * (1 + x*rest))
}

// Softcap sets y to c·tanh(x/c).
func Softcap[F Float](y, x []F, c F) {
	x = x[:len(y)]
	if Is32[F]() {
		for i, v := range x {
			y[i] = c * F(tanh32(float32(v/c)))
		}
		return
	}
	for i, v := range x {
		y[i] = c * F(math.Tanh(float64(v/c)))
	}
}

// SoftcapGrad sets dx to g·(1 − (y/c)²), and to 0 where g is 0.
func SoftcapGrad[F Float](dx, y, g []F, c F) {
	y, g = y[:len(dx)], g[:len(dx)]
	for i, v := range g {
		if v == 0 {
			dx[i] = 0
			continue
		}
		r := y[i] / c
		dx[i] = v * ((1 - r) * (1 + r))
	}
}

// SigmoidGrad sets dx to g·y·(1 − y), where y is σ(x), and to 0 where g is 0.
func SigmoidGrad[F Float](dx, y, g []F) {
	y, g = y[:len(dx)], g[:len(dx)]
	for i, v := range y {
		dx[i] = SkipProduct(g[i], v*(1-v))
	}
}

// tanh32 returns tanh(x) with an error of at most 3 ulp. It uses tanh |x| = −e/(2 + e) with e = exp(−2·|x|) − 1 =
// 2ⁿ·(exp(r) − 1) + (2ⁿ − 1); for n and r, see exp32. No digits cancel, not even near 0.
func tanh32(x float32) float32 {
	const (
		round = 3 << 22
		ln2Hi = 0x1.63p-1
		ln2Lo = math.Ln2 - ln2Hi
		sign  = 1 << 31
	)
	bits := math.Float32bits(x)
	v := math.Float32frombits(bits &^ sign)
	if v > 10 { // for larger v, the result is 1
		v = 10
	}
	v *= -2
	n := v*math.Log2E + round - round
	r := v - n*ln2Hi - n*ln2Lo
	r2 := r * r
	low := 1.0/2 + r*(1.0/6) + r2*(1.0/24+r*(1.0/120))
	p := r2*(low+r2*r2*(1.0/720+r*(1.0/5040))) + r
	two := math.Float32frombits(uint32(int32(n)+127) << 23)
	e := two*p + (two - 1)
	return math.Float32frombits(math.Float32bits(e/(2+e))&^sign | bits&sign)
}
