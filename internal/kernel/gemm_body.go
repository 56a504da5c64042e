package kernel

import (
	"sync"
	"unsafe"
)

// gemmBody is one way to compute a product: a function for tiles and the sizes that suit it.
type gemmBody[F Float] struct {
	name       string
	rows, cols int // largest tile
	lanes      int // columns are read this many at a time
	depth      int // longest run of k
	band       int // most rows of C between two uses of a packed part of B: their part of A stays in the cache
	slab       int // most columns of C at a time
	tile       func(t *gemmTile[F])

	// Copies to a panel. Strides are in bytes. They are nil where there is no assembly.
	copyRows      func(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)
	transposeRows func(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, groups, blocks int)

	scratch *sync.Pool
}

// gemmBodies lists what this processor can run, best first: the assembly given, then Go.
func gemmBodies[F Float](asm []gemmBody[F]) []*gemmBody[F] {
	var all []*gemmBody[F]
	for _, b := range append(asm, gemmBody[F]{
		name: "portable", rows: 2, cols: 4, lanes: 4, depth: 256, band: 128, slab: 256, tile: gemmTilePortable[F],
	}) {
		b.scratch = &sync.Pool{New: func() any { return &gemmScratch[F]{b: make([]F, b.cols*b.depth)} }}
		all = append(all, &b)
	}
	return all
}

var (
	gemmBodies32 = gemmBodies(gemmAsm32())
	gemmBodies64 = gemmBodies(gemmAsm64())
	gemmBody32   = gemmBodies32[0]
	gemmBody64   = gemmBodies64[0]
)

// pack copies k rows of cols elements to a panel, filled up with zeros to a multiple of lanes.
func (b *gemmBody[F]) pack(dst, src []F, ld, cols, k int) {
	width := b.cols
	if b.copyRows != nil {
		_, _ = dst[k*width-1], src[(k-1)*ld+cols-1]
		size := unsafe.Sizeof(src[0])
		b.copyRows(unsafe.Pointer(&dst[0]), uintptr(width)*size, unsafe.Pointer(&src[0]), uintptr(ld)*size, k, cols)
		return
	}
	for p := range k {
		row := dst[p*width : (p+1)*width]
		n := copy(row, src[p*ld:p*ld+cols])
		if n < len(row) {
			clear(row[n:])
		}
	}
}

// packTransposed does so with the transpose of cols rows of k elements.
func (b *gemmBody[F]) packTransposed(dst, src []F, ld, cols, k int) {
	dst = dst[:k*b.cols]
	if cols%b.lanes != 0 {
		clear(dst)
	}
	j0, p0 := 0, 0
	if b.transposeRows != nil {
		size := unsafe.Sizeof(src[0])
		lanes := int(32 / size)
		j0, p0 = cols/lanes*lanes, k/lanes*lanes
		if j0 > 0 && p0 > 0 {
			_ = src[(j0-1)*ld+p0-1]
			b.transposeRows(unsafe.Pointer(&dst[0]), uintptr(b.cols)*size, unsafe.Pointer(&src[0]), uintptr(ld)*size, j0/lanes, p0/lanes)
		}
	}
	for j := range cols {
		from := 0
		if j < j0 {
			from = p0
		}
		for p := from; p < k; p++ {
			dst[p*b.cols+j] = src[j*ld+p]
		}
	}
}
