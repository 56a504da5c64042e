//go:build !noasm

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// assembly returns the instruction sets that have assembly, best first.
func assembly() []*instructionSet {
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2
	cache, _ := dataCache(2)
	_, ways := dataCache(1)
	f64 := &body[float64]{vectorTable: vectorTable64(), tiles: gemmTiles[float64]{
		rows: 6, cols: 8, heights: []int{6, 4, 3, 2, 1}, lanes: 4, depth: 256, band: gemmBand(cache, 6, 256*8), slab: 512,
		tile: gemmTile64AVX2, packRows: gemmPackRows64AVX2, packTransposed: gemmPackTransposed64AVX2,
	}}
	int8AVX2 := int8Tiles{one: int8DotsAVX2, four: int8Dots4AVX2}
	int8AVX512 := int8Tiles{one: int8DotsVNNI, four: int8Dots4VNNI}
	if !cpu.X86.HasAVX512VNNI || !cpu.X86.HasAVX512BW {
		int8AVX512 = int8AVX2
	}
	sets := []*instructionSet{
		{
			name: "avx512", runs: avx2 && cpu.X86.HasAVX512F,
			bfloat16: bfloat16Tiles{
				rows: 4, depth: 128, band: 480, slab: 528, tile: bfloat16TileAVX512, round: bfloat16RoundAVX2,
			},
			f32: &body[float32]{vectorTable: vectorTable32AVX512(), tiles: gemmTiles[float32]{
				rows: 9, cols: 48, lanes: 16, depth: 512, band: gemmBand(cache, 9, 512*4), slab: 768, ahead: true, collides: ways < 9,
				tile: gemmTile32AVX512, packRows: gemmPackRows32AVX512, packTransposed: gemmPackTransposed32AVX2,
			}},
			f64:  f64, // mostly for gradient checks, for which AVX2 is fast enough
			int8: int8AVX512,
		},
		{
			name: "avx2", runs: avx2,
			bfloat16: bfloat16Tiles{
				rows: 3, depth: 128, band: 480, slab: 512, tile: bfloat16TileAVX2, round: bfloat16RoundAVX2,
			},
			f32: &body[float32]{vectorTable: vectorTable32AVX2(), tiles: gemmTiles[float32]{
				rows: 6, cols: 16, lanes: 8, depth: 256, band: gemmBand(cache, 6, 256*4), slab: 512,
				tile: gemmTile32AVX2, packRows: gemmPackRows32AVX2, packTransposed: gemmPackTransposed32AVX2,
			}},
			f64:  f64,
			int8: int8AVX2,
		},
	}
	return append([]*instructionSet{amxSet(sets[0])}, sets...)
}

// These functions are in gemm_avx512_amd64.s and gemm_avx2_amd64.s; see gemmTiles.

//go:noescape
func gemmTile32AVX512(t *gemmTile[float32])

//go:noescape
func gemmTile32AVX2(t *gemmTile[float32])

//go:noescape
func gemmTile64AVX2(t *gemmTile[float64])

//go:noescape
func gemmPackRows32AVX512(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)

//go:noescape
func gemmPackRows32AVX2(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)

//go:noescape
func gemmPackRows64AVX2(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)

//go:noescape
func gemmPackTransposed32AVX2(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, groups, blocks int)

//go:noescape
func gemmPackTransposed64AVX2(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, groups, blocks int)

// These functions are in gemm_bfloat16_amd64.s; see bfloat16Tiles.

//go:noescape
func bfloat16TileAVX512(t *bfloat16Tile)

//go:noescape
func bfloat16TileAVX2(t *bfloat16Tile)

//go:noescape
func bfloat16RoundAVX2(x []float32)

// These functions are in int8_amd64.s; see int8Dots.

//go:noescape
func int8DotsVNNI(y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, pass, step int)

//go:noescape
func int8Dots4VNNI(y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, pass, step int)

//go:noescape
func int8DotsAVX2(y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, pass, step int)

//go:noescape
func int8Dots4AVX2(y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, pass, step int)

// parallelPause waits for some tens of nanoseconds. Meanwhile the core's other hardware thread can use the core.
func parallelPause()
