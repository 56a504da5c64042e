package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (v *isa) sums() {
	v.function("maxOf", "x []F) F", "returns the largest element, −Inf if there are none, or NaN if any is NaN.")
	x, n := ptr("x"), size("x")
	v.setMask(n)
	v.inBytes(n)
	ret(v.maxLoop(n, x))

	v.function("dot", "x, y []F) F", "returns Σ x·y.")
	x, n, y := ptr("x"), size("x"), ptr("y")
	v.setMask(n)
	v.inBytes(n)
	acc := v.partials(4)
	v.each(n, 4, func(s span) {
		for u := range s.vecs {
			d := s.get(x, u)
			if s.part {
				v.fma(s.get(y, u), d, acc[u])
			} else {
				v.fma(s.mem(y, u), d, acc[u])
			}
		}
	})
	ret(v.reduce(v.add, acc...))

	v.function("dots", "x, y, z []F) (a, b F)", "returns Σ x·y and Σ x·z, each added up in the order of dot. It reads two places of memory at once.")
	x, n, y = ptr("x"), size("x"), ptr("y")
	z := ptr("z")
	v.setMask(n)
	v.inBytes(n)
	acc, acc2 := v.partials(4), v.partials(4)
	v.each(n, 4, func(s span) {
		for u := range s.vecs {
			d := s.get(x, u)
			if s.part {
				v.fma(s.get(y, u), d, acc[u])
				v.fma(s.get(z, u), d, acc2[u])
			} else {
				v.fma(s.mem(y, u), d, acc[u])
				v.fma(s.mem(z, u), d, acc2[u])
			}
		}
	})
	Store(v.reduce(v.add, acc...).AsX(), ReturnIndex(0))
	Store(v.reduce(v.add, acc2...).AsX(), ReturnIndex(1))
	end()
}

// hasNaN writes a search for NaN.
func (v *isa) hasNaN() {
	v.function("hasNaN", "x []F) bool", "reports whether an element is NaN.")
	x, n := ptr("x"), size("x")
	v.setMask(n)
	v.inBytes(n)
	acc := v.partials(4)
	v.each(n, 4, func(s span) {
		for u := range s.vecs {
			v.noteNaN(s.get(x, u), acc[u])
		}
	})
	o := v.reduce(v.or, acc...)
	yes := GP32()
	VMOVD(o.AsX(), yes)
	TESTL(yes, yes)
	SETNE(yes.As8())
	Store(yes.As8(), ReturnIndex(0))
	end()
}

// lowest returns a vector of −Inf in memory.
func (v *isa) lowest() Mem {
	if v.bits == 32 {
		return v.pattern(0xff800000)
	}
	return v.pattern(0xfff0000000000000)
}

// noteNaN sets a lane of acc to all ones, which is a NaN, if x is NaN in that lane.
func (v *isa) noteNaN(x, acc reg.VecVirtual) {
	if !v.wide() {
		m := v.r()
		v.do(VCMPPS, VCMPPD, unordered, x, x, m)
		VORPS(m, acc, acc)
		return
	}
	VCMPPS(unordered, x, x, reg.K2)
	VPTERNLOGD(U8(0xff), acc, acc, reg.K2, acc)
}

// maxLoop returns the largest element, or NaN.
func (v *isa) maxLoop(n, x reg.GPVirtual) reg.VecVirtual {
	odd := v.partials(2) // NaN in the lanes in which x has had NaN, 0 elsewhere
	largest := several(len(odd), func() reg.VecVirtual { return v.load(v.lowest()) })
	v.each(n, 2, func(s span) { v.maxStep(s, x, largest, odd) })
	return v.maxOf(largest, odd)
}

func (v *isa) maxOf(largest, odd []reg.VecVirtual) reg.VecVirtual {
	m, o := v.reduce(v.max, largest...), v.reduce(v.add, odd...)
	v.add(o, m, m)
	return m
}

// maxStep updates the largest elements with a span of x, and notes NaN.
func (v *isa) maxStep(s span, x reg.GPVirtual, largest, odd []reg.VecVirtual) {
	for u := range s.vecs {
		d := s.get(x, u)
		v.noteNaN(d, odd[u])
		if s.part {
			s.fillPast(largest[u], d)
		}
		v.max(d, largest[u], largest[u])
	}
}

// sumSquares writes the function that adds up squares, in four vectors of partial sums in float64.
func (v *isa) sumSquares() {
	v.function("sumSquares", "x []F) float64", "returns Σ x², added up in float64.")
	x, n := ptr("x"), size("x")
	v.setMask(n)
	v.inBytes(n)
	acc := v.partials(4)
	double := *v
	double.bits = 64
	v.each(n, 2, func(s span) {
		for u := range s.vecs {
			d := s.get(x, u)
			lo, hi := v.r(), v.r()
			if v.wide() {
				top := YMM()
				VCVTPS2PD(d.AsY(), lo)
				VEXTRACTF64X4(U8(1), d, top)
				VCVTPS2PD(top, hi)
			} else {
				top := XMM()
				VCVTPS2PD(d.AsX(), lo)
				VEXTRACTF128(U8(1), d, top)
				VCVTPS2PD(top, hi)
			}
			double.fma(lo, lo, acc[2*u])
			double.fma(hi, hi, acc[2*u+1])
		}
	})
	ret(double.reduce(double.add, acc...))
}
