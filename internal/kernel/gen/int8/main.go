// Command int8 writes the assembly of package kernel's products with int8 weights. The functions compute the same bits
// as portable.Int8Dots: see there and int8_dots.go for their arguments.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!noasm")
	dotsVNNI(1)
	dotsVNNI(4)
	dotsAVX2()
	dots4AVX2()
	Generate()
}

// A frame holds the arguments. The rows of w have stride bytes, and the rows of x twice as many.
type frame struct {
	y, ldy, w, x, stride, stride3, groups reg.GPVirtual
	wScales, xScales                      reg.GPVirtual
	next, quarter, quarter3, step         reg.GPVirtual // see fetch
}

// begin declares a function and loads its arguments. The function fetches weights from memory in 4 or 2 places.
func begin(name, doc string, places int) (f frame) {
	TEXT(name, NOSPLIT, "func(y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, pass, step int)")
	Pragma("noescape")
	Doc(name + " " + doc)
	f.y = Load(Param("y").Base(), GP64()).(reg.GPVirtual)
	f.ldy = Load(Param("ldy"), GP64()).(reg.GPVirtual)
	f.w = Load(Param("w").Base(), GP64()).(reg.GPVirtual)
	f.x = Load(Param("x").Base(), GP64()).(reg.GPVirtual)
	f.stride = Load(Param("stride"), GP64()).(reg.GPVirtual)
	f.wScales = Load(Param("wScales").Base(), GP64()).(reg.GPVirtual)
	f.groups = Load(Param("wScales").Len(), GP64()).(reg.GPVirtual)
	f.xScales = Load(Param("xScales").Base(), GP64()).(reg.GPVirtual)
	SHLQ(U8(2), f.ldy)
	SHRQ(U8(2), f.groups)
	f.stride3 = GP64()
	LEAQ(Mem{Base: f.stride, Index: f.stride, Scale: 2}, f.stride3)
	f.quarter = GP64()
	MOVQ(f.stride, f.quarter)
	IMULQ(f.groups, f.quarter)
	f.quarter3 = GP64()
	LEAQ(Mem{Base: f.quarter, Index: f.quarter, Scale: 2}, f.quarter3)
	f.next = Load(Param("pass"), GP64()).(reg.GPVirtual)
	f.step = Load(Param("step"), GP64()).(reg.GPVirtual)
	IMULQ(f.step, f.next) // the calls before this one have fetched pass·step/32 of each place
	IMULQ(f.quarter, f.next)
	SHRQ(U8(map[int]int{2: 4, 4: 5}[places]), f.next)
	ADDQ(f.w, f.next)
	LEAQ(Mem{Base: f.next, Index: f.quarter, Scale: 4}, f.next)
	return f
}

// fetch fetches weights that come after w from memory, in each quarter of them. For one row of x, memory delivers a
// tenth to a fifth more weights from four places far apart than from one.
func (f frame) fetch() {
	PREFETCHT0(Mem{Base: f.next})
	PREFETCHT0(Mem{Base: f.next, Index: f.quarter, Scale: 1})
	PREFETCHT0(Mem{Base: f.next, Index: f.quarter, Scale: 2})
	PREFETCHT0(Mem{Base: f.next, Index: f.quarter3, Scale: 1})
	ADDQ(f.step, f.next)
}

// rowOfW returns the address of one of four rows of w, and rowOfX of x.
func (f frame) rowOfW(j int) Mem {
	return [4]Mem{{Base: f.w}, {Base: f.w, Index: f.stride, Scale: 1}, {Base: f.w, Index: f.stride, Scale: 2}, {Base: f.w, Index: f.stride3, Scale: 1}}[j]
}

func (f frame) rowOfX(i int) Mem {
	return [4]Mem{{Base: f.x}, {Base: f.x, Index: f.stride, Scale: 2}, {Base: f.x, Index: f.stride, Scale: 4}, {Base: f.x, Index: f.stride3, Scale: 2}}[i]
}

// eachGroup writes the loop over groups of four rows of w, and the loop over their columns, 32 at a time.
func (f frame) eachGroup(clear, columns, store func()) {
	left := GP64()
	Label("group")
	clear()
	MOVQ(f.stride, left)
	Label("columns")
	columns()
	ADDQ(U8(32), f.w)
	ADDQ(U8(64), f.x)
	SUBQ(U8(32), left)
	JNZ(LabelRef("columns"))
	store()
	ADDQ(f.stride3, f.w) // it is one row further
	SUBQ(f.stride, f.x)
	SUBQ(f.stride, f.x)
	ADDQ(U8(16), f.y)
	ADDQ(U8(16), f.wScales)
	DECQ(f.groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// dotsVNNI writes the function for one or four rows of x.
func dotsVNNI(rows int) {
	name := map[int]string{1: "int8DotsVNNI", 4: "int8Dots4VNNI"}[rows]
	f := begin(name, "computes products of rows with AVX512_VNNI.", 4)
	var sums [4][4]reg.VecVirtual // of rows of w and x
	for j := range 4 {
		for i := range rows {
			sums[j][i] = ZMM()
		}
	}
	scale, first := ZMM(), reg.K1
	VBROADCASTSS(Mem{Base: f.xScales}, scale)
	if rows == 1 { // for the first number of each 128 bits
		mask := GP32()
		MOVL(U32(0x1111), mask)
		KMOVW(mask, first)
	} else { // 128 bits for each row of x
		for i := range 3 {
			part := XMM()
			VBROADCASTSS(Mem{Base: f.xScales, Disp: 4 * (i + 1)}, part)
			VINSERTF32X4(U8(i+1), part, scale, scale)
		}
	}
	f.eachGroup(func() {
		for j := range 4 {
			for i := range rows {
				VPXORD(sums[j][i], sums[j][i], sums[j][i])
			}
		}
	}, func() {
		var w [4]reg.VecVirtual
		for j := range 4 {
			w[j] = ZMM()
			VPMOVSXBW(f.rowOfW(j), w[j])
		}
		f.fetch()
		for i := range rows {
			x := ZMM()
			VMOVDQU64(f.rowOfX(i), x)
			for j := range 4 {
				VPDPWSSD(x, w[j], sums[j][i])
			}
		}
	}, func() {
		for j := range 4 {
			for i := range rows {
				VCVTDQ2PS(sums[j][i], sums[j][i])
			}
		}
		if rows == 1 {
			q := quarters(sums[0][0], sums[1][0], sums[2][0], sums[3][0])
			q = pairs(q, q)
			q = pairs(q, q)
			VCOMPRESSPS(q, first, q)
			y := q.AsX()
			VMULPS(Mem{Base: f.wScales}, y, y)
			VMULPS(scale.AsX(), y, y)
			VMOVUPS(y, Mem{Base: f.y})
			return
		}
		var q [4]reg.VecVirtual
		for j := range 4 {
			q[j] = quarters(sums[j][0], sums[j][1], sums[j][2], sums[j][3])
		}
		y, wScale := pairs(pairs(q[0], q[1]), pairs(q[2], q[3])), ZMM()
		VBROADCASTF32X4(Mem{Base: f.wScales}, wScale)
		VMULPS(wScale, y, y)
		VMULPS(scale, y, y)
		row := GP64()
		MOVQ(f.y, row)
		VMOVUPS(y.AsX(), Mem{Base: row})
		for i := 1; i < 4; i++ {
			ADDQ(f.ldy, row)
			VEXTRACTF32X4(U8(i), y, Mem{Base: row})
		}
	})
}

// quarters returns a vector whose 128-bit lanes are the sums of the four lanes of a, b, c and d.
func quarters(a, b, c, d reg.VecVirtual) reg.VecVirtual {
	ab, cd := lanes(a, b, 0x44, 0xEE), lanes(c, d, 0x44, 0xEE)
	return lanes(ab, cd, 0x88, 0xDD)
}

// lanes adds two choices of the 128-bit lanes of a and b.
func lanes(a, b reg.VecVirtual, x, y uint8) reg.VecVirtual {
	p, q := ZMM(), ZMM()
	VSHUFF64X2(U8(x), b, a, p)
	VSHUFF64X2(U8(y), b, a, q)
	VADDPS(q, p, p)
	return p
}

// pairs adds neighbouring numbers: two sums of a and two of b in each 128-bit lane.
func pairs(a, b reg.VecVirtual) reg.VecVirtual {
	p, q := ZMM(), ZMM()
	VSHUFPS(U8(0x88), b, a, p)
	VSHUFPS(U8(0xDD), b, a, q)
	VADDPS(q, p, p)
	return p
}

// dotsAVX2 writes the function for one row of x.
func dotsAVX2() {
	f := begin("int8DotsAVX2", "computes products of rows with AVX2.", 4)
	var sums [4][2]reg.VecVirtual // of rows of w
	for j := range 4 {
		sums[j] = [2]reg.VecVirtual{YMM(), YMM()}
	}
	scale := XMM()
	VBROADCASTSS(Mem{Base: f.xScales}, scale)
	f.eachGroup(func() {
		for j := range 4 {
			for _, s := range sums[j] {
				VPXOR(s, s, s)
			}
		}
	}, func() {
		f.fetch()
		for half := range 2 {
			x := YMM()
			VMOVDQU(f.rowOfX(0).Offset(32*half), x)
			for j := range 4 {
				w := YMM()
				VPMOVSXBW(f.rowOfW(j).Offset(16*half), w)
				VPMADDWD(x, w, w)
				VPADDD(w, sums[j][half], sums[j][half])
			}
		}
	}, func() {
		var q [4]reg.VecVirtual
		for j := range 4 {
			a, b, high := sums[j][0], sums[j][1], XMM()
			VCVTDQ2PS(a, a)
			VCVTDQ2PS(b, b)
			VADDPS(b, a, a)
			VEXTRACTF128(U8(1), a, high)
			q[j] = a.AsX().(reg.VecVirtual)
			VADDPS(high, q[j], q[j])
		}
		VHADDPS(q[1], q[0], q[0])
		VHADDPS(q[3], q[2], q[2])
		VHADDPS(q[2], q[0], q[0])
		VMULPS(Mem{Base: f.wScales}, q[0], q[0])
		VMULPS(scale, q[0], q[0])
		VMOVUPS(q[0], Mem{Base: f.y})
	})
}

// dots4AVX2 writes the function for four rows of x. The registers have room for half of the sums of two rows of w, so
// two loops read the columns.
func dots4AVX2() {
	f := begin("int8Dots4AVX2", "computes products of rows with AVX2.", 2)
	SHLQ(U8(1), f.groups) // of two rows of w
	scale, odd := YMM(), XMM()
	VMOVSLDUP(Mem{Base: f.xScales}, scale.AsX()) // of rows 0, 0, 2, 2 and 1, 1, 3, 3
	VMOVSHDUP(Mem{Base: f.xScales}, odd)
	VINSERTF128(U8(1), odd, scale, scale)

	// The rows end at these addresses plus offset, which counts up to 0.
	w := [2]reg.GPVirtual{f.w, GP64()}
	x := [4]reg.GPVirtual{f.x, GP64(), GP64(), GP64()}
	ADDQ(f.stride, w[0])
	LEAQ(Mem{Base: x[0], Index: f.stride, Scale: 2}, x[0])
	for i := range 3 {
		LEAQ(Mem{Base: x[i], Index: f.stride, Scale: 2}, x[i+1])
	}
	offset := GP64()
	var sums [2][4]reg.VecVirtual // of rows of w and x
	low := AllocLocal(8 * 32)
	lowOf := func(j, i int) Mem { return low.Offset(32 * (4*j + i)) }

	Label("group")
	LEAQ(Mem{Base: w[0], Index: f.stride, Scale: 1}, w[1])
	for half, name := range []string{"low", "high"} {
		for j := range 2 {
			for i := range 4 {
				sums[j][i] = YMM()
				VPXOR(sums[j][i], sums[j][i], sums[j][i])
			}
		}
		MOVQ(f.stride, offset)
		NEGQ(offset)
		Label(name)
		var numbers [2]reg.VecVirtual
		for j := range 2 {
			numbers[j] = YMM()
			VPMOVSXBW(Mem{Base: w[j], Index: offset, Scale: 1, Disp: 16 * half}, numbers[j])
		}
		if half == 0 { // it fetches enough for both
			PREFETCHT0(Mem{Base: f.next})
			PREFETCHT0(Mem{Base: f.next, Index: f.quarter, Scale: 2})
			ADDQ(f.step, f.next)
		}
		for i := range 4 {
			row, product := YMM(), YMM()
			VMOVDQU(Mem{Base: x[i], Index: offset, Scale: 2, Disp: 32 * half}, row)
			VPMADDWD(row, numbers[0], product)
			VPADDD(product, sums[0][i], sums[0][i])
			VPMADDWD(row, numbers[1], row)
			VPADDD(row, sums[1][i], sums[1][i])
		}
		ADDQ(U8(32), offset)
		JNZ(LabelRef(name))
		for j := range 2 {
			for i := range 4 {
				VCVTDQ2PS(sums[j][i], sums[j][i])
				if half == 0 {
					VMOVUPS(sums[j][i], lowOf(j, i))
				} else {
					VADDPS(lowOf(j, i), sums[j][i], sums[j][i])
				}
			}
		}
	}
	var q [2][2]reg.VecVirtual // the 128-bit lanes belong to rows 0 and 1 of x, or 2 and 3
	for j := range 2 {
		for i := range 2 {
			a, b := sums[j][2*i], sums[j][2*i+1]
			q[j][i] = YMM()
			VPERM2F128(U8(0x20), b, a, q[j][i])
			VPERM2F128(U8(0x31), b, a, a)
			VADDPS(a, q[j][i], q[j][i])
		}
	}
	y, wScale := q[0][0], YMM()
	VHADDPS(q[1][0], y, y)
	VHADDPS(q[1][1], q[0][1], q[0][1])
	VHADDPS(q[0][1], y, y)
	VBROADCASTSD(Mem{Base: f.wScales}, wScale)
	VMULPS(wScale, y, y)
	VMULPS(scale, y, y)
	VEXTRACTF128(U8(1), y, odd)
	row := offset
	MOVQ(f.y, row)
	VMOVLPS(y.AsX(), Mem{Base: row})
	VMOVLPS(odd, Mem{Base: row, Index: f.ldy, Scale: 1})
	LEAQ(Mem{Base: row, Index: f.ldy, Scale: 2}, row)
	VMOVHPS(y.AsX(), Mem{Base: row})
	VMOVHPS(odd, Mem{Base: row, Index: f.ldy, Scale: 1})
	LEAQ(Mem{Base: w[0], Index: f.stride, Scale: 2}, w[0])
	ADDQ(U8(8), f.y)
	ADDQ(U8(8), f.wScales)
	DECQ(f.groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}
