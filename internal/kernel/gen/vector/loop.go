package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These functions write loops over the elements of slices, one vector at a time. The last vector is masked: nothing
// past the end is read or written.

var tailMasks Mem

// declareTailMasks makes a table of 32 bytes of ones, then 32 of zeros.
func declareTailMasks() {
	tailMasks = GLOBL("vectorTailMasks", RODATA|NOPTR)
	for i := range 8 {
		var x uint64
		if i < 4 {
			x = ^x
		}
		DATA(8*i, U64(x))
	}
}

// setMask computes the mask for the elements after the last whole vector of n.
func (v *isa) setMask(n reg.GPVirtual) {
	left := GP64()
	MOVQ(n, left)
	ANDQ(U8(v.lanes-1), left)
	if v.wide() {
		ones := GP64()
		MOVQ(I32(-1), ones)
		BZHIQ(left, ones, ones)
		KMOVW(ones.As32(), reg.K1)
		return
	}
	table := GP64()
	LEAQ(tailMasks, table)
	NEGQ(left)
	v.mask = YMM()
	VMOVUPS(Mem{Base: table, Index: left, Scale: uint8(v.bits / 8), Disp: 32}, v.mask)
}

// A span is the part of the slices for one iteration of a loop: several adjacent vectors, or the last, shorter one.
type span struct {
	*isa
	vecs int
	part bool // whether the mask applies
	off  reg.GPVirtual
}

// each writes a loop over end bytes. An iteration handles several vectors: the argument many is their number. Single
// vectors follow, then the rest. Call setMask first. Sums need many above 1, or each addition would wait for the one
// before. A few instructions per vector run faster with 2, and longer bodies no slower with 1, since the processor
// overlaps iterations. For float64, many is always 1: see partials.
func (v *isa) each(end reg.GPVirtual, many int, body func(s span)) {
	if v.bits == 64 {
		many = 1
	}
	off, last := GP64(), GP64()
	tail, done := v.label("tail"), v.label("done")
	XORQ(off, off)
	loop := func(label, exit string, vecs int) {
		LEAQ(Mem{Base: end, Disp: -vecs * v.bytes}, last)
		CMPQ(off, last)
		JG(LabelRef(exit))
		Label(label)
		body(span{v, vecs, false, off})
		ADDQ(I32(int32(vecs*v.bytes)), off)
		CMPQ(off, last)
		JLE(LabelRef(label))
	}
	if many > 1 {
		one := v.label("one")
		loop(v.label("many"), one, many)
		Label(one)
	}
	loop(v.label("single"), tail, 1)
	Label(tail)
	CMPQ(off, end)
	JGE(LabelRef(done))
	body(span{v, 1, true, off})
	Label(done)
}

// mem returns the address of vector u of the span.
func (s span) mem(base reg.GPVirtual, u int) Mem {
	return Mem{Base: base, Index: s.off, Scale: 1, Disp: u * s.bytes}
}

// get returns vector u of a slice, with zeros past its end.
func (s span) get(base reg.GPVirtual, u int) reg.VecVirtual {
	z := s.r()
	s.getMem(s.mem(base, u), z)
	return z
}

func (s span) getMem(m Mem, z reg.VecVirtual) {
	switch {
	case !s.part:
		s.move(m, z)
	case s.wide():
		VMOVUPS_Z(m, reg.K1, z)
	case s.bits == 32:
		VMASKMOVPS(m, s.mask, z)
	default:
		VMASKMOVPD(m, s.mask, z)
	}
}

// put stores vector u of a slice.
func (s span) put(z reg.VecVirtual, base reg.GPVirtual, u int) { s.putMem(z, s.mem(base, u)) }

func (s span) putMem(z reg.VecVirtual, m Mem) {
	switch {
	case !s.part:
		s.move(z, m)
	case s.wide():
		VMOVUPS(z, reg.K1, m)
	case s.bits == 32:
		VMASKMOVPS(z, s.mask, m)
	default:
		VMASKMOVPD(z, s.mask, m)
	}
}

// zeroPast sets the lanes past the end to zero.
func (s span) zeroPast(z reg.VecVirtual) {
	switch {
	case !s.part:
	case !s.wide():
		VANDPS(s.mask, z, z)
	default:
		s.keep(reg.K1, z)
	}
}

// fillPast sets the lanes past the end to the same lanes of x.
func (s span) fillPast(x, z reg.VecVirtual) {
	switch {
	case !s.part:
	case !s.wide():
		s.blend(s.mask, z, x, z)
	default:
		VBLENDMPS(z, x, reg.K1, z)
	}
}

// reduce combines all lanes of several vectors by op. Every lane of the new vector holds the result.
func (v *isa) reduce(op func(y, x, z Op), xs ...reg.VecVirtual) reg.VecVirtual {
	for len(xs) > 1 {
		half := len(xs) / 2
		for i := range half {
			op(xs[half+i], xs[i], xs[i])
		}
		xs = xs[:half]
	}
	x, y := xs[0], v.r()
	if v.wide() {
		VSHUFF64X2(U8(0x4e), x, x, y) // the other 256 bits
		op(y, x, x)
		VSHUFF64X2(U8(0xb1), x, x, y) // the other 128
	} else {
		VPERM2F128(U8(1), x, x, y)
	}
	op(y, x, x)
	if v.bits == 64 {
		VPERMILPD(U8(0x55), x, y)
		op(y, x, x)
		return x
	}
	VPERMILPS(U8(0x4e), x, y)
	op(y, x, x)
	VPERMILPS(U8(0xb1), x, y)
	op(y, x, x)
	return x
}

// ret stores the result in the first lane of x and returns.
func ret(x reg.VecVirtual) {
	Store(x.AsX(), ReturnIndex(0))
	end()
}

func end() {
	VZEROUPPER()
	RET()
}

// partials returns n vectors of zeros for the partial sums of a loop over n vectors at a time. For float64 it returns
// one, since such loops take one vector at a time: float64 is mostly for gradient checks, whose slices are short.
func (v *isa) partials(n int) []reg.VecVirtual {
	if v.bits == 64 {
		n = 1
	}
	return several(n, v.zero)
}

// several returns the results of n calls of make.
func several(n int, make func() reg.VecVirtual) (all []reg.VecVirtual) {
	for range n {
		all = append(all, make())
	}
	return all
}
