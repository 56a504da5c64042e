package kernel

import (
	"slices"
	"unsafe"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// instructionSets lists the instruction sets with assembly for this GOARCH, best first, and then Go.
var instructionSets = append(assembly(), &instructionSet{
	name: "portable", runs: true,
	f32:      &body[float32]{vectorTable: vectorPortable[float32](), tiles: gemmPortable[float32]()},
	f64:      &body[float64]{vectorTable: vectorPortable[float64](), tiles: gemmPortable[float64]()},
	bfloat16: bfloat16Portable(4, 4),
	int8:     int8Tiles{one: portable.Int8Dots},
})

// inUse is the best instruction set that this processor can run. Tests change it.
var inUse = instructionSets[slices.IndexFunc(instructionSets, func(s *instructionSet) bool { return s.runs })]

// Instructions returns the name of the instruction set in use: avx512+amx, avx512, avx2, neon or portable. Results of
// different instruction sets differ in their last bits.
func Instructions() string { return inUse.name }

// bodyOf returns the body in use. Each conversion is from a type to the same type. A checked conversion would take
// longer than the work on a short row.
func bodyOf[F Float]() *body[F] {
	if portable.Is32[F]() {
		return (*body[F])(unsafe.Pointer(inUse.f32))
	}
	return (*body[F])(unsafe.Pointer(inUse.f64))
}

// takeSpare returns scratch memory with any content. Return it with putSpare.
func takeSpare[F Float](size int) *[]F {
	s := take[[]F](&bodyOf[F]().spares)
	*s = grown(*s, size)
	return s
}

func putSpare[F Float](s *[]F) { bodyOf[F]().spares.Put(s) }
