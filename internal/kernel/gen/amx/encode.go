package main

import (
	"fmt"
	"strings"
)

// These functions write instructions of AMX, and one of AVX512_BF16, as bytes, with GNU's names in a comment. The encodings are from Intel's
// manual, volume 2. TestBytes compares them with a disassembler.

// Numbers of general registers in an instruction.
const (
	rbx, rsi, rdi, r8, r9, r13, r14 = 3, 6, 7, 8, 9, 13, 14
)

var names = map[int]string{rbx: "rbx", rsi: "rsi", rdi: "rdi", r8: "r8", r9: "r9", r13: "r13", r14: "r14"}

// Prefixes that belong to the opcode.
const none, f3, f2 = 0, 2, 3

// vex writes a VEX prefix and an opcode of map 0F38. The high bits of x and b, registers in the operand, and all bits
// of v, a register, are inverted.
func vex(x, b, v, prefix int, opcode byte) []byte {
	return []byte{0xc4, byte(0x82 | (^x>>3&1)<<6 | (^b>>3&1)<<5), byte(^v&15<<3 | prefix), opcode}
}

func (w *writer) bytes(code []byte, format string, args ...any) {
	var text []string
	for _, b := range code {
		text = append(text, fmt.Sprintf("BYTE $0x%02x", b))
	}
	w.line("%s // %s", strings.Join(text, "; "), fmt.Sprintf(format, args...))
}

func (w *writer) ldtilecfg(base int) {
	w.bytes(append(vex(0, base, 0, none, 0x49), byte(base&7)), "ldtilecfg (%%%s)", names[base])
}

func (w *writer) tilerelease() { w.bytes(append(vex(0, 0, 0, none, 0x49), 0xc0), "tilerelease") }

func (w *writer) tilezero(tile int) {
	w.bytes(append(vex(0, 0, 0, f2, 0x49), byte(0xc0|tile<<3)), "tilezero %%tmm%d", tile)
}

// memory returns the bytes of an operand in memory with rows from base + disp on, index bytes apart.
func memory(tile, disp, base, index int) []byte {
	return []byte{byte(0x84 | tile<<3), byte(index&7<<3 | base&7), byte(disp), byte(disp >> 8), byte(disp >> 16), byte(disp >> 24)}
}

func (w *writer) tileload(tile, disp, base, stride int) {
	w.bytes(append(vex(stride, base, 0, f2, 0x4b), memory(tile, disp, base, stride)...),
		"tileloadd %#x(%%%s,%%%s,1),%%tmm%d", disp, names[base], names[stride], tile)
}

func (w *writer) tilestore(tile, disp, base, stride int) {
	w.bytes(append(vex(stride, base, 0, f3, 0x4b), memory(tile, disp, base, stride)...),
		"tilestored %%tmm%d,%#x(%%%s,%%%s,1)", tile, disp, names[base], names[stride])
}

// tdpbf16ps adds the products of a's rows with b's columns to sums.
func (w *writer) tdpbf16ps(sums, a, b int) {
	w.bytes(append(vex(0, 0, b, f3, 0x5c), byte(0xc0|sums<<3|a)), "tdpbf16ps %%tmm%d,%%tmm%d,%%tmm%d", b, a, sums)
}

// vcvtne2ps2bf16 rounds 16 lower and 16 upper float32 to bfloat16. The result replaces lower. Both are numbers of
// registers below 8.
func (w *writer) vcvtne2ps2bf16(lower, upper int) {
	w.bytes([]byte{0x62, 0xf2, byte(^upper&15<<3 | 4 | f2), 0x48, 0x72, byte(0xc0 | lower<<3 | lower)},
		"vcvtne2ps2bf16 %%zmm%d,%%zmm%d,%%zmm%d", lower, upper, lower)
}
