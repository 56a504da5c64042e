package main

import "fmt"

// These functions write instructions that Go's assembler lacks, as words. Most work on four lanes of 32 bits. The
// encodings are from the Arm Architecture Reference Manual, section C4.1. TestWords compares each word with a
// disassembler.

// three writes an instruction with two operands: word has the opcode, with 0 for the three registers.
func (w *writer) three(word uint32, name string, d, n, m int) {
	w.word(word|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.4s, v%d.4s", name, d, n, m)
}

// two writes an instruction with one operand.
func (w *writer) two(word uint32, name string, d, n int) {
	w.word(word|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.4s", name, d, n)
}

func (w *writer) fadd(d, n, m int)  { w.three(0x4e20d400, "fadd", d, n, m) }
func (w *writer) fsub(d, n, m int)  { w.three(0x4ea0d400, "fsub", d, n, m) }
func (w *writer) fmul(d, n, m int)  { w.three(0x6e20dc00, "fmul", d, n, m) }
func (w *writer) fdiv(d, n, m int)  { w.three(0x6e20fc00, "fdiv", d, n, m) }
func (w *writer) fmax(d, n, m int)  { w.three(0x4e20f400, "fmax", d, n, m) } // NaN if an operand is NaN
func (w *writer) fmin(d, n, m int)  { w.three(0x4ea0f400, "fmin", d, n, m) } // NaN if an operand is NaN
func (w *writer) faddp(d, n, m int) { w.three(0x6e20d400, "faddp", d, n, m) }
func (w *writer) fsqrt(d, n int)    { w.two(0x6ea1f800, "fsqrt", d, n) }
func (w *writer) frintn(d, n int)   { w.two(0x4e218800, "frintn", d, n) } // to nearest, ties to even
func (w *writer) fcvtzs(d, n int)   { w.two(0x4ea1b800, "fcvtzs", d, n) } // NaN becomes 0

// fmaxv sets the first lane of d to the largest lane of n.
func (w *writer) fmaxv(d, n int) {
	w.word(0x6e30f800|uint32(n)<<5|uint32(d), "fmaxv s%d, v%d.4s", d, n)
}

// sshr shifts signed integers to the right.
func (w *writer) sshr(d, n, by int) {
	w.word(0x4f000400|uint32(64-by)<<16|uint32(n)<<5|uint32(d), "sshr v%d.4s, v%d.4s, #%d", d, n, by)
}

func (w *writer) scvtf(d, n int) { w.two(0x4e21d800, "scvtf", d, n) } // to float32

// sxtl sets d to half of the int8 numbers of n, as int16. The argument half is 0 or 1.
func (w *writer) sxtl(half, d, n int) {
	bits, name, lanes := upper(half, "sxtl", "8b", "16b")
	w.word(0x0f08a400|bits|uint32(n)<<5|uint32(d), "%s v%d.8h, v%d.%s", name, d, n, lanes)
}

// smlal adds products of half of the int16 numbers of n and m to d.
func (w *writer) smlal(half, d, n, m int) {
	bits, name, lanes := upper(half, "smlal", "4h", "8h")
	w.word(0x0e608000|bits|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.%s, v%d.%s", name, d, n, lanes, m, lanes)
}

// upper returns how an instruction for half of a register is encoded and written.
func upper(half int, name, lower, all string) (bits uint32, written, lanes string) {
	if half == 0 {
		return 0, name, lower
	}
	return 1 << 30, name + "2", all
}

// fma adds n·m to d. Go's assembler has this instruction.
func (w *writer) fma(d, n, m int) { w.line("VFMLA V%d.S4, V%d.S4, V%d.S4", m, n, d) }

// fms subtracts n·m from d.
func (w *writer) fms(d, n, m int) { w.line("VFMLS V%d.S4, V%d.S4, V%d.S4", m, n, d) }

func (w *writer) move(d, n int) { w.line("VMOV V%d.B16, V%d.B16", n, d) }
func (w *writer) zero(d int)    { w.line("VEOR V%d.B16, V%d.B16, V%d.B16", d, d, d) }

// fill sets the lanes of d to constant bits.
func (w *writer) fill(d int, bits uint32) {
	w.line("MOVW $0x%08x, R9", bits)
	w.line("VDUP R9, V%d.S4", d)
}

func (w *writer) word(bits uint32, format string, args ...any) {
	w.line("WORD $0x%08x // %s", bits, fmt.Sprintf(format, args...))
}
