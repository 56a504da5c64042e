//go:build linux && amd64

package main

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// A thread is a thread of the program, with its tiles.
type thread struct {
	id    int
	rows  [8]int // 0 without a configuration
	width [8]int // bytes per row
	tiles [8][16][64]byte
}

// emulate computes the instruction at which the thread has stopped. See Intel's manual, volume 2.
func (t *thread) emulate() error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(t.id, &regs); err != nil {
		return err
	}
	var code [16]byte
	if err := t.copy(uintptr(regs.Rip), code[:], unix.ProcessVMReadv); err != nil {
		return err
	}
	i, ok := decode(code[:], &regs)
	if !ok {
		return fmt.Errorf("unknown instruction % x", code)
	}
	for _, tile := range i.tiles() {
		if t.rows[tile] == 0 {
			return fmt.Errorf("instruction % x uses tile %d before LDTILECFG", code, tile)
		}
	}
	switch i.name {
	case "ldtilecfg":
		var config [64]byte
		if err := t.copy(i.address, config[:], unix.ProcessVMReadv); err != nil {
			return err
		}
		if config[0] != 1 {
			return fmt.Errorf("LDTILECFG with palette %d, want 1", config[0])
		}
		*t = thread{id: t.id}
		for tile := range t.rows {
			t.rows[tile] = int(config[48+tile])
			t.width[tile] = int(binary.LittleEndian.Uint16(config[16+2*tile:]))
			if t.rows[tile] > 16 || t.width[tile] > 64 {
				return fmt.Errorf("LDTILECFG with %d rows of %d bytes", t.rows[tile], t.width[tile])
			}
		}
	case "tilerelease":
		*t = thread{id: t.id}
	case "tilezero":
		t.tiles[i.reg] = [16][64]byte{}
	case "tileloadd":
		t.tiles[i.reg] = [16][64]byte{}
		if err := t.move(i, unix.ProcessVMReadv); err != nil {
			return err
		}
	case "tilestored":
		if err := t.move(i, unix.ProcessVMWritev); err != nil {
			return err
		}
	case "tdpbf16ps":
		t.multiply(i.reg, i.rm, i.vvvv)
	}
	regs.Rip += uint64(i.length)
	return unix.PtraceSetRegs(t.id, &regs)
}

// transfer is unix.ProcessVMReadv or unix.ProcessVMWritev.
type transfer func(pid int, local []unix.Iovec, remote []unix.RemoteIovec, flags uint) (int, error)

// copy copies between buf and the program's memory.
func (t *thread) copy(address uintptr, buf []byte, way transfer) error {
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	n, err := way(t.id, local, []unix.RemoteIovec{{Base: address, Len: len(buf)}}, 0)
	if err == nil && n != len(buf) {
		err = fmt.Errorf("%d of %d bytes at %#x can be accessed", n, len(buf), address)
	}
	return err
}

// move copies a tile's rows.
func (t *thread) move(i instruction, way transfer) error {
	for row := range t.rows[i.reg] {
		if err := t.copy(i.address+uintptr(row)*i.stride, t.tiles[i.reg][row][:t.width[i.reg]], way); err != nil {
			return err
		}
	}
	return nil
}

// instruction is a decoded instruction.
type instruction struct {
	name            string
	length          int
	reg, rm, vvvv   int
	address, stride uintptr
}

// tiles returns the tiles that the instruction uses.
func (i instruction) tiles() []int {
	switch i.name {
	case "ldtilecfg", "tilerelease":
		return nil
	case "tdpbf16ps":
		return []int{i.reg, i.rm, i.vvvv}
	}
	return []int{i.reg}
}

// decode reads an instruction with a VEX prefix of three bytes.
func decode(code []byte, regs *unix.PtraceRegs) (i instruction, ok bool) {
	modrm := code[4]
	i = instruction{length: 5, reg: int(modrm >> 3 & 7), rm: int(modrm & 7), vvvv: int(^code[2] >> 3 & 15)}
	if code[0] != 0xc4 || code[1]&0x1f != 2 || code[1]&0x80 == 0 || code[2]&0x84 != 0 || i.vvvv > 7 {
		return i, false
	}
	inMemory := modrm>>6 != 3
	i.name = map[[3]int]string{ // by the opcode, the prefix, and 1 with a memory operand
		{0x49, 0, 1}: "ldtilecfg", {0x49, 0, 0}: "tilerelease", {0x49, 3, 0}: "tilezero",
		{0x4b, 3, 1}: "tileloadd", {0x4b, 1, 1}: "tileloadd", {0x4b, 2, 1}: "tilestored", {0x5c, 2, 0}: "tdpbf16ps",
	}[[3]int{int(code[3]), int(code[2] & 3), map[bool]int{true: 1}[inMemory]}]
	if !inMemory || i.name == "" {
		return i, i.name != ""
	}
	values := [16]uint64{regs.Rax, regs.Rcx, regs.Rdx, regs.Rbx, regs.Rsp, regs.Rbp, regs.Rsi, regs.Rdi,
		regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15}
	base, high := i.rm, int(^code[1]>>5&1)<<3
	if i.rm == 4 { // base and index follow
		base = int(code[5] & 7)
		if index := int(code[5]>>3&7) | int(^code[1]>>6&1)<<3; index != 4 {
			i.stride = uintptr(values[index]) << (code[5] >> 6)
		}
		i.length++
	} else if i.name != "ldtilecfg" {
		return i, false
	}
	if modrm>>6 == 0 && base == 5 { // no base, or relative to the next instruction
		return i, false
	}
	i.address = uintptr(values[base|high])
	switch modrm >> 6 {
	case 1:
		i.address += uintptr(int8(code[i.length]))
		i.length++
	case 2:
		i.address += uintptr(int32(binary.LittleEndian.Uint32(code[i.length:])))
		i.length += 4
	}
	return i, true
}
