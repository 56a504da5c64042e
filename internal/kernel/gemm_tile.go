package kernel

import "unsafe"

// gemmTile holds the arguments of a function that computes tiles, one below the other: C = alpha·A·B + beta·C. A has
// tiles·rows rows and k columns, B is k×cols, and C has tiles·rows rows and cols columns. The assembly uses the offsets
// of the fields.
type gemmTile[F Float] struct {
	a, b, c       []F
	rsA, csA      int // distances between rows and between columns of A
	rsB, ldc      int // distances between rows of B and of C; their columns are adjacent
	rows, cols, k int // sizes of one tile; each at least 1
	tiles         int // number of tiles, at least 1
	keep          int // 0 if C must not be read, otherwise 1
	alpha, beta   F
	ahead         unsafe.Pointer // AVX-512 prefetches from this address on, step bytes further for every four columns of A
	step          uintptr
}

// gemmTiles holds the tile functions of one instruction set and the sizes that suit them.
type gemmTiles[F Float] struct {
	rows, cols int   // largest tile
	heights    []int // numbers of rows that a tile may have, descending; nil means 1 to rows
	lanes      int   // columns are read in groups of this size
	depth      int   // largest k of a tile
	band       int   // most rows of C per pass over packed columns of B; their part of A stays in the cache
	slab       int   // most columns of C in one block
	ahead      bool  // whether tile reads ahead: see gemmTile.prefetch
	collides   bool  // whether a tile has more rows than a set of the first cache holds lines
	tile       func(t *gemmTile[F])

	// These functions copy to a panel; they are nil without assembly. The distances between rows, ldd and lds, are in
	// bytes.
	packRows       func(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, rows, cols int)
	packTransposed func(dst unsafe.Pointer, ldd uintptr, src unsafe.Pointer, lds uintptr, groups, blocks int)
}

// pack copies k rows of cols elements to a panel. It adds zeros to each row, at least up to a multiple of lanes.
func (g *gemmTiles[F]) pack(dst, src []F, ld, cols, k int) {
	width := g.cols
	if g.packRows != nil {
		_, _ = dst[k*width-1], src[(k-1)*ld+cols-1]
		size := unsafe.Sizeof(src[0])
		g.packRows(unsafe.Pointer(&dst[0]), uintptr(width)*size, unsafe.Pointer(&src[0]), uintptr(ld)*size, k, cols)
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

// transpose copies the transpose of src to a panel, like pack. src has cols rows of k elements.
func (g *gemmTiles[F]) transpose(dst, src []F, ld, cols, k int) {
	dst = dst[:k*g.cols]
	if cols%g.lanes != 0 {
		clear(dst)
	}
	g.transposeTo(dst, g.cols, src, ld, cols, k)
}

// transposeTo copies the transpose of src, which has cols rows of k elements, to dst. ld and ldd are the distances
// between their rows.
func (g *gemmTiles[F]) transposeTo(dst []F, ldd int, src []F, ld, cols, k int) {
	j0, p0 := 0, 0
	if g.packTransposed != nil {
		size := unsafe.Sizeof(src[0])
		lanes := int(32 / size)
		j0, p0 = cols/lanes*lanes, k/lanes*lanes
		if j0 > 0 && p0 > 0 {
			_, _ = dst[(p0-1)*ldd+j0-1], src[(j0-1)*ld+p0-1]
			g.packTransposed(unsafe.Pointer(&dst[0]), uintptr(ldd)*size, unsafe.Pointer(&src[0]), uintptr(ld)*size, j0/lanes, p0/lanes)
		}
	}
	for j := range cols {
		from := 0
		if j < j0 {
			from = p0
		}
		for p := from; p < k; p++ {
			dst[p*ldd+j] = src[j*ld+p]
		}
	}
}

// gemmGap is the number of elements after a sliver. Packing its last row writes a whole vector.
const gemmGap = 16

// sliversSize returns a sufficient number of elements for the slivers of a column of tiles with the given number of
// rows in all. The rows that are left after the tallest tiles need at most two more.
func (g *gemmTiles[F]) sliversSize(rows, k int) int { return rows*k + (rows/g.rows+2)*gemmGap }

// packSlivers copies the rows of a transposed A: a has k rows of the given number of elements. Each tile gets a sliver,
// in which the tile's elements lie side by side, column by column. So a tile reads whole lines of the cache, one after
// the other.
func (g *gemmTiles[F]) packSlivers(dst, a []F, lda, rows, k int) {
	const group = 8 // rows of a at a time, so that their lines are in the cache for the next sliver
	size := unsafe.Sizeof(a[0])
	_, _ = dst[g.sliversSize(rows, k)-1], a[(k-1)*lda+rows-1]
	for p := 0; p < k; p += group {
		from := 0
		for i, height := 0, 0; i < rows; i += height {
			height, _ = g.next(rows - i)
			g.packRows(unsafe.Pointer(&dst[from+p*height]), uintptr(height)*size, unsafe.Pointer(&a[p*lda+i]), uintptr(lda)*size, min(group, k-p), height)
			from += height*k + gemmGap
		}
	}
}

// oneByOne computes a column of tiles like column, with a call for each tile. If slivers is true, packSlivers has
// copied A. While a tile is computed, the second cache reads a row that the next panel will hold: the rows start at
// next, ld elements apart, and have t.k elements each.
func (g *gemmTiles[F]) oneByOne(t *gemmTile[F], a, c []F, rows int, slivers bool, next []F, ld int) {
	from := 0
	for i := 0; i < rows; i += t.rows {
		t.rows, _ = g.next(rows - i)
		t.tiles = 1
		t.prefetch(t.b, 0)
		if len(next) > 0 {
			t.prefetch(next, 4)
			next = next[min(ld, len(next)):]
		}
		t.c = c[i*t.ldc:]
		if slivers {
			t.rsA, t.csA = 1, t.rows
			t.a = a[from:]
			from += t.rows*t.k + gemmGap
		} else {
			t.a = a[i*t.rsA:]
		}
		g.tile(t)
	}
}

// prefetch has the tile read x ahead: for every four columns of A, the element that is step elements after the one
// before.
func (t *gemmTile[F]) prefetch(x []F, step uintptr) {
	t.ahead, t.step = unsafe.Pointer(&x[0]), step*unsafe.Sizeof(x[0])
}

// column computes a column of tiles with the given number of rows in all.
func (g *gemmTiles[F]) column(t *gemmTile[F], a, c []F, rows int) {
	t.prefetch(t.b, 0) // nothing new
	for top := 0; top < rows; {
		height, tiles := g.next(rows - top)
		t.rows, t.tiles = height, tiles // g.tile may change them
		t.a, t.c = a[top*t.rsA:], c[top*t.ldc:]
		g.tile(t)
		top += height * tiles
	}
}

// next divides rows into tiles. It returns the height of the first tiles, and how many of them to compute. If a tile
// may have any height up to g.rows, the heights differ by at most one row.
func (g *gemmTiles[F]) next(rows int) (height, tiles int) {
	for _, h := range g.heights {
		if rows >= h {
			return h, rows / h
		}
	}
	tiles = (rows + g.rows - 1) / g.rows
	if more := rows % tiles; more > 0 {
		return rows/tiles + 1, more
	}
	return rows / tiles, tiles
}
