package main

import "fmt"

// The tile of a product: 6×16, so 24 accumulators of 4 lanes. Row i has V(4i) to V(4i+3).
const (
	tileRows = 6
	tileVecs = 4
	tileB    = 24 // V24 to V27: a row of B
	tileA    = 28 // V28 and V29: an element of A in all lanes, in turn
	alpha    = 30
	beta     = 31
)

// gemm writes the function of tiles. For each number of rows it has one loop over k. The accumulators then go to the
// stack, from which one loop updates C for every number of rows and columns.
func gemm(w *writer) {
	w.function("gemmTile32NEON", "t *gemmTile[float32]", tileRows*tileVecs*16, 8)
	w.line("MOVD t+0(FP), R0")
	for i, r := range []string{"R1", "R2", "R3"} { // a, b, c
		w.line("MOVD %d(R0), %s", 24*i, r)
	}
	for i, r := range []string{"R4", "R5", "R6", "R7"} { // rsA, csA, rsB, ldc
		w.line("MOVD %d(R0), %s", 72+8*i, r)
		w.line("LSL $2, %s", r)
	}
	for i, r := range []string{"R8", "R9", "R10", "R11", "R12"} { // rows, cols, k, tiles, keep
		w.line("MOVD %d(R0), %s", 104+8*i, r)
	}
	w.label("tile")
	for i := range tileRows * tileVecs {
		w.zero(i)
	}
	w.line("MOVD R2, R13")
	w.line("MOVD R10, R14")
	for i := range tileRows { // R19 to R24 point to the rows of A
		if i == 0 {
			w.line("MOVD R1, R19")
		} else {
			w.line("ADD R4, R%d, R%d", 18+i, 19+i)
		}
	}
	for rows := 1; rows < tileRows; rows++ {
		w.line("CMP $%d, R8", rows)
		w.line("BEQ rows%d", rows)
	}
	for rows := tileRows; rows > 0; rows-- {
		w.label(fmt.Sprintf("rows%d", rows))
		w.line("VLD1 (R13), [V%d.S4, V%d.S4, V%d.S4, V%d.S4]", tileB, tileB+1, tileB+2, tileB+3)
		w.line("ADD R6, R13")
		for i := range rows {
			a := tileA + i%2
			w.line("VLD1R.P (R%d)(R5), [V%d.S4]", 19+i, a)
			for j := range tileVecs {
				w.fma(tileVecs*i+j, tileB+j, a)
			}
		}
		w.line("SUBS $1, R14")
		w.line("BNE rows%d", rows)
		if rows > 1 {
			w.line("JMP store")
		}
	}
	w.label("store")
	w.line("MOVD $sums-%d(SP), R13", tileRows*tileVecs*16)
	for i := range tileRows * tileVecs {
		w.line("FMOVQ F%d, %d(R13)", i, 16*i)
	}
	w.line("FMOVS 144(R0), F%d", alpha)
	w.line("VDUP V%d.S[0], V%d.S4", alpha, alpha)
	w.line("FMOVS 148(R0), F%d", beta)
	w.line("VDUP V%d.S[0], V%d.S4", beta, beta)
	w.line("MOVD R8, R14")
	w.label("row") // R13 points to a row of sums, R15 to its sums, R16 to the elements of C
	w.line("MOVD R13, R15")
	w.line("MOVD R3, R16")
	w.line("MOVD R9, R17")
	for _, part := range []struct {
		name, next, move string
		size             int
	}{{"vec", "one", "FMOVQ", 4}, {"one", "end", "FMOVS", 1}} {
		w.label(part.name)
		w.line("CMP $%d, R17", part.size)
		w.line("BLT %s", part.next)
		w.line("%s.P %d(R15), F0", part.move, 4*part.size)
		w.fmul(0, 0, alpha)
		w.line("CBZ R12, %sNew", part.name)
		w.line("%s (R16), F1", part.move)
		w.fma(0, 1, beta)
		w.label(part.name + "New")
		w.line("%s.P F0, %d(R16)", part.move, 4*part.size)
		w.line("SUB $%d, R17", part.size)
		w.line("JMP %s", part.name)
	}
	w.label("end")
	w.line("ADD $%d, R13", tileVecs*16)
	w.line("ADD R7, R3")
	w.line("SUBS $1, R14")
	w.line("BNE row")
	w.line("MADD R4, R1, R8, R1") // the next tile's rows of A
	w.line("SUBS $1, R11")
	w.line("BNE tile")
	w.line("RET")

	w.function("parallelPause", "", 0, 0)
	w.line("MOVD $16, R0")
	w.label("wait")
	w.line("YIELD")
	w.line("SUBS $1, R0")
	w.line("BNE wait")
	w.line("RET")
}
