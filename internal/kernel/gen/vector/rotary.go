package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rotate writes the function that turns pairs of elements that are half a vector apart.
func (v *isa) rotate() {
	v.function("rotate", "y, x, cos, sin []F, sign F, rows, stride int)", "turns vectors, stride elements apart, by the same angles. rows is their number. Each pair (u, v)\nbecomes (u·cos − v·sin, v·cos + u·sin), with sin multiplied by sign. u is in the first half of the\nvector, v in the second.")
	y, x, cos, n, sin := ptr("y"), ptr("x"), ptr("cos"), size("cos"), ptr("sin")
	sign, rows, stride := v.arg("sign"), word("rows"), word("stride")
	v.setMask(n)
	v.inBytes(n)
	v.inBytes(stride)
	x2, y2 := GP64(), GP64()
	v.repeat(rows, func() {
		LEAQ(Mem{Base: x, Index: n, Scale: 1}, x2)
		LEAQ(Mem{Base: y, Index: n, Scale: 1}, y2)
		v.each(n, 1, func(s span) {
			first, second, c, t := s.get(x, 0), s.get(x2, 0), s.get(cos, 0), s.get(sin, 0)
			v.mul(sign, t, t)
			z := v.r()
			v.mul(c, first, z)
			v.fnma(second, t, z)
			v.mul(c, second, second)
			v.fma(first, t, second)
			s.put(z, y, 0)
			s.put(second, y2, 0)
		})
		ADDQ(stride, x)
		ADDQ(stride, y)
	})
	end()
}

// rotatePairs writes the function that turns pairs of adjacent elements, for float32.
func (v *isa) rotatePairs() {
	v.function("rotatePairs", "y, x, cos, sin []F, sign F, rows, stride int)", "is like rotate, for pairs of adjacent elements.")
	y, x, cos, pairs, sin := ptr("y"), ptr("x"), ptr("cos"), size("cos"), ptr("sin")
	sign, rows, stride := v.arg("sign"), word("rows"), word("stride")
	n, left, i := GP64(), GP64(), GP64()
	mask := XMM() // for half a vector; AVX-512 uses K3
	MOVQ(pairs, left)
	ANDQ(U8(v.lanes/2-1), left)
	if v.wide() {
		MOVQ(I32(-1), i)
		BZHIQ(left, i, i)
		KMOVW(i.As32(), reg.K3)
	} else {
		table := GP64()
		LEAQ(tailMasks, table)
		NEGQ(left)
		VMOVUPS(Mem{Base: table, Index: left, Scale: 4, Disp: 32}, mask)
	}
	LEAQ(Mem{Base: pairs, Index: pairs, Scale: 1}, n)
	v.setMask(n)
	v.inBytes(n)
	v.inBytes(stride)
	// twice returns each element of half a vector twice.
	twice := func(s span, base reg.GPVirtual) reg.VecVirtual {
		m, z := Mem{Base: base, Index: i, Scale: 1}, v.r()
		switch {
		case !s.part:
			VPMOVZXDQ(m, z)
		case v.wide():
			VPMOVZXDQ_Z(m, reg.K3, z)
		default:
			VMASKMOVPS(m, mask, z.AsX())
			VPMOVZXDQ(z.AsX(), z)
		}
		VMOVSLDUP(z, z)
		return z
	}
	v.repeat(rows, func() {
		v.each(n, 1, func(s span) {
			MOVQ(s.off, i)
			SHRQ(U8(1), i)
			z, c, t, swapped := s.get(x, 0), twice(s, cos), twice(s, sin), v.r()
			v.mul(sign, t, t)
			VPERMILPS(U8(0xb1), z, swapped)
			v.mul(t, swapped, swapped)
			VFMADDSUB213PS(swapped, c, z) // z·c, minus swapped in even places, and plus swapped in odd ones
			s.put(z, y, 0)
		})
		ADDQ(stride, x)
		ADDQ(stride, y)
	})
	end()
}
