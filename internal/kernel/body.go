package kernel

import "sync"

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
