package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An exponential writes the exponential function, computed as in kernel.exp32: exp(x) = 2ⁿ·exp(r) with x = n·ln 2 + r
// and |r| ≤ ½·ln 2. It computes exp(r) by Taylor's polynomial, of degree 7 in float32 and 13 in float64. The remainder
// is below r⁸/8!·√2 < 2⁻²⁷ or r¹⁴/14!·√2 < 2⁻⁵⁷.
type exponential struct {
	*isa
	least, most  reg.VecVirtual // beyond these limits, the result is 0 or +Inf
	ln2Hi, ln2Lo float64
	coefs        []float64 // from the highest degree down
}

func (v *isa) newExp() exponential {
	e := v.boundedExp()
	if v.bits == 32 {
		e.least, e.most = v.load(v.constant(-104)), v.load(v.constant(89))
	} else {
		e.least, e.most = v.load(v.constant(-746)), v.load(v.constant(710))
	}
	return e
}

// boundedExp returns an exponential without the limits least and most, for arguments that are always within them.
func (v *isa) boundedExp() exponential {
	e := exponential{isa: v}
	degree := 7
	if v.bits == 32 {
		e.ln2Hi = float64(float32(math.Ln2))
		e.ln2Lo = math.Ln2 - e.ln2Hi
	} else {
		degree = 13
		e.ln2Hi = math.Ln2
		e.ln2Lo = 0x1.abc9e3b39803fp-56 // ln 2 − ln2Hi
	}
	e.coefs = make([]float64, degree+1)
	c := 1.0
	for i := range e.coefs {
		e.coefs[degree-i] = c
		c /= float64(i + 1)
	}
	return e
}

// value returns exp(x). It overwrites x.
func (e exponential) value(x reg.VecVirtual) reg.VecVirtual {
	v := e.isa
	v.max(x, e.least, x)
	v.min(x, e.most, x)
	n := e.split(x)
	p := v.polynomial(x, e.coefs)
	if v.wide() {
		VSCALEFPS(n, p, p)
		return p
	}
	// 2ⁿ may overflow or underflow where the result doesn't, so multiply in two steps.
	half := v.r()
	if v.bits == 32 {
		VCVTPS2DQ(n, n)
		VPSRAD(U8(1), n, half)
		VPSUBD(half, n, n)
		for _, h := range []reg.VecVirtual{half, n} {
			VPADDD(v.pattern(127), h, h)
			VPSLLD(U8(23), h, h)
			VMULPS(h, p, p)
		}
		return p
	}
	whole, part := XMM(), XMM()
	VCVTPD2DQY(n, whole)
	VPSRAD(U8(1), whole, part)
	VPSUBD(part, whole, whole)
	for _, h := range []reg.VecVirtual{part, whole} {
		VPMOVSXDQ(h, n)
		VPADDQ(v.pattern(1023), n, n)
		VPSLLQ(U8(52), n, n)
		VMULPD(n, p, p)
	}
	return p
}

// split returns n and leaves r in x.
func (e exponential) split(x reg.VecVirtual) (n reg.VecVirtual) {
	v := e.isa
	n = v.r()
	v.mul(v.constant(math.Log2E), x, n)
	switch {
	case v.wide():
		VRNDSCALEPS(U8(0), n, n)
	case v.bits == 32:
		VROUNDPS(U8(0), n, n)
	default:
		VROUNDPD(U8(0), n, n)
	}
	v.fnma(v.constant(e.ln2Hi), n, x)
	v.fnma(v.constant(e.ln2Lo), n, x)
	return n
}

// lessOne returns exp(x) − 1 for x from −40 to 0. As in kernel.tanh32, it is computed as 2ⁿ·(exp(r) − 1) + (2ⁿ − 1), in
// which no digits cancel. lessOne overwrites x.
func (e exponential) lessOne(x reg.VecVirtual) reg.VecVirtual {
	v := e.isa
	n := e.split(x)
	square := v.r()
	v.mul(x, x, square)
	v.fma(v.polynomial(x, e.coefs[:len(e.coefs)-2]), square, x) // exp(r) − 1
	two := v.r()                                                // 2ⁿ, a normal number
	if v.wide() {
		VSCALEFPS(n, v.load(v.constant(1)), two)
	} else {
		VCVTPS2DQ(n, two)
		VPADDD(v.pattern(127), two, two)
		VPSLLD(U8(23), two, two)
	}
	out := v.r()
	v.add(v.constant(-1), two, out)
	v.fma(x, two, out)
	return out
}

// polynomial evaluates a polynomial of x by Horner's rule. The coefficients begin with the highest degree.
func (v *isa) polynomial(x reg.VecVirtual, coefs []float64) reg.VecVirtual {
	p := v.load(v.constant(coefs[0]))
	for _, c := range coefs[1:] {
		v.mad(v.constant(c), x, p)
	}
	return p
}
