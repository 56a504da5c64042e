// Command bfloat16 writes the assembly of package kernel's products of bfloat16 for processors without instructions for
// them. The argument of a tile function is a kernel.bfloat16Tile: see gemm_bfloat16.go.
package main

import (
	"flag"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of bfloat16Tile's fields. A slice's first word is its pointer.
const (
	offA, offB, offC            = 0, 24, 48
	offRSA, offCSA, offLD       = 72, 80, 88
	offSteps, offTiles, offKeep = 96, 104, 112
)

const terms = 32 // portable.BFloat16Terms

func main() {
	flag.Parse()
	ConstraintExpr("!noasm")
	tile("AVX512", 4, 3, []reg.VecPhysical{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13,
		reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27,
	})
	tile("AVX2", 3, 2, []reg.VecPhysical{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14,
	})
	round()
	Generate()
}

// tile writes a function that computes tiles with the given numbers of rows and of vectors in a row. The sums over even
// and odd terms are in registers; the sums of both are in C.
func tile(isa string, rows, vecs int, regs []reg.VecPhysical) {
	bytes := int(regs[0].Size())
	zero := func(x reg.VecPhysical) {
		if isa == "AVX512" {
			VPXORD(x, x, x)
		} else {
			VXORPS(x, x, x)
		}
	}
	TEXT("bfloat16Tile"+isa, NOSPLIT, "func(t *byte)")
	Doc(fmt.Sprintf("bfloat16Tile%s computes tiles of %d×%d.", isa, rows, vecs*bytes/4))
	t := Load(Param("t"), GP64())
	field := func(off int) reg.GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: t, Disp: off}, r)
		return r
	}
	inBytes := func(off int) reg.GPVirtual {
		r := field(off)
		SHLQ(U8(2), r)
		return r
	}
	top, out, tiles := field(offA), field(offC), field(offTiles)
	rs, cs, ld := inBytes(offRSA), inBytes(offCSA), inBytes(offLD)
	restore := flushToZero()

	a, lower, b, c, steps, pairs := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	sums := func(odd, row, v int) reg.VecPhysical { return regs[(odd*rows+row)*vecs+v] }
	left, x := regs[2*rows*vecs:][:vecs], regs[2*rows*vecs+vecs]
	Label("tile")
	MOVQ(top, a)
	MOVQ(Mem{Base: t, Disp: offB}, b)
	MOVQ(Mem{Base: t, Disp: offSteps}, steps)
	CMPQ(Mem{Base: t, Disp: offKeep}, U8(0))
	JNE(LabelRef("step"))
	MOVQ(out, c)
	zero(x)
	for range rows {
		for v := range vecs {
			VMOVUPS(x, Mem{Base: c, Disp: v * bytes})
		}
		ADDQ(ld, c)
	}
	Label("step")
	for i := range 2 * rows * vecs {
		zero(regs[i])
	}
	LEAQ(Mem{Base: rs, Index: rs, Scale: 2}, lower)
	ADDQ(a, lower) // row 3
	MOVQ(U32(terms/2), pairs)
	Label("pair")
	for odd := range 2 {
		for v := range vecs {
			VMOVUPS(Mem{Base: b, Disp: (odd*vecs + v) * bytes}, left[v])
		}
		for row := range rows {
			m := Mem{Base: []reg.GPVirtual{a, lower}[row/3]}
			if row%3 > 0 {
				m.Index, m.Scale = rs, uint8(row%3)
			}
			VBROADCASTSS(m, x)
			for v := range vecs {
				VFMADD231PS(left[v], x, sums(odd, row, v))
			}
		}
		ADDQ(cs, a)
		if rows > 3 {
			ADDQ(cs, lower)
		}
	}
	ADDQ(U32(2*vecs*bytes), b)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	MOVQ(out, c)
	for row := range rows {
		for v := range vecs {
			m, sum := Mem{Base: c, Disp: v * bytes}, sums(0, row, v)
			VADDPS(sums(1, row, v), sum, sum)
			VADDPS(m, sum, sum)
			VMOVUPS(sum, m)
		}
		ADDQ(ld, c)
	}
	DECQ(steps)
	JNZ(LabelRef("step"))
	MOVQ(c, out)
	IMUL3Q(U8(rows), rs, a)
	ADDQ(a, top)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	restore()
	VZEROUPPER()
	RET()
}

// flushToZero writes code that makes operations round to nearest, read subnormal numbers as zeros, flush to zero, and
// mask exceptions. restore writes code that ends this.
func flushToZero() (restore func()) {
	old, own := AllocLocal(4), AllocLocal(4)
	STMXCSR(old)
	MOVL(U32(0x1f80|1<<15|1<<6), own)
	LDMXCSR(own)
	return func() { LDMXCSR(old) }
}

// round writes a function that rounds to bfloat16 like portable.RoundBFloat16, on the bits.
func round() {
	TEXT("bfloat16RoundAVX2", NOSPLIT, "func(x []float32)")
	Doc("bfloat16RoundAVX2 rounds to bfloat16. The length of x is a multiple of 8.")
	x, n := Load(Param("x").Base(), GP64()), Load(Param("x").Len(), GP64())
	every := func(bits uint32) reg.VecVirtual {
		y, word := YMM(), GP32()
		MOVL(U32(bits), word)
		VMOVD(word, y.AsX())
		VPBROADCASTD(y.AsX(), y)
		return y
	}
	bias, one, upper := every(0x7fff), every(1), every(0xffff0000)
	exponent, quiet, sign, zero := every(0x7f800000), every(1<<22), every(1<<31), YMM()
	VPXOR(zero, zero, zero)
	SHRQ(U8(3), n)
	JZ(LabelRef("done"))
	Label("loop")
	in, out, where, other := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: x}, in)
	VPSRLD(U8(16), in, out)
	VPAND(one, out, out)
	VPADDD(bias, out, out)
	VPADDD(in, out, out)
	VPAND(exponent, in, where)
	VPCMPEQD(zero, where, where) // zero or subnormal
	VPAND(sign, in, other)
	VBLENDVPS(where, other, out, out)
	VCMPPS(U8(3), in, in, where) // NaN
	VPOR(quiet, in, other)
	VBLENDVPS(where, other, out, out)
	VPAND(upper, out, out)
	VMOVUPS(out, Mem{Base: x})
	ADDQ(U8(32), x)
	DECQ(n)
	JNZ(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}
