package kernel

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// An instructionSet holds the functions for processors with certain instructions.
type instructionSet struct {
	name string
	runs bool // whether this processor can run it
	f32  *body[float32]
	f64  *body[float64]

	amx3, amx1 *amxUnit // for products of float32 and of bfloat16, or nil

	bfloat16 bfloat16Tiles // for products of bfloat16; they pack B like f32
	int8     int8Tiles
}

// body holds the functions of one instruction set for one element type, and pools of memory for their callers. Each
// call of a function runs on one goroutine. Results depend on the body, but not on the number of goroutines.
type body[F Float] struct {
	vectorTable[F]
	tiles gemmTiles[F]

	loops, products, finishes, blocks, matrices, matrix, attention, additive, muon, spares sync.Pool
}

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

// take returns an object from the pool, or a new T if the pool is empty.
func take[T any](p *sync.Pool) *T {
	if t, ok := p.Get().(*T); ok {
		return t
	}
	return new(T)
}

// grown returns x with the given length, or new memory if x's capacity is too small.
func grown[F Float](x []F, size int) []F {
	if cap(x) < size {
		return make([]F, size)
	}
	return x[:size]
}

// takeSpare returns scratch memory with any content. Return it with putSpare.
func takeSpare[F Float](size int) *[]F {
	s := take[[]F](&bodyOf[F]().spares)
	*s = grown(*s, size)
	return s
}

func putSpare[F Float](s *[]F) { bodyOf[F]().spares.Put(s) }
