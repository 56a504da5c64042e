//go:build !noasm

package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// assembly returns the instruction set NEON, which every arm64 processor has. It has assembly only for float32:
// float64 is mostly for gradient checks.
func assembly() []*instructionSet {
	return []*instructionSet{{
		name: "neon", runs: true,
		bfloat16: bfloat16Portable(4, 16),
		f32: &body[float32]{vectorTable: vectorTable32NEON(), tiles: gemmTiles[float32]{
			rows: 6, cols: 16, lanes: 16, depth: 256, band: 256, slab: 512, tile: gemmTile32NEON,
		}},
		f64:  &body[float64]{vectorTable: vectorPortable[float64](), tiles: gemmPortable[float64]()},
		int8: int8Tiles{one: int8DotsNEON},
	}}
}

func vectorTable32NEON() vectorTable[float32] {
	t := vectorPortable[float32]()
	t.add, t.mul, t.relu = vectorAdd32NEON, vectorMul32NEON, vectorRelu32NEON
	t.scale, t.axpy = vectorScale32NEON, vectorAxpy32NEON
	t.maxOf, t.dot, t.dots = vectorMaxOf32NEON, vectorDot32NEON, vectorDots32NEON
	t.expShift, t.expSum, t.softmax = vectorExpShift32NEON, vectorExpSum32NEON, vectorSoftmax32NEON
	t.adamW = vectorAdamW32NEON
	return t
}

func vectorDots32NEON(x, y, z []float32) (a, b float32) {
	return vectorDot32NEON(x, y), vectorDot32NEON(x, z)
}

func vectorSoftmax32NEON(w, scores []float32) float32 {
	largest := vectorMaxOf32NEON(scores)
	if portable.Finite(largest) {
		vectorScale32NEON(w, 1/vectorExpShift32NEON(w, scores, largest))
	}
	return largest
}

// These functions are in gemm_neon_arm64.s and vector_neon_arm64.s; see gemmTiles and vectorTable.

//go:noescape
func gemmTile32NEON(t *gemmTile[float32])

//go:noescape
func vectorAdd32NEON(out, x, y []float32)

//go:noescape
func vectorMul32NEON(out, x, y []float32)

//go:noescape
func vectorRelu32NEON(y, x []float32)

//go:noescape
func vectorScale32NEON(x []float32, a float32)

//go:noescape
func vectorAxpy32NEON(y, x []float32, a float32)

//go:noescape
func vectorMaxOf32NEON(x []float32) float32

//go:noescape
func vectorDot32NEON(x, y []float32) float32

//go:noescape
func vectorExpShift32NEON(dst, src []float32, shift float32) float32

//go:noescape
func vectorExpSum32NEON(src []float32, shift float32) float32

//go:noescape
func vectorAdamW32NEON(w, g, first, second []float32, f *[9]float32)

// This function is in int8_neon_arm64.s; see int8Dots. It fetches nothing ahead.
//
//go:noescape
func int8DotsNEON(y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, pass, step int)

// parallelPause waits for some tens of nanoseconds. Meanwhile the core's other hardware thread can use the core.
func parallelPause()
