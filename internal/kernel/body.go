package kernel

import (
	"slices"
	"sync"
	"unsafe"
)

// Float is the set of element types.
type Float interface{ float32 | float64 }

// is32 reports whether F is float32.
func is32[F Float]() bool { return unsafe.Sizeof(F(0)) == 4 }

// An instructionSet is one way to compute everything, for processors that have these instructions.
type instructionSet struct {
	name string
	runs bool // on this processor
	f32  *body[float32]
	f64  *body[float64]
}

// body holds the functions of one instruction set for one element type, and memory for their callers to use again. Each
// function runs on one goroutine. Results depend on the body, never on the number of goroutines.
type body[F Float] struct {
	vectorTable[F]
	tiles gemmTiles[F]

	loops, products, blocks, attention, additive, muon sync.Pool
}

// instructionSets lists the assembly that there is for this GOARCH, best first, and then Go.
var instructionSets = append(assembly(), &instructionSet{
	name: "portable", runs: true,
	f32: &body[float32]{vectorTable: vectorPortable[float32](), tiles: gemmPortable[float32]()},
	f64: &body[float64]{vectorTable: vectorPortable[float64](), tiles: gemmPortable[float64]()},
})

// inUse is the best instruction set that this processor has. Tests change it.
var inUse = instructionSets[slices.IndexFunc(instructionSets, func(s *instructionSet) bool { return s.runs })]

// Instructions returns the name of the instruction set that everything is computed with: avx512, avx2 or portable.
// Results of different ones differ in their last bits.
func Instructions() string { return inUse.name }

// bodyOf returns the body in use. Each conversion is from a type to itself: one that is checked takes longer than a
// short row's work.
func bodyOf[F Float]() *body[F] {
	if is32[F]() {
		return (*body[F])(unsafe.Pointer(inUse.f32))
	}
	return (*body[F])(unsafe.Pointer(inUse.f64))
}

// take returns what was last put into the pool, or a new T where it is empty.
func take[T any](p *sync.Pool) *T {
	if t, ok := p.Get().(*T); ok {
		return t
	}
	return new(T)
}

// grown returns x with the given length, or new memory where x is too short.
func grown[F Float](x []F, size int) []F {
	if cap(x) < size {
		return make([]F, size)
	}
	return x[:size]
}
