package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// splits writes the functions that pack float32 for a matrix unit, as three pieces, with AVX-512: see amxUnit in
// amx_unit.go and amxModel in amx_model.go. gen/amx writes the functions that pack one bfloat16.
func splits() {
	words := GLOBL("amxWords", RODATA|NOPTR) // puts 16 lower and 16 upper halves into the order of terms
	for i := range 32 {
		DATA(2*i, U16(2*i%32+i/16))
	}
	packAlong(words)
	packAcross()
	transposePairs()
}

// A splitter splits vectors of 16 float32.
type splitter struct {
	upper, half, size, one reg.VecVirtual // constants
	least, most            reg.VecVirtual // of the bits of absolute values, minus 1 and as they are
	extremes               reg.Register
}

func constant(bits uint32) reg.VecVirtual {
	r, z := GP32(), ZMM()
	MOVL(U32(bits), r)
	VPBROADCASTD(r, z)
	return z
}

func newSplitter() *splitter {
	s := &splitter{upper: constant(0xffff0000), half: constant(0x8000), size: constant(0x7fffffff), one: constant(1)}
	s.least, s.most = ZMM(), ZMM()
	s.extremes = Load(Param("e"), GP64())
	VMOVDQU32(Mem{Base: s.extremes}, s.least)
	VMOVDQU32(Mem{Base: s.extremes, Disp: 64}, s.most)
	return s
}

// split returns the pieces of x in the upper halves of its lanes. The lower halves hold anything.
func (s *splitter) split(x reg.VecVirtual) [3]reg.VecVirtual {
	size := ZMM()
	VPANDD(s.size, x, size)
	VPMAXUD(size, s.most, s.most)
	VPSUBD(s.one, size, size)
	VPMINUD(size, s.least, s.least)
	first, second := ZMM(), ZMM()
	VPADDD(s.half, x, first)
	VPANDD(s.upper, first, first)
	VSUBPS(first, x, x)
	VPADDD(s.half, x, second)
	VPANDD(s.upper, second, second)
	VSUBPS(second, x, x)
	return [3]reg.VecVirtual{first, second, x}
}

// join writes the upper halves of x to the lower halves of y.
func (s *splitter) join(x, y reg.VecVirtual) reg.VecVirtual {
	VPSRLD(U8(16), x, x)
	VPTERNLOGD(U8(0xf8), s.upper, y, x) // x | y & upper
	return x
}

// finish stores the extremes.
func (s *splitter) finish() {
	VMOVDQU32(s.least, Mem{Base: s.extremes})
	VMOVDQU32(s.most, Mem{Base: s.extremes, Disp: 64})
	VZEROUPPER()
	RET()
}

// packAlong writes a function that packs lines whose terms are adjacent.
func packAlong(words Mem) {
	TEXT("amxAlong3AVX512", NOSPLIT, "func(dst []uint16, src []float32, ld, blocks int, e *byte)")
	dst, src := Load(Param("dst").Base(), GP64()), Load(Param("src").Base(), GP64())
	ld, blocks := Load(Param("ld"), GP64()), Load(Param("blocks"), GP64())
	s := newSplitter()
	order := ZMM()
	VMOVDQU32(words, order)
	size, lines, from, target, left := GP64(), GP64(), GP64(), GP64(), GP64()
	SHLQ(U8(2), ld)
	MOVQ(blocks, size)
	SHLQ(U8(11), size) // bytes of one piece
	MOVQ(U32(32), lines)
	Label("line")
	MOVQ(src, from)
	MOVQ(dst, target)
	MOVQ(blocks, left)
	Label("block")
	x, y := ZMM(), ZMM()
	VMOVUPS(Mem{Base: from}, x)
	VMOVUPS(Mem{Base: from, Disp: 64}, y)
	PREFETCHT0(Mem{Base: from, Index: ld, Scale: 1}) // the next line: no prefetcher of the processor knows where it begins
	PREFETCHT0(Mem{Base: from, Index: ld, Scale: 1, Disp: 64})
	lower, upper := s.split(x), s.split(y)
	for i := range 3 {
		z := s.join(lower[i], upper[i])
		VPERMW(z, order, z)
		VMOVDQU32(z, pieceAt(target, size, i, 0))
	}
	ADDQ(U8(128), from)
	ADDQ(U32(2048), target)
	DECQ(left)
	JNZ(LabelRef("block"))
	ADDQ(ld, src)
	ADDQ(U8(64), dst)
	DECQ(lines)
	JNZ(LabelRef("line"))
	s.finish()
}

// packAcross writes a function that packs lines which are adjacent for each term.
func packAcross() {
	TEXT("amxAcross3AVX512", NOSPLIT, "func(dst []uint16, src []float32, ld, blocks int, e *byte)")
	dst, src := Load(Param("dst").Base(), GP64()), Load(Param("src").Base(), GP64())
	ld, blocks := Load(Param("ld"), GP64()), Load(Param("blocks"), GP64())
	s := newSplitter()
	size, left := GP64(), GP64()
	SHLQ(U8(2), ld)
	MOVQ(blocks, size)
	SHLQ(U8(11), size)
	Label("block")
	MOVQ(U32(16), left)
	Label("pair")
	for half := range 2 {
		x, y := ZMM(), ZMM()
		VMOVUPS(Mem{Base: src, Disp: 64 * half}, x)
		VMOVUPS(Mem{Base: src, Index: ld, Scale: 1, Disp: 64 * half}, y)
		PREFETCHT0(Mem{Base: src, Index: ld, Scale: 8, Disp: 64 * half})
		even, odd := s.split(x), s.split(y)
		for i := range 3 {
			VMOVDQU32(s.join(even[i], odd[i]), pieceAt(dst, size, i, 1024*half))
		}
	}
	LEAQ(Mem{Base: src, Index: ld, Scale: 2}, src)
	ADDQ(U8(64), dst)
	DECQ(left)
	JNZ(LabelRef("pair"))
	ADDQ(U32(1024), dst)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	s.finish()
}

// pieceAt returns the address of a piece, disp bytes after dst.
func pieceAt(dst, size reg.Register, piece, disp int) Mem {
	m := Mem{Base: dst, Disp: disp}
	if piece > 0 {
		m.Index, m.Scale = size, uint8(piece)
	}
	return m
}

// transposePairs writes a function that transposes tiles of 16×16 pairs of 16 bits in place.
func transposePairs() {
	TEXT("amxTransposeAVX512", NOSPLIT, "func(panel []uint16)")
	panel, tiles := Load(Param("panel").Base(), GP64()), Load(Param("panel").Len(), GP64())
	SHRQ(U8(9), tiles)
	v := avx512()
	x := func(i int) reg.VecPhysical { return v.reg(i) }
	y := func(i int) reg.VecPhysical { return v.reg(16 + i) }
	Label("tile")
	for i := range 16 {
		VMOVUPS(Mem{Base: panel, Disp: 64 * i}, x(i))
	}
	for i := 0; i < 16; i += 2 { // pairs of rows
		VUNPCKLPS(x(i+1), x(i), y(i))
		VUNPCKHPS(x(i+1), x(i), y(i+1))
	}
	for i := 0; i < 16; i += 4 { // row i+j: column 4·lane+j of four rows, for each lane of 128 bits
		VUNPCKLPD(y(i+2), y(i), x(i))
		VUNPCKHPD(y(i+2), y(i), x(i+1))
		VUNPCKLPD(y(i+3), y(i+1), x(i+2))
		VUNPCKHPD(y(i+3), y(i+1), x(i+3))
	}
	for j := range 4 { // even and odd lanes of 8 rows
		for i := 0; i < 16; i += 8 {
			VSHUFF32X4(U8(0x88), x(i+4+j), x(i+j), y(i+j))
			VSHUFF32X4(U8(0xdd), x(i+4+j), x(i+j), y(i+4+j))
		}
	}
	for j := range 4 { // lanes of all rows
		VSHUFF32X4(U8(0x88), y(8+j), y(j), x(j))
		VSHUFF32X4(U8(0xdd), y(8+j), y(j), x(8+j))
		VSHUFF32X4(U8(0x88), y(12+j), y(4+j), x(4+j))
		VSHUFF32X4(U8(0xdd), y(12+j), y(4+j), x(12+j))
	}
	for i := range 16 {
		VMOVUPS(x(i), Mem{Base: panel, Disp: 64 * i})
	}
	ADDQ(U32(1024), panel)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}
