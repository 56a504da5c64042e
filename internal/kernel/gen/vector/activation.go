package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The Go versions of these functions are in internal/kernel/activation.go.

// normalCoefs holds kernel.normalTail in reverse order: the highest degree first, and a last 0 for the constant term.
var normalCoefs = []float64{
	-0.02062346147, 0.1124355721, -0.2282135038, 0.1917844076, -0.07942338682, 0.09615677753, 0.07838966811, 0.1102354209,
	0.1195718143, 0.1196866898, 0,
}

// normal returns Φ(x) and exp(−x²/2).
func (v *isa) normal(e exponential, x reg.VecVirtual) (cdf, bell reg.VecVirtual) {
	q := v.r()
	v.mul(v.constant(-0.5), x, q)
	v.mul(x, q, q)
	bell = e.value(q)
	t, one := v.r(), v.load(v.constant(1))
	v.and(v.pattern(1<<31-1), x, t)
	v.mul(v.constant(0.3), t, t)
	v.add(one, t, t)
	v.div(t, one, t)
	tail := v.polynomial(t, normalCoefs)
	v.mul(bell, tail, tail)
	cdf = v.r()
	v.sub(tail, one, cdf)
	if v.wide() {
		v.testAny(v.pattern(1<<31), x)
		VBLENDMPS(tail, cdf, reg.K2, cdf)
	} else {
		VBLENDVPS(x, tail, cdf, cdf)
	}
	return cdf, bell
}

func (v *isa) activations() {
	var e exponential
	grad := func(name, doc string, slope func(x reg.VecVirtual) reg.VecVirtual) {
		v.function(name, "dx, x, g []F)", doc)
		dx, n, x, g := ptr("dx"), size("dx"), ptr("x"), ptr("g")
		v.setMask(n)
		v.inBytes(n)
		e = v.newExp()
		v.each(n, 1, func(s span) {
			y, d := slope(s.get(x, 0)), s.get(g, 0)
			v.mul(d, y, y)
			v.keepWhere(notEqual, v.zero(), d, y)
			s.put(y, dx, 0)
		})
		end()
	}
	value := func(name, doc string, f func(x reg.VecVirtual) reg.VecVirtual) {
		v.function(name, "y, x []F)", doc)
		y, n, x := ptr("y"), size("y"), ptr("x")
		v.setMask(n)
		v.inBytes(n)
		e = v.newExp()
		v.each(n, 1, func(s span) { s.put(f(s.get(x, 0)), y, 0) })
		end()
	}

	// limited returns min(x, 42): for larger x, exp(−x)·x is smaller than the rounding error of 1, so the limit doesn't
	// change results.
	limited := func(x reg.VecVirtual) reg.VecVirtual {
		z := v.r()
		v.min(x, v.load(v.constant(42)), z)
		return z
	}
	value("silu", "sets y to x·exp(x)/(1 + exp(x)).", func(x reg.VecVirtual) reg.VecVirtual {
		bell := e.value(limited(x))
		s := v.r()
		v.add(v.constant(1), bell, s)
		v.div(s, bell, s)
		v.mul(x, s, s)
		return s
	})
	grad("siluGrad", "sets dx to g·σ(x)·(1 + x·(1 − σ(x))), and to 0 where g is 0.", func(x reg.VecVirtual) reg.VecVirtual {
		x = limited(x)
		bell, one := e.value(limited(x)), v.load(v.constant(1))
		rest := v.r() // 1 − σ(x)
		v.add(one, bell, rest)
		v.div(rest, one, rest)
		v.mul(rest, bell, bell)
		v.mad(one, rest, x)
		v.mul(x, bell, bell)
		return bell
	})
	value("gelu", "sets y to x·Φ(x).", func(x reg.VecVirtual) reg.VecVirtual {
		cdf, _ := v.normal(e, x)
		v.mul(x, cdf, cdf)
		return cdf
	})
	grad("geluGrad", "sets dx to g·(Φ(x) + x·φ(x)), and to 0 where g is 0.", func(x reg.VecVirtual) reg.VecVirtual {
		cdf, bell := v.normal(e, x)
		v.mul(v.constant(0.3989422804014327), bell, bell)
		v.fma(x, bell, cdf)
		return cdf
	})

	const c, a = 0.7978845608028654, 0.044715 // c is √(2/π), a is the factor of x³
	// sigmoid returns bell = exp(−2·c·(x + a·x³)) and s = 1/(1 + bell).
	sigmoid := func(x reg.VecVirtual) (s, bell reg.VecVirtual) {
		u := v.r()
		v.mul(x, x, u)
		v.mul(v.constant(-2*c*a), u, u)
		v.add(v.constant(-2*c), u, u)
		v.mul(x, u, u)
		bell = e.value(u)
		one := v.load(v.constant(1))
		s = v.r()
		v.add(bell, one, s)
		v.div(s, one, s)
		return s, bell
	}
	value("geluTanh", "sets y to x/(1 + exp(−2·c·(x + a·x³))).", func(x reg.VecVirtual) reg.VecVirtual {
		s, _ := sigmoid(x)
		v.mul(x, s, s)
		return s
	})
	grad("geluTanhGrad", "sets dx to g times the derivative of geluTanh, and to 0 where g is 0.", func(x reg.VecVirtual) reg.VecVirtual {
		v.max(x, v.load(v.constant(-10)), x) // for larger |x|, the derivative is 1 or 0
		v.min(x, v.load(v.constant(10)), x)
		s, bell := sigmoid(x)
		slope := v.r() // derivative of the exponent: 2·c·(1 + 3·a·x²)
		v.mul(x, x, slope)
		v.mul(v.constant(6*c*a), slope, slope)
		v.add(v.constant(2*c), slope, slope)
		v.mul(s, bell, bell) // 1 − s
		v.mul(s, bell, bell)
		v.mul(x, bell, bell)
		v.fma(slope, bell, s)
		return s
	})
}

// dropout writes the function that sets each element to 0 or to scale. It computes the same random bits as
// kernel.dropoutBits.
func (v *isa) dropout() {
	v.function("dropout", "keep []F, key0, key1, threshold uint32, scale F)", "sets element i of keep to 0 where dropoutBits(i, key0, key1) < threshold, and to scale elsewhere.")
	keep, n, scale := ptr("keep"), size("keep"), v.arg("scale")
	spread := func(name string) reg.VecVirtual {
		x, z := XMM(), v.r()
		VMOVD(Load(Param(name), GP32()), x)
		VPBROADCASTD(x, z)
		return z
	}
	x, key1, threshold := spread("key0"), spread("key1"), spread("threshold")
	sign := v.pattern(1 << 31)
	if !v.wide() { // AVX2 has only signed comparisons
		VPXOR(sign, threshold, threshold)
	}
	const golden = 0x9e3779b9
	count := GLOBL("vectorGolden"+v.name, RODATA|NOPTR)
	for i := range v.lanes {
		DATA(4*i, U32(uint32(i)*golden))
	}
	step := v.load(v.pattern(uint64(uint32(v.lanes) * golden & 0xffffffff)))
	VPADDD(count, x, x)
	v.setMask(n)
	v.inBytes(n)
	mixes := func(y reg.VecVirtual, shift int, factor uint64) {
		z := v.r()
		VPSRLD(U8(shift), y, z)
		v.xor(z, y)
		if factor != 0 {
			if m := v.pattern(factor); v.wide() {
				VPMULLD_BCST(m, y, y)
			} else {
				VPMULLD(m, y, y)
			}
		}
	}
	v.each(n, 1, func(s span) {
		y := v.r()
		v.move(x, y)
		VPADDD(step, x, x)
		mixes(y, 16, 0x21f0aaad)
		v.xor(key1, y)
		mixes(y, 15, 0xd35a2d97)
		mixes(y, 15, 0)
		out := v.r()
		if v.wide() {
			VPCMPUD(U8(5), threshold, y, reg.K2) // not less
			VMOVAPS_Z(scale, reg.K2, out)
		} else {
			VPXOR(sign, y, y)
			VPCMPGTD(y, threshold, out)
			VANDNPS(scale, out, out)
		}
		s.put(out, keep, 0)
	})
	end()
}

func (v *isa) xor(y, x reg.VecVirtual) {
	if v.wide() {
		VPXORD(y, x, x)
	} else {
		VPXOR(y, x, x)
	}
}
