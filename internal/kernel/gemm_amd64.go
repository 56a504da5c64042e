//go:build !noasm

package kernel

import "unsafe"

// The functions of gemm_amd64.s.

//go:generate go run -C gen . -out ../gemm_amd64.s

//go:noescape
func gemmTile32AVX512(t *gemmTile[float32])

//go:noescape
func gemmTile64AVX512(t *gemmTile[float64])

//go:noescape
func gemmTile32AVX2(t *gemmTile[float32])

//go:noescape
func gemmTile64AVX2(t *gemmTile[float64])

//go:noescape
func gemmPackRows32AVX512(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)

//go:noescape
func gemmPackRows64AVX512(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)

//go:noescape
func gemmPackRows32AVX2(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)

//go:noescape
func gemmPackRows64AVX2(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)

//go:noescape
func gemmPackTransposed32AVX2(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, groups, blocks int)

//go:noescape
func gemmPackTransposed64AVX2(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, groups, blocks int)

func gemmAsm32() (bodies []gemmBody[float32]) {
	if hasAVX512 {
		bodies = append(bodies, gemmBody[float32]{
			name: "avx512", rows: 14, cols: 32, lanes: 16, depth: 256, band: 256, slab: 512, tile: gemmTile32AVX512,
			copyRows: gemmPackRows32AVX512, transposeRows: gemmPackTransposed32AVX2,
		})
	}
	if hasAVX2 {
		bodies = append(bodies, gemmBody[float32]{
			name: "avx2", rows: 6, cols: 16, lanes: 8, depth: 256, band: 256, slab: 512, tile: gemmTile32AVX2,
			copyRows: gemmPackRows32AVX2, transposeRows: gemmPackTransposed32AVX2,
		})
	}
	return bodies
}

func gemmAsm64() (bodies []gemmBody[float64]) {
	if hasAVX512 {
		bodies = append(bodies, gemmBody[float64]{
			name: "avx512", rows: 14, cols: 16, lanes: 8, depth: 256, band: 128, slab: 512, tile: gemmTile64AVX512,
			copyRows: gemmPackRows64AVX512, transposeRows: gemmPackTransposed64AVX2,
		})
	}
	if hasAVX2 {
		bodies = append(bodies, gemmBody[float64]{
			name: "avx2", rows: 6, cols: 8, lanes: 4, depth: 256, band: 128, slab: 512, tile: gemmTile64AVX2,
			copyRows: gemmPackRows64AVX2, transposeRows: gemmPackTransposed64AVX2,
		})
	}
	return bodies
}
