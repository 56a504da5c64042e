package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A vec is a kind of vector: an instruction set and the width of an element.
type vec struct {
	isa   string
	bits  int // bits of an element
	lanes int
	bytes int // bytes of a vector
	regs  int // number of vector registers

	heights []int // possible numbers of rows of a tile, ascending; see the instruction set's gemmTiles
	vecs    int   // largest number of vectors in a row of a tile
}

func avx512() vec {
	return vec{isa: "AVX512", bits: 32, lanes: 16, bytes: 64, regs: 32, heights: []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, vecs: 3}
}

func avx2(bits int) vec {
	v := vec{isa: "AVX2", bits: bits, lanes: 256 / bits, bytes: 32, regs: 16, heights: []int{1, 2, 3, 4, 5, 6}, vecs: 2}
	if bits == 64 {
		v.heights = []int{1, 2, 3, 4, 6}
	}
	return v
}

func (v vec) reg(i int) reg.VecPhysical {
	if v.isa == "AVX512" {
		return []reg.VecPhysical{
			reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
			reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
			reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
			reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
		}[i]
	}
	return []reg.VecPhysical{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}[i]
}

func (v vec) zero(z reg.VecPhysical) {
	if v.isa == "AVX512" {
		VPXORD(z, z, z)
	} else {
		VXORPS(z, z, z)
	}
}

func (v vec) load(m Mem, z reg.VecPhysical) {
	if v.bits == 32 {
		VMOVUPS(m, z)
	} else {
		VMOVUPD(m, z)
	}
}

func (v vec) broadcast(m Mem, z reg.VecPhysical) {
	if v.bits == 32 {
		VBROADCASTSS(m, z)
	} else {
		VBROADCASTSD(m, z)
	}
}

func (v vec) mul(x, y, z reg.VecPhysical) {
	if v.bits == 32 {
		VMULPS(x, y, z)
	} else {
		VMULPD(x, y, z)
	}
}

// fma adds x·y to z.
func (v vec) fma(x, y, z reg.VecPhysical) {
	if v.bits == 32 {
		VFMADD231PS(x, y, z)
	} else {
		VFMADD231PD(x, y, z)
	}
}

// tail computes the mask for the last vector of a row of cols elements. With AVX-512, the mask is in the register K1.
// With AVX2, cols becomes the address of the mask: a vector with ones in the lanes of the row's elements.
func (v vec) tail(cols reg.GPVirtual) {
	DECQ(cols)
	ANDQ(U8(v.lanes-1), cols)
	INCQ(cols) // columns in the last vector, 1 to lanes
	if v.isa == "AVX512" {
		ones := GP64()
		MOVQ(I32(-1), ones)
		BZHIQ(cols, ones, ones)
		KMOVW(ones.As32(), reg.K1)
		return
	}
	table := GP64()
	LEAQ(tailMasks, table)
	if v.bits == 32 {
		NEGQ(cols)
		LEAQ(Mem{Base: table, Index: cols, Scale: 4, Disp: 32}, cols)
	} else {
		NEGQ(cols)
		LEAQ(Mem{Base: table, Index: cols, Scale: 8, Disp: 32}, cols)
	}
}

// tailMasks holds 32 bytes of ones, then 32 of zeros.
var tailMasks Mem

func declareTailMasks() {
	tailMasks = GLOBL("gemmTailMasks", RODATA|NOPTR)
	for i := range 8 {
		var x uint64
		if i < 4 {
			x = ^x
		}
		DATA(8*i, U64(x))
	}
}

func (v vec) loadTail(m Mem, mask, z reg.VecPhysical) {
	switch {
	case v.isa == "AVX512":
		VMOVUPS_Z(m, reg.K1, z)
	case v.bits == 32:
		VMASKMOVPS(m, mask, z)
	default:
		VMASKMOVPD(m, mask, z)
	}
}

func (v vec) storeTail(z, mask reg.VecPhysical, m Mem) {
	switch {
	case v.isa == "AVX512":
		VMOVUPS(z, reg.K1, m)
	case v.bits == 32:
		VMASKMOVPS(z, mask, m)
	default:
		VMASKMOVPD(z, mask, m)
	}
}

func (v vec) store(z reg.VecPhysical, m Mem) {
	if v.bits == 32 {
		VMOVUPS(z, m)
	} else {
		VMOVUPD(z, m)
	}
}
