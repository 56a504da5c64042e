package main

import "math"

// loop writes a loop over the elements of slices, first in vectors, then one by one: the tail runs the same
// instructions with 0 in the other lanes, so an element has the same bits in both. R0, R1 … point to the slices and R8
// is their length. loads lists the slices to read, to V0, V1 …, and stores maps slices to registers. sum, if not nil,
// adds results to a vector, or to a scalar in the tail.
func (w *writer) loop(loads []int, body func(), stores [][2]int, sum func(tail bool)) {
	for _, part := range []struct {
		name, next, move string
		size             int
	}{{"vec", "one", "FMOVQ", 4}, {"one", "end", "FMOVS", 1}} {
		stored := map[int]bool{}
		for _, s := range stores {
			stored[s[0]] = true
		}
		w.label(part.name)
		w.line("CMP $%d, R8", part.size)
		w.line("BLT %s", part.next)
		for v, slice := range loads {
			if stored[slice] {
				w.line("%s (R%d), F%d", part.move, slice, v)
			} else {
				w.line("%s.P %d(R%d), F%d", part.move, 4*part.size, slice, v)
			}
		}
		body()
		for _, s := range stores {
			w.line("%s.P F%d, %d(R%d)", part.move, s[1], 4*part.size, s[0])
		}
		if sum != nil {
			sum(part.size == 1)
		}
		w.line("SUB $%d, R8", part.size)
		w.line("JMP %s", part.name)
	}
	w.label("end")
}

// slices begins a function whose first arguments are slices of equal lengths, and loads their pointers and length.
func (w *writer) slices(name, signature string, rest int, names ...string) {
	w.function(name, signature, 0, 24*len(names)+rest)
	for i, n := range names {
		w.line("MOVD %s_base+%d(FP), R%d", n, 24*i, i)
	}
	w.line("MOVD %s_len+8(FP), R8", names[0])
}

// argument loads a float32 to all lanes.
func (w *writer) argument(name string, offset, v int) {
	w.line("FMOVS %s+%d(FP), F%d", name, offset, v)
	w.line("VDUP V%d.S[0], V%d.S4", v, v)
}

// vector writes the functions on slices.
func vector(w *writer) {
	w.slices("vectorAdd32NEON", "out, x, y []float32", 0, "out", "x", "y")
	w.loop([]int{1, 2}, func() { w.fadd(0, 0, 1) }, [][2]int{{0, 0}}, nil)
	w.line("RET")

	w.slices("vectorMul32NEON", "out, x, y []float32", 0, "out", "x", "y")
	w.loop([]int{1, 2}, func() { w.fmul(0, 0, 1) }, [][2]int{{0, 0}}, nil)
	w.line("RET")

	w.slices("vectorRelu32NEON", "y, x []float32", 0, "y", "x")
	w.zero(16)
	w.loop([]int{1}, func() { w.fmax(0, 0, 16) }, [][2]int{{0, 0}}, nil)
	w.line("RET")

	w.slices("vectorScale32NEON", "x []float32, a float32", 4, "x")
	w.argument("a", 24, 16)
	w.loop([]int{0}, func() { w.fmul(0, 0, 16) }, [][2]int{{0, 0}}, nil)
	w.line("RET")

	w.slices("vectorAxpy32NEON", "y, x []float32, a float32", 4, "y", "x")
	w.argument("a", 48, 16)
	w.loop([]int{0, 1}, func() { w.fma(0, 1, 16) }, [][2]int{{0, 0}}, nil)
	w.line("RET")

	w.slices("vectorDot32NEON", "x, y []float32", 4, "x", "y")
	for u := range 4 {
		w.zero(16 + u)
	}
	w.label("many") // four sums, or each addition would wait for the one before
	w.line("CMP $16, R8")
	w.line("BLT vec")
	for u := range 4 {
		w.line("FMOVQ.P 16(R0), F%d", u)
		w.line("FMOVQ.P 16(R1), F%d", 4+u)
		w.fma(16+u, u, 4+u)
	}
	w.line("SUB $16, R8")
	w.line("JMP many")
	w.loop([]int{0, 1}, func() { w.fma(16, 0, 1) }, nil, nil) // the tail adds 0·0 to the other lanes
	w.fadd(16, 16, 17)
	w.fadd(18, 18, 19)
	w.fadd(16, 16, 18)
	w.total()
	w.line("FMOVS F16, ret+48(FP)")
	w.line("RET")

	w.slices("vectorMaxOf32NEON", "x []float32", 4, "x")
	w.fill(16, math.Float32bits(float32(math.Inf(-1))))
	w.loop([]int{0}, func() {}, nil, func(tail bool) {
		if tail {
			w.line("VDUP V0.S[0], V0.S4")
		}
		w.fmax(16, 16, 0)
	})
	w.fmaxv(16, 16)
	w.line("FMOVS F16, ret+24(FP)")
	w.line("RET")

	w.slices("vectorExpShift32NEON", "dst, src []float32, shift float32", 12, "dst", "src")
	w.exps(48, 1, [][2]int{{0, 0}})
	w.slices("vectorExpSum32NEON", "src []float32, shift float32", 12, "src")
	w.exps(24, 0, nil)
	adamW(w)
}

// total adds the lanes of V16.
func (w *writer) total() {
	w.faddp(16, 16, 16)
	w.faddp(16, 16, 16)
}

// exps writes the rest of a function that adds up exponentials. shift is the offset of its argument, src the slice.
func (w *writer) exps(shift, src int, stores [][2]int) {
	w.argument("shift", shift, 17)
	const ln2Hi = 0x1.63p-1 // 9 bits; see exp32
	constants := []float64{math.Log2E, ln2Hi, math.Ln2 - ln2Hi, 89, -104, 1, 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040}
	for i, c := range constants { // V18 to V29
		w.fill(18+i, math.Float32bits(float32(c)))
	}
	const log2e, hi, lo, most, least, one, c2, c3, c4, c5, c6, c7 = 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
	w.fill(30, 127)
	w.zero(16) // the sum
	w.zero(31) // the tail's sum
	w.loop([]int{src}, func() {
		w.fsub(0, 0, 17)
		w.fmin(0, 0, most) // beyond these limits, the result is +Inf or 0
		w.fmax(0, 0, least)
		w.fmul(1, 0, log2e)
		w.frintn(1, 1) // n
		w.fms(0, 1, hi)
		w.fms(0, 1, lo) // r
		w.fmul(2, 0, 0) // r²
		for _, p := range [][3]int{{3, c2, c3}, {4, c4, c5}, {5, c6, c7}} {
			w.move(p[0], p[1])
			w.fma(p[0], p[2], 0)
		}
		w.fma(4, 2, 5)
		w.fma(3, 2, 4)
		w.fma(0, 2, 3)
		w.fadd(0, 0, one)
		w.fcvtzs(1, 1)
		w.sshr(2, 1, 1) // half of n: 2ⁿ may overflow or underflow where the result doesn't
		w.line("VSUB V2.S4, V1.S4, V1.S4")
		for _, v := range []int{2, 1} {
			w.line("VADD V30.S4, V%d.S4, V%d.S4", v, v)
			w.line("VSHL $23, V%d.S4, V%d.S4", v, v)
			w.fmul(0, 0, v)
		}
	}, stores, func(tail bool) {
		if tail {
			w.line("FADDS F0, F31, F31")
		} else {
			w.fadd(16, 16, 0)
		}
	})
	w.total()
	w.line("FADDS F31, F16, F16")
	w.line("FMOVS F16, ret+%d(FP)", shift+8)
	w.line("RET")
}

// adamW writes AdamW's update.
func adamW(w *writer) {
	w.slices("vectorAdamW32NEON", "w, g, first, second []float32, f *[9]float32", 8, "w", "g", "first", "second")
	w.line("MOVD f+96(FP), R9")
	const scale, b1, c1, b2, c2, keep, rate, root, eps = 16, 17, 18, 19, 20, 21, 22, 23, 24
	for v := scale; v <= eps; v++ { // the order of adamFactors
		w.line("FMOVS.P 4(R9), F%d", v)
		w.line("VDUP V%d.S[0], V%d.S4", v, v)
	}
	w.loop([]int{0, 1, 2, 3}, func() {
		w.fmul(1, 1, scale) // d
		w.fmul(2, 2, b1)
		w.fma(2, 1, c1) // the mean
		w.fmul(1, 1, 1)
		w.fmul(3, 3, b2)
		w.fma(3, 1, c2) // the mean square
		w.fsqrt(4, 3)
		w.move(5, eps)
		w.fma(5, 4, root)
		w.fmul(4, 2, rate)
		w.fdiv(4, 4, 5)
		w.fmul(0, 0, keep)
		w.fsub(0, 0, 4)
	}, [][2]int{{0, 0}, {2, 2}, {3, 3}}, nil)
	w.line("RET")
}
