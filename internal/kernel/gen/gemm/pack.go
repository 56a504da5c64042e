package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packRows writes a function that copies rows. The function pads the last vector of each row with zeros, and prefetches
// later rows.
func (v vec) packRows() {
	const ahead = 12
	TEXT(fmt.Sprintf("gemmPackRows%d%s", v.bits, v.isa), NOSPLIT, "func(dst *byte, ldd uintptr, src *byte, lds uintptr, rows, cols int)")
	dst, ldd := Load(Param("dst"), GP64()), Load(Param("ldd"), GP64())
	src, lds := Load(Param("src"), GP64()), Load(Param("lds"), GP64())
	rows, cols := Load(Param("rows"), GP64()), Load(Param("cols"), GP64()).(reg.GPVirtual)
	offset, whole, next := GP64(), GP64(), GP64()
	MOVQ(cols, whole)
	DECQ(whole)
	ANDQ(I8(-int8(v.lanes)), whole) // columns before the last vector
	if v.bits == 32 {
		SHLQ(U8(2), whole)
	} else {
		SHLQ(U8(3), whole)
	}
	v.tail(cols)
	x, mask := v.reg(0), v.reg(1)
	if v.isa == "AVX2" {
		v.load(Mem{Base: cols}, mask)
	}
	IMUL3Q(U8(ahead), lds, next)
	Label("row")
	XORQ(offset, offset)
	CMPQ(offset, whole)
	JE(LabelRef("last"))
	Label("vector")
	v.load(Mem{Base: src, Index: offset, Scale: 1}, x)
	v.store(x, Mem{Base: dst, Index: offset, Scale: 1})
	PREFETCHT0(Mem{Base: src, Index: next, Scale: 1})
	ADDQ(U8(v.bytes), offset)
	CMPQ(offset, whole)
	JNE(LabelRef("vector"))
	Label("last")
	v.loadTail(Mem{Base: src, Index: offset, Scale: 1}, mask, x)
	v.store(x, Mem{Base: dst, Index: offset, Scale: 1})
	ADDQ(src, offset)
	PREFETCHT0(Mem{Base: offset, Index: next, Scale: 1})
	ADDQ(lds, src)
	ADDQ(ldd, dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// packTransposed writes a function that transposes square blocks. A block has as many rows and columns as a vector has
// lanes. Each register is loaded with halves of two rows that are lanes/2 apart, so no element has to cross between the
// halves of a register.
func packTransposed(bits int) {
	lanes := 256 / bits
	TEXT(fmt.Sprintf("gemmPackTransposed%dAVX2", bits), NOSPLIT, "func(dst *byte, ldd uintptr, src *byte, lds uintptr, groups, blocks int)")
	Doc(fmt.Sprintf("gemmPackTransposed%dAVX2 transposes groups·%d rows of blocks·%d columns. The strides are in bytes.", bits, lanes, lanes))
	dst, ldd := Load(Param("dst"), GP64()), Load(Param("ldd"), GP64())
	src, lds := Load(Param("src"), GP64()), Load(Param("lds"), GP64())
	groups, blocks := Load(Param("groups"), GP64()), Load(Param("blocks"), GP64())
	from, half, lds3, out, n := GP64(), GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: lds, Index: lds, Scale: 2}, lds3)
	Label("group")
	MOVQ(src, from)
	MOVQ(dst, out)
	MOVQ(blocks, n)
	Label("block")
	LEAQ(Mem{Base: from, Index: lds, Scale: uint8(lanes / 2)}, half)
	row := func(base reg.Register, r, disp int) Mem {
		switch r {
		case 0:
			return Mem{Base: base, Disp: disp}
		case 3:
			return Mem{Base: base, Index: lds3, Scale: 1, Disp: disp}
		}
		return Mem{Base: base, Index: lds, Scale: uint8(r), Disp: disp}
	}
	for disp := 0; disp < 32; disp += 16 {
		var y []reg.VecVirtual
		for r := range lanes / 2 {
			v := YMM()
			VMOVUPS(row(from, r, disp), v.AsX())
			VINSERTF128(U8(1), row(half, r, disp), v, v)
			y = append(y, v)
		}
		if bits == 32 {
			t := []reg.VecVirtual{YMM(), YMM(), YMM(), YMM()}
			VUNPCKLPS(y[1], y[0], t[0])
			VUNPCKHPS(y[1], y[0], t[1])
			VUNPCKLPS(y[3], y[2], t[2])
			VUNPCKHPS(y[3], y[2], t[3])
			y = []reg.VecVirtual{t[0], t[2], t[1], t[3]}
		}
		for i := 0; i < len(y); i += 2 {
			lo, hi := YMM(), YMM()
			VUNPCKLPD(y[i+1], y[i], lo)
			VUNPCKHPD(y[i+1], y[i], hi)
			VMOVUPS(lo, Mem{Base: out})
			VMOVUPS(hi, Mem{Base: out, Index: ldd, Scale: 1})
			LEAQ(Mem{Base: out, Index: ldd, Scale: 2}, out)
		}
	}
	ADDQ(U8(32), from)
	DECQ(n)
	JNZ(LabelRef("block"))
	LEAQ(Mem{Base: src, Index: lds, Scale: uint8(lanes)}, src)
	ADDQ(U8(32), dst)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}
