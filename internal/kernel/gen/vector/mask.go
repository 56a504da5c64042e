package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// masks writes the functions that apply a mask to a row of scores.
func (v *isa) masks() {
	v.function("addSlope", "x []F, slope, d F)", "subtracts slope·|d − i| from element i of x. F must hold all d − i exactly.")
	x, n := ptr("x"), size("x")
	slope, d := v.arg("slope"), v.arg("d")
	v.sub(v.count(), d, d)
	step := v.load(v.constant(float64(v.lanes)))
	v.setMask(n)
	v.inBytes(n)
	v.each(n, 1, func(s span) {
		z, far := s.get(x, 0), v.r()
		v.and(v.pattern(v.sign()-1), d, far)
		v.sub(step, d, d)
		v.mul(slope, far, far)
		v.sub(far, z, z)
		s.put(z, x, 0)
	})
	end()

	v.function("addBias", "x, bias []F)", "adds bias to x, and sets x to −Inf where bias is −Inf, even if x is NaN.")
	x, n, bias := ptr("x"), size("x"), ptr("bias")
	v.setMask(n)
	v.inBytes(n)
	low := v.load(v.lowest())
	v.each(n, 1, func(s span) {
		for u := range s.vecs {
			z, b := s.get(x, u), s.get(bias, u)
			v.add(b, z, z)
			v.setWhere(equal, low, b, low, z)
			s.put(z, x, u)
		}
	})
	end()

	v.function("forbid", "x []F, allow []bool)", "sets x to −Inf where allow is false.")
	x, n, allow := ptr("x"), size("x"), ptr("allow")
	v.setMask(n)
	v.inBytes(n)
	low = v.load(v.lowest())
	none := v.zero()
	i := GP64() // the byte of the element at s.off
	v.each(n, 1, func(s span) {
		MOVQ(s.off, i)
		SHRQ(v.shift(), i)
		from, dst := Mem{Base: allow, Index: i, Scale: 1}, s.mem(x, 0)
		if s.part && !v.wide() { // AVX2 has no masked load of bytes
			v.forbidEach(s, n, i, from, dst, low)
			return
		}
		z, yes := s.get(x, 0), v.r()
		switch {
		case !s.part:
			VPMOVZXBD(from, yes)
		default:
			VPMOVZXBD_Z(from, reg.K1, yes)
		}
		if v.wide() {
			VPTESTNMD(yes, yes, reg.K2)
			VMOVAPS(low, reg.K2, z)
		} else {
			VPCMPEQD(none, yes, yes)
			v.blend(yes, low, z, z)
		}
		s.putMem(z, dst)
	})
	end()
}

// forbidEach handles the elements from s.off to n one by one.
func (v *isa) forbidEach(s span, n, i reg.GPVirtual, from, dst Mem, low reg.VecVirtual) {
	loop, kept := v.label("each"), v.label("kept")
	Label(loop)
	CMPB(from, U8(0))
	JNE(LabelRef(kept))
	VMOVSS(low.AsX(), dst)
	Label(kept)
	INCQ(i)
	ADDQ(U8(v.bits/8), s.off)
	CMPQ(s.off, n)
	JL(LabelRef(loop))
}
