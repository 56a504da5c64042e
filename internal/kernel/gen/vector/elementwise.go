package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unary writes an elementwise function of one slice.
func (v *isa) unary(name, doc string, f func(s span, x reg.VecVirtual) reg.VecVirtual) {
	v.function(name, "y, x []F)", doc)
	y, n, x := ptr("y"), size("y"), ptr("x")
	v.setMask(n)
	v.inBytes(n)
	v.each(n, 2, func(s span) {
		for u := range s.vecs {
			s.put(f(s, s.get(x, u)), y, u)
		}
	})
	end()
}

// binary writes an elementwise function of two slices.
func (v *isa) binary(name, doc string, f func(s span, x, y reg.VecVirtual) reg.VecVirtual) {
	v.function(name, "out, x, y []F)", doc)
	out, n, x, y := ptr("out"), size("out"), ptr("x"), ptr("y")
	v.setMask(n)
	v.inBytes(n)
	v.each(n, 2, func(s span) {
		for u := range s.vecs {
			s.put(f(s, s.get(x, u), s.get(y, u)), out, u)
		}
	})
	end()
}

// keepWhere sets z to zero in the lanes where a comparison of x with y is false.
func (v *isa) keepWhere(how Op, y Op, x, z reg.VecVirtual) {
	if v.wide() {
		VCMPPS(how, y, x, reg.K2)
		v.keep(reg.K2, z)
		return
	}
	m := v.r()
	v.do(VCMPPS, VCMPPD, how, y, x, m)
	VANDPS(m, z, z)
}

// keep sets z to zero in the lanes whose bit in k is 0. It is only for AVX-512.
func (v *isa) keep(k reg.OpmaskPhysical, z reg.VecVirtual) { VMOVAPS_Z(z, k, z) }

// setWhere sets z to a in the lanes where a comparison of x with y is true.
func (v *isa) setWhere(how Op, y Op, x, a, z reg.VecVirtual) {
	if v.wide() {
		VCMPPS(how, y, x, reg.K2)
		VMOVAPS(a, reg.K2, z)
		return
	}
	m := v.r()
	v.do(VCMPPS, VCMPPD, how, y, x, m)
	v.blend(m, a, z, z)
}

// Comparisons.
const (
	equal     = U8(0)
	unordered = U8(3)    // one is NaN
	notEqual  = U8(4)    // or one is NaN
	notLess   = U8(5)    // or one is NaN
	greater   = U8(0x1e) // and neither is NaN
)

func (v *isa) elementwise() {
	v.binary("add", "sets out to x + y.", func(s span, x, y reg.VecVirtual) reg.VecVirtual {
		v.add(y, x, x)
		return x
	})

	v.binary("mul", "sets out to x·y.", func(s span, x, y reg.VecVirtual) reg.VecVirtual {
		v.mul(y, x, x)
		return x
	})

	v.binary("skipMul", "sets out to x·y, and to 0 where y is 0.", func(s span, x, y reg.VecVirtual) reg.VecVirtual {
		v.mul(y, x, x)
		v.keepWhere(notEqual, v.zero(), y, x)
		return x
	})

	v.unary("relu", "sets y to max(0, x).", func(s span, x reg.VecVirtual) reg.VecVirtual {
		zero := v.zero()
		v.max(x, zero, x)
		v.add(zero, x, x) // −0 becomes 0
		return x
	})

	v.function("reluGrad", "dx, x, g []F)", "sets dx to g where x > 0, and to 0 elsewhere.")
	dx, n, x, g := ptr("dx"), size("dx"), ptr("x"), ptr("g")
	v.setMask(n)
	v.inBytes(n)
	zero := v.zero()
	v.each(n, 2, func(s span) {
		for u := range s.vecs {
			d := s.get(g, u)
			v.keepWhere(greater, zero, s.get(x, u), d)
			s.put(d, dx, u)
		}
	})
	end()

	v.function("scale", "x []F, a F)", "multiplies x by a.")
	x, n = ptr("x"), size("x")
	a := v.arg("a")
	v.setMask(n)
	v.inBytes(n)
	v.each(n, 2, func(s span) {
		for u := range s.vecs {
			d := s.get(x, u)
			v.mul(a, d, d)
			s.put(d, x, u)
		}
	})
	end()

	v.function("axpy", "y, x []F, a F)", "adds a·x to y.")
	y, x, n := ptr("y"), ptr("x"), size("x")
	a = v.arg("a")
	v.setMask(n)
	v.inBytes(n)
	v.each(n, 2, func(s span) {
		for u := range s.vecs {
			d := s.get(y, u)
			v.fma(s.get(x, u), a, d)
			s.put(d, y, u)
		}
	})
	end()
}

// adamW writes AdamW's update. The factors are in the order of adamFactors.
func (v *isa) adamW() {
	v.function("adamW", "w, g, first, second []F, f *[9]F)", "updates weights and running means by AdamW's rule.")
	w, n, g, m1, m2 := ptr("w"), size("w"), ptr("g"), ptr("first"), ptr("second")
	f := word("f")
	factor := func(i int) reg.VecVirtual { return v.broadcast(Mem{Base: f, Disp: i * v.bits / 8}) }
	scale, b1, c1, b2, c2 := factor(0), factor(1), factor(2), factor(3), factor(4)
	keep, rate, root, eps := factor(5), factor(6), factor(7), factor(8)
	v.setMask(n)
	v.inBytes(n)
	v.each(n, 1, func(s span) {
		d, m, q, x := s.get(g, 0), s.get(m1, 0), s.get(m2, 0), s.get(w, 0)
		v.mul(scale, d, d)
		v.mul(b1, m, m)
		v.fma(d, c1, m)
		s.put(m, m1, 0)
		v.mul(d, d, d)
		v.mul(b2, q, q)
		v.fma(d, c2, q)
		s.put(q, m2, 0)
		v.sqrt(q, q)
		v.mad(eps, root, q)
		v.mul(rate, m, m)
		v.div(q, m, m)
		v.mul(keep, x, x)
		v.sub(m, x, x)
		s.put(x, w, 0)
	})
	end()
}
