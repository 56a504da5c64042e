package main

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set and an element width, with the state of the current function.
type isa struct {
	name  string
	bits  int // bits of an element
	bytes int // bytes of a vector
	lanes int

	mask   reg.VecVirtual // AVX2: ones in the lanes of the last, shorter vector; AVX-512 uses K1
	labels int
}

// wide reports whether vectors have 512 bits.
func (v *isa) wide() bool { return v.bytes == 64 }

// function starts a function with the given name and signature in the table. F stands for the element's type.
func (v *isa) function(name, args, doc string) {
	f := function{name, v.name, v.bits, args, doc}
	functions = append(functions, f)
	TEXT(f.symbol(), NOSPLIT, "func"+f.signature())
	v.labels = 0
}

func (v *isa) label(what string) string {
	v.labels++
	return fmt.Sprintf("%s%d", what, v.labels)
}

// r returns a new vector register.
func (v *isa) r() reg.VecVirtual {
	if v.wide() {
		return ZMM()
	}
	return YMM()
}

func (v *isa) zero() reg.VecVirtual {
	z := v.r()
	v.clear(z)
	return z
}

func (v *isa) clear(z reg.VecVirtual) {
	if v.wide() {
		VPXORD(z, z, z)
	} else {
		VXORPS(z, z, z)
	}
}

// do writes an instruction for the width of an element: ps for 32 bits, pd for 64.
func (v *isa) do(ps, pd func(...Op), ops ...Op) {
	if v.bits == 32 {
		ps(ops...)
	} else {
		pd(ops...)
	}
}

// do2 is like do, for an instruction whose first operand may be a constant. If isSingle reports true
// for that operand, do2 calls one instead of ps. It reads the constant as a single element and broadcasts it.
func (v *isa) do2(ps, pd, one func(...Op), ops ...Op) {
	if v.isSingle(ops[0]) {
		ps = one
	}
	v.do(ps, pd, ops...)
}

// isSingle reports whether an operand is a constant that is read as a single element. Only AVX-512 does this: Go's
// linker aligns data to at most 32 bytes, so every second constant of 64 bytes would span two cache lines, and each
// load of it would take twice as long.
func (v *isa) isSingle(x Op) bool {
	m, ok := x.(Mem)
	return ok && v.wide() && strings.HasPrefix(m.Symbol.Name, constantPrefix)
}

// Operands come in Go's order, the result last: sub(y, x, z) is z = x − y.

func (v *isa) add(y, x, z Op) { v.do2(VADDPS, VADDPD, VADDPS_BCST, y, x, z) }
func (v *isa) sub(y, x, z Op) { v.do2(VSUBPS, VSUBPD, VSUBPS_BCST, y, x, z) }
func (v *isa) mul(y, x, z Op) { v.do2(VMULPS, VMULPD, VMULPS_BCST, y, x, z) }
func (v *isa) div(y, x, z Op) { v.do2(VDIVPS, VDIVPD, VDIVPS_BCST, y, x, z) }
func (v *isa) sqrt(x, z Op)   { v.do(VSQRTPS, VSQRTPD, x, z) }

// fma adds x·y to z.
func (v *isa) fma(y, x, z Op) {
	v.do2(VFMADD231PS, VFMADD231PD, VFMADD231PS_BCST, y, x, z)
}

// fnma subtracts x·y from z.
func (v *isa) fnma(y, x, z Op) {
	v.do2(VFNMADD231PS, VFNMADD231PD, VFNMADD231PS_BCST, y, x, z)
}

// mad sets z to x·z + c.
func (v *isa) mad(c, x, z Op) {
	v.do2(VFMADD213PS, VFMADD213PD, VFMADD213PS_BCST, c, x, z)
}

func (v *isa) move(x, z Op) { v.do2(VMOVUPS, VMOVUPD, VBROADCASTSS, x, z) }

// max sets z to the larger of x and y, or to y if one of them is NaN.
func (v *isa) max(y, x, z Op) { v.do2(VMAXPS, VMAXPD, VMAXPS_BCST, y, x, z) }

// min sets z to the smaller of x and y, or to y if one of them is NaN.
func (v *isa) min(y, x, z Op) { v.do2(VMINPS, VMINPD, VMINPS_BCST, y, x, z) }

// and sets z to the bits that are set in both x and y.
func (v *isa) and(y, x, z Op) {
	if v.wide() {
		v.do2(VPANDD, VPANDQ, VPANDD_BCST, y, x, z)
	} else {
		VANDPS(y, x, z)
	}
}

func (v *isa) or(y, x, z Op) {
	if v.wide() {
		VPORD(y, x, z)
	} else {
		VORPS(y, x, z)
	}
}

// testAny sets K2 in the lanes where x has any of the bits of a constant. It is only for AVX-512.
func (v *isa) testAny(bits Mem, x reg.VecVirtual) {
	VPTESTMD_BCST(bits, x, reg.K2)
}

// blend sets z to y where m is all ones, and to x elsewhere. It is only for AVX2.
func (v *isa) blend(m, y, x, z Op) {
	if v.bits == 32 {
		VBLENDVPS(m, y, x, z)
	} else {
		VBLENDVPD(m, y, x, z)
	}
}

// broadcast returns a vector that repeats one element.
func (v *isa) broadcast(m Op) reg.VecVirtual {
	z := v.r()
	v.do(VBROADCASTSS, VBROADCASTSD, m, z)
	return z
}

// arg returns a vector that repeats a parameter.
func (v *isa) arg(name string) reg.VecVirtual {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return v.broadcast(a.Addr)
}

// wideArg returns a parameter of type float64.
func (v *isa) wideArg(name string) reg.VecVirtual {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	x := v.r()
	VMOVSD(a.Addr, x.AsX())
	return x
}

func ptr(name string) reg.GPVirtual  { return Load(Param(name).Base(), GP64()).(reg.GPVirtual) }
func size(name string) reg.GPVirtual { return Load(Param(name).Len(), GP64()).(reg.GPVirtual) }
func word(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// inBytes converts a number of elements to bytes.
func (v *isa) inBytes(n reg.GPVirtual) { SHLQ(v.shift(), n) }

// shift returns the binary logarithm of an element's bytes.
func (v *isa) shift() U8 {
	if v.bits == 32 {
		return 2
	}
	return 3
}

const constantPrefix = "vectorAll"

var constants = map[string]Mem{}

// constant returns a vector in memory whose elements are all x.
func (v *isa) constant(x float64) Mem {
	if v.bits == 32 {
		return v.pattern(uint64(math.Float32bits(float32(x))))
	}
	return v.pattern(math.Float64bits(x))
}

// pattern returns a vector in memory whose elements all have the given bits.
func (v *isa) pattern(bits uint64) Mem {
	if v.bits == 32 {
		bits |= bits << 32
	}
	name := fmt.Sprintf("%s%016x", constantPrefix, bits)
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range 4 { // a vector of AVX2
			DATA(8*i, U64(bits))
		}
		constants[name] = m
	}
	return m
}

// sign returns the bit of an element that holds its sign.
func (v *isa) sign() uint64 { return 1 << (v.bits - 1) }

// count returns a vector in memory whose elements are 0, 1, 2, …
func (v *isa) count() Mem {
	m := GLOBL(fmt.Sprintf("vectorCount%d%s", v.bits, v.name), RODATA|NOPTR)
	for i := range v.lanes {
		if v.bits == 32 {
			DATA(4*i, F32(i))
		} else {
			DATA(8*i, F64(i))
		}
	}
	return m
}

// load returns a constant in a register.
func (v *isa) load(m Op) reg.VecVirtual {
	z := v.r()
	v.move(m, z)
	return z
}
