package main

// int8 writes the function of products with int8 weights, for one row of x and four rows of w at a time. Row j has its
// 16 sums in V(4j) to V(4j+3).
func int8(w *writer) {
	const evenX, evenW = 16, 20 // registers of the even columns; the odd ones follow
	w.function("int8DotsNEON", "y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, pass, step int", 0, 152)
	w.line("MOVD y_base+0(FP), R0")
	w.line("MOVD x_base+56(FP), R1")
	w.line("MOVD w_base+32(FP), R2") // R2 to R5 point to the rows of w
	w.line("MOVD stride+80(FP), R6")
	w.line("MOVD wScales_base+88(FP), R7")
	w.line("MOVD wScales_len+96(FP), R8")
	w.line("MOVD xScales_base+112(FP), R9")
	w.label("group")
	for j := 1; j < 4; j++ {
		w.line("ADD R6, R%d, R%d", 1+j, 2+j)
	}
	for sum := range 16 {
		w.zero(sum)
	}
	w.line("MOVD R1, R10")
	w.line("MOVD R6, R11")
	w.label("columns")
	for half := range 2 {
		w.line("VLD2.P 32(R10), [V%d.H8, V%d.H8]", evenX+2*half, evenX+2*half+1)
	}
	for j := range 4 {
		numbers := evenW + 6*(j%2)
		w.line("VLD2.P 32(R%d), [V%d.B16, V%d.B16]", 2+j, numbers, numbers+1)
		for odd := range 2 {
			for half := range 2 {
				x, wide := evenX+2*half+odd, numbers+2+2*odd+half
				w.sxtl(half, wide, numbers+odd)
				w.smlal(0, 4*j+2*half, wide, x)
				w.smlal(1, 4*j+2*half+1, wide, x)
			}
		}
	}
	w.line("SUBS $32, R11")
	w.line("BNE columns")
	for j := range 4 {
		v := 4 * j
		for sum := range 4 {
			w.scvtf(v+sum, v+sum)
		}
		w.fadd(v, v, v+2)
		w.fadd(v+1, v+1, v+3)
		w.fadd(v, v, v+1)
	}
	w.faddp(0, 0, 4)
	w.faddp(8, 8, 12)
	w.faddp(0, 0, 8)
	w.line("FMOVQ.P 16(R7), F16")
	w.line("VLD1R (R9), [V17.S4]")
	w.fmul(0, 0, 16)
	w.fmul(0, 0, 17)
	w.line("FMOVQ.P F0, 16(R0)")
	w.line("MOVD R5, R2")
	w.line("SUBS $4, R8")
	w.line("BNE group")
	w.line("RET")
}
