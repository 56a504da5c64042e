// Command gemm writes the assembly of package kernel's matrix product: functions that compute tiles of C, and functions
// that pack B. The argument of a tile function is a kernel.gemmTile: see gemm_tile.go.
package main

import (
	"flag"
	"fmt"
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of gemmTile's fields. A slice's first word is its pointer. The field beta follows alpha.
const (
	offA, offB, offC              = 0, 24, 48
	offRSA, offCSA, offRSB, offC1 = 72, 80, 88, 96
	offRows, offCols, offK        = 104, 112, 120
	offTiles, offKeep, offAlpha   = 128, 136, 144
	offAhead, offStep             = 152, 160 // for float32
)

var isa = flag.String("isa", "", "instruction set to write: AVX512, AVX2, or AMX for its packing functions")

func main() {
	flag.Parse()
	ConstraintExpr("!noasm")
	if *isa == "AMX" {
		splits()
		Generate()
		return
	}
	declareTailMasks()
	switch *isa {
	case "AVX512": // only float32: float64 is mostly for gradient checks, for which AVX2 is fast enough
		v := avx512()
		tile(v)
		v.packRows()
	case "AVX2":
		for _, bits := range []int{32, 64} {
			v := avx2(bits)
			tile(v)
			v.packRows()
			packTransposed(bits)
		}
		pause()
		cpuid()
	default:
		log.Fatalf("-isa must be AVX512, AVX2 or AMX, got %q", *isa)
	}
	Generate()
}

// A frame holds the operand registers of one tile function.
type frame struct {
	a          []reg.GPVirtual // row 0 of A and, in taller tiles, row 5
	rs, rs3    reg.GPVirtual   // bytes between rows of A, and three times that
	cs         reg.GPVirtual   // bytes between columns of A
	b, rsB     reg.GPVirtual
	c, ldc     reg.GPVirtual
	k, t, cols reg.GPVirtual
	left, top  Mem // number of tiles left, and the current tile's first row of A
}

// tile writes one tile function. For each height and each number of vectors, the function has a loop over k and an
// update of C. It begins with a jump to the right loop.
func tile(v vec) {
	TEXT(fmt.Sprintf("gemmTile%d%s", v.bits, v.isa), NOSPLIT, "func(t *byte)")
	Doc(fmt.Sprintf("gemmTile%d%s computes tiles of up to %d×%d.", v.bits, v.isa, v.heights[len(v.heights)-1], v.vecs*v.lanes))
	f := frame{t: GP64(), cols: GP64(), rs: GP64(), rs3: GP64(), cs: GP64(), b: GP64(), rsB: GP64(), c: GP64(), ldc: GP64(), k: GP64()}
	Load(Param("t"), f.t)
	field := func(off int, r reg.GPVirtual) { MOVQ(Mem{Base: f.t, Disp: off}, r) }
	shift := U8(2)
	if v.bits == 64 {
		shift = 3
	}
	tallest := v.heights[len(v.heights)-1]
	for g := range (tallest + 4) / 5 {
		f.a = append(f.a, GP64())
		if g == 0 {
			field(offA, f.a[0])
		}
	}
	field(offRSA, f.rs)
	SHLQ(shift, f.rs)
	LEAQ(Mem{Base: f.rs, Index: f.rs, Scale: 2}, f.rs3)
	f.baseRows(tallest)
	field(offCSA, f.cs)
	SHLQ(shift, f.cs)
	field(offB, f.b)
	field(offRSB, f.rsB)
	SHLQ(shift, f.rsB)
	field(offC, f.c)
	field(offC1, f.ldc)
	SHLQ(shift, f.ldc)
	field(offK, f.k)
	field(offCols, f.cols)
	f.left, f.top = AllocLocal(8), AllocLocal(8)
	rows := GP64()
	field(offTiles, rows)
	MOVQ(rows, f.left)
	MOVQ(f.a[0], f.top)
	field(offRows, rows)
	v.tail(f.cols)

	for vecs := 1; vecs <= v.vecs; vecs++ {
		if vecs < v.vecs {
			CMPQ(Mem{Base: f.t, Disp: offCols}, U8(vecs*v.lanes))
			JG(LabelRef(fmt.Sprintf("above%d", vecs)))
		}
		dispatch(rows, v.heights, fmt.Sprintf("vecs%d", vecs))
		if vecs < v.vecs {
			Label(fmt.Sprintf("above%d", vecs))
		}
	}
	for vecs := v.vecs; vecs >= 1; vecs-- {
		for _, r := range v.heights {
			body(v, f, r, vecs, fmt.Sprintf("vecs%d_%d", vecs, r))
		}
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// dispatch writes a jump to the label for the height rows, by binary search.
func dispatch(rows reg.GPVirtual, heights []int, prefix string) {
	if len(heights) == 1 {
		JMP(LabelRef(fmt.Sprintf("%s_%d", prefix, heights[0])))
		return
	}
	low, high := heights[:(len(heights)+1)/2], heights[(len(heights)+1)/2:]
	above := fmt.Sprintf("%s_from%d_to%d", prefix, high[0], high[len(high)-1])
	CMPQ(rows, U8(high[0]))
	JGE(LabelRef(above))
	dispatch(rows, low, prefix)
	Label(above)
	dispatch(rows, high, prefix)
}

// baseRows computes the address of row 5 of A, if the tile has it, from the address of row 0.
func (f frame) baseRows(rows int) {
	for g := 1; g < (rows+4)/5; g++ {
		LEAQ(Mem{Base: f.a[g-1], Index: f.rs, Scale: 4}, f.a[g])
		ADDQ(f.rs, f.a[g])
	}
}

// next writes the code after a tile. It continues at label with the next tile, or ends the function after the last one.
func (f frame) next(rows int, label string) {
	DECQ(f.left)
	JZ(LabelRef("done"))
	step := GP64()
	MOVQ(f.top, f.a[0])
	IMUL3Q(U8(rows), f.rs, step)
	ADDQ(step, f.a[0])
	MOVQ(f.a[0], f.top)
	f.baseRows(rows)
	MOVQ(Mem{Base: f.t, Disp: offB}, f.b)
	MOVQ(Mem{Base: f.t, Disp: offK}, f.k)
	JMP(LabelRef(label))
}

// rowOf returns the address of row r of A in the current column.
func (f frame) rowOf(r int) Mem {
	m := Mem{Base: f.a[r/5]}
	switch r % 5 {
	case 1, 2, 4:
		m.Index, m.Scale = f.rs, uint8(r%5)
	case 3:
		m.Index, m.Scale = f.rs3, 1
	}
	return m
}

const (
	unroll = 4       // columns of A in each turn of a loop
	near   = 2 << 10 // most bytes from one row of B to the next that the processor prefetches by itself
)

// body writes the loop and the update of C for rows×vecs accumulators, and a return.
func body(v vec, f frame, rows, vecs int, label string) {
	Label(label)
	for i := range rows * vecs {
		v.zero(v.reg(i))
	}
	var bs []reg.VecPhysical // a row of B
	for i := range vecs {
		bs = append(bs, v.reg(v.regs-2-vecs+i))
	}
	c, left := GP64(), GP64()
	MOVQ(f.c, c)
	MOVQ(U32(rows), left)
	Label(label + "_ahead")
	for i := range vecs {
		PREFETCHT0(Mem{Base: c, Disp: i * v.bytes})
	}
	ADDQ(f.ldc, c)
	DECQ(left)
	JNZ(LabelRef(label + "_ahead"))
	column := func(u int) { // adds the products of one column of A with row u of B, counted from f.b
		for i := range vecs {
			m := Mem{Base: f.b, Disp: i * v.bytes}
			if u > 0 {
				m.Index, m.Scale = f.rsB, uint8(u)
			}
			v.load(m, bs[i])
		}
		for r := range rows {
			x := v.reg(v.regs - 2 + r%2)
			v.broadcast(f.rowOf(r), x)
			for i := range vecs {
				v.fma(bs[i], x, v.reg(r*vecs+i))
			}
		}
		for g := range (rows + 4) / 5 {
			ADDQ(f.cs, f.a[g])
		}
	}
	CMPQ(f.rsB, U32(near))
	JG(LabelRef(label + "_one"))
	ahead := GP64()
	if v.isa == "AVX512" { // AVX2 has no load to spare
		MOVQ(Mem{Base: f.t, Disp: offAhead}, ahead)
	}
	SUBQ(U8(unroll), f.k)
	JL(LabelRef(label + "_few"))
	Label(label + "_loop")
	for range unroll / 2 {
		column(0)
		column(1)
		LEAQ(Mem{Base: f.b, Index: f.rsB, Scale: 2}, f.b)
	}
	if v.isa == "AVX512" {
		PREFETCHT1(Mem{Base: ahead})
		ADDQ(Mem{Base: f.t, Disp: offStep}, ahead)
	}
	SUBQ(U8(unroll), f.k)
	JGE(LabelRef(label + "_loop"))
	Label(label + "_few")
	ADDQ(U8(unroll), f.k)
	JZ(LabelRef(label + "_sum"))
	Label(label + "_one")
	column(0)
	for i := range vecs {
		PREFETCHT0(Mem{Base: f.b, Index: f.rsB, Scale: 8, Disp: i * v.bytes})
	}
	ADDQ(f.rsB, f.b)
	DECQ(f.k)
	JNZ(LabelRef(label + "_one"))
	Label(label + "_sum")

	// C = beta·C + alpha·acc. If keep is 0, C isn't read.
	alpha, beta, mask, x := v.reg(v.regs-4), v.reg(v.regs-3), v.reg(v.regs-2), v.reg(v.regs-1)
	v.broadcast(Mem{Base: f.t, Disp: offAlpha}, alpha)
	for i := range rows * vecs {
		v.mul(alpha, v.reg(i), v.reg(i))
	}
	if v.isa == "AVX2" {
		v.load(Mem{Base: f.cols}, mask)
	}
	CMPQ(Mem{Base: f.t, Disp: offKeep}, U8(0))
	JE(LabelRef(label + "_store"))
	v.broadcast(Mem{Base: f.t, Disp: offAlpha + v.bits/8}, beta)
	MOVQ(f.c, c)
	for r := range rows {
		for i := range vecs {
			cell := Mem{Base: c, Disp: i * v.bytes}
			if i == vecs-1 {
				v.loadTail(cell, mask, x)
			} else {
				v.load(cell, x)
			}
			v.fma(beta, x, v.reg(r*vecs+i))
		}
		if r < rows-1 {
			ADDQ(f.ldc, c)
		}
	}
	Label(label + "_store")
	if v.isa == "AVX2" { // masked stores are slow on some processors
		CMPQ(Mem{Base: f.t, Disp: offCols}, I32(vecs*v.lanes))
		JNE(LabelRef(label + "_tail"))
		v.storeTile(f, rows, vecs, false, mask)
		JMP(LabelRef(label + "_next"))
		Label(label + "_tail")
	}
	v.storeTile(f, rows, vecs, true, mask)
	Label(label + "_next")
	f.next(rows, label)
}

// storeTile writes code that stores the accumulators in the rows of C.
func (v vec) storeTile(f frame, rows, vecs int, tail bool, mask reg.VecPhysical) {
	for r := range rows {
		for i := range vecs {
			cell := Mem{Base: f.c, Disp: i * v.bytes}
			if tail && i == vecs-1 {
				v.storeTail(v.reg(r*vecs+i), mask, cell)
			} else {
				v.store(v.reg(r*vecs+i), cell)
			}
		}
		ADDQ(f.ldc, f.c)
	}
}
