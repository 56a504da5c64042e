package main

import "fmt"

// along writes the function that packs lines whose terms are adjacent, as bfloat16: see amxUnit in amx_unit.go. Its
// registers are CX and DI for a line and its next terms, DX for the bytes between lines, BX and R9 for blocks of 32
// terms, AX and R8 for the panel, and SI for the lines left.
func (w *writer) along() {
	w.packing("amxAlong1AVX512")
	w.line("MOVQ $32, SI")
	w.label("line")
	w.line("MOVQ CX, DI")
	w.line("MOVQ AX, R8")
	w.line("MOVQ BX, R9")
	w.label("block")
	w.line("VMOVUPS (DI), Z0")
	w.line("VMOVUPS 64(DI), Z1")
	w.line("PREFETCHT0 (DI)(DX*1)") // the next line
	w.line("PREFETCHT0 64(DI)(DX*1)")
	w.vcvtne2ps2bf16(0, 1)
	w.line("VMOVDQU32 Z0, (R8)")
	w.line("ADDQ $128, DI")
	w.line("ADDQ $2048, R8")
	w.line("DECQ R9")
	w.line("JNZ block")
	w.line("ADDQ DX, CX")
	w.line("ADDQ $64, AX")
	w.line("DECQ SI")
	w.line("JNZ line")
	w.line("VZEROUPPER")
	w.line("RET")
}

// across writes the function that packs lines which are adjacent for each term.
func (w *writer) across() {
	w.WriteByte('\n')
	for i := range 16 { // numbers of the words of two terms, by turns
		fmt.Fprintf(w, "DATA amxPairs<>+%d(SB)/4, $%#08x\n", 4*i, (16+i)<<16|i)
	}
	w.WriteString("GLOBL amxPairs<>(SB), RODATA|NOPTR, $64\n")
	w.packing("amxAcross1AVX512")
	w.line("VMOVDQU32 amxPairs<>+0(SB), Z2")
	w.label("block")
	w.line("MOVQ $16, SI")
	w.label("pair")
	for half := range 2 {
		w.line("VMOVUPS %d(CX), Z0", 64*half)
		w.line("VMOVUPS %d(CX)(DX*1), Z1", 64*half)
		w.line("PREFETCHT0 %d(CX)(DX*8)", 64*half)
		w.vcvtne2ps2bf16(0, 1)
		w.line("VPERMW Z0, Z2, Z0")
		w.line("VMOVDQU32 Z0, %d(AX)", 1024*half)
	}
	w.line("LEAQ (CX)(DX*2), CX")
	w.line("ADDQ $64, AX")
	w.line("DECQ SI")
	w.line("JNZ pair")
	w.line("ADDQ $1024, AX")
	w.line("DECQ BX")
	w.line("JNZ block")
	w.line("VZEROUPPER")
	w.line("RET")
}

// packing begins a function that packs.
func (w *writer) packing(name string) {
	fmt.Fprintf(w, "\n// func %s(dst []uint16, src []float32, ld int, blocks int, e *amxExtremes)\n", name)
	fmt.Fprintf(w, "TEXT ·%s(SB), NOSPLIT, $0-72\n", name)
	w.line("MOVQ dst_base+0(FP), AX")
	w.line("MOVQ src_base+24(FP), CX")
	w.line("MOVQ ld+48(FP), DX")
	w.line("SHLQ $2, DX")
	w.line("MOVQ blocks+56(FP), BX")
}
