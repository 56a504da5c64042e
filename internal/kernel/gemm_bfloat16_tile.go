package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// bfloat16Terms is the number of terms that a tile adds at once.
const bfloat16Terms = portable.BFloat16Terms

// bfloat16Tiles holds the tile function of one instruction set and the sizes that suit it. A tile has as many columns
// as the set's tiles for float32, so that both pack B in the same way.
type bfloat16Tiles struct {
	rows       int // rows of a tile
	depth      int // most terms that are packed at once, a multiple of bfloat16Terms; a panel of B stays in the first cache
	band, slab int // most rows and columns of a block
	tile       func(t *bfloat16Tile)
	round      func(x []float32) // rounds to bfloat16; the length is a multiple of 8
}

// bfloat16Tile holds the arguments of a function that computes tiles, one below the other. Every tile has all its rows
// and columns. A and B are packed: they hold bfloat16, and zeros after the last term. The assembly uses the offsets of
// the fields.
type bfloat16Tile struct {
	a, b, c  []float32
	rsA, csA int // distances between rows and between columns of A
	ldc      int // distance between rows of C
	steps    int // number of groups of bfloat16Terms terms; at least 1
	tiles    int // number of tiles, at least 1
	keep     int // 0 if the sums begin at 0, 1 if they begin at the elements of C
}

// bfloat16Portable computes tiles of rows×cols elements.
func bfloat16Portable(rows, cols int) bfloat16Tiles {
	tile := func(t *bfloat16Tile) {
		for i := range t.tiles * rows {
			a := t.a[i*t.rsA:]
			for j := range cols {
				sum := &t.c[i*t.ldc+j]
				if t.keep == 0 {
					*sum = 0
				}
				for s := range t.steps {
					p := s * bfloat16Terms
					*sum = portable.TDPBF16PS(*sum, a[p*t.csA:], t.csA, t.b[p*cols+j:], cols)
				}
			}
		}
	}
	return bfloat16Tiles{rows: rows, depth: 128, band: 480, slab: 256, tile: tile, round: portable.RoundBFloat16s}
}
