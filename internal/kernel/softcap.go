package kernel

import "math"

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

// softcap is Softcap on one goroutine.
func softcap[F Float](y, x []F, c F) { bodyOf[F]().softcap(y, x[:len(y)], c) }

// softcapGrad is SoftcapGrad on one goroutine.
func softcapGrad[F Float](dx, y, g []F, c F) {
	bodyOf[F]().softcapGrad(dx, y[:len(dx)], g[:len(dx)], c)
}

func softcapPortable[F Float](y, x []F, c F) {
	x = x[:len(y)]
	if is32[F]() {
		for i, v := range x {
			y[i] = c * F(tanh32(float32(v/c)))
		}
		return
	}
	for i, v := range x {
		y[i] = c * F(math.Tanh(float64(v/c)))
	}
}

func softcapGradPortable[F Float](dx, y, g []F, c F) {
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
