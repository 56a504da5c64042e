package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// amxModelSet returns the instruction set in use, with a matrix unit in Go. It is slow.
func amxModelSet() *instructionSet {
	set := *inUse
	set.name += "+model"
	set.amx3, set.amx1 = amxModel(3, amxPays), amxModel(1, amxPaysBFloat16)
	return &set
}

// amxModel returns a matrix unit in Go, for products of three pieces or of one. Tests compare the assembly with it, and
// use it where there is no matrix unit.
//
// A panel holds, for each piece, blocks of 32 terms. A block holds two tiles of 16 lines. Packed by along, a tile holds
// its lines one after the other. Packed by across, it holds 16 pairs of successive terms, each with 16 lines.
func amxModel(pieces int, pays func(m, n, k int) bool) *amxUnit {
	order := [][2]int{{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}} // products with a small piece of A or B
	if pieces == 1 {
		order = nil
	}
	return &amxUnit{
		pieces: pieces, pays: pays,
		along: func(dst []uint16, src []float32, ld, blocks int, e *amxExtremes) {
			for line := range amxSide {
				for term, x := range src[line*ld:][:32*blocks] {
					amxPackElement(dst, blocks, pieces, (term/32*2+line/16)*512+line%16*32+term%32, x, e)
				}
			}
		},
		across: func(dst []uint16, src []float32, ld, blocks int, e *amxExtremes) {
			for term := range 32 * blocks {
				for line, x := range src[term*ld:][:amxSide] {
					amxPackElement(dst, blocks, pieces, (term/32*2+line/16)*512+term%32/2*32+line%16*2+term%2, x, e)
				}
			}
		},
		transpose: func(panel []uint16) {
			for ; len(panel) > 0; panel = panel[512:] {
				for i := range 16 {
					for j := range i {
						for half := range 2 {
							x, y := &panel[i*32+2*j+half], &panel[j*32+2*i+half]
							*x, *y = *y, *x
						}
					}
				}
			}
		},
		tile: func(t *amxTile) { amxModelTile(t, pieces, order) },
	}
}

// amxPackElement stores the pieces of x in a panel. The first one is at index.
func amxPackElement(dst []uint16, blocks, pieces, index int, x float32, e *amxExtremes) {
	if pieces == 1 {
		dst[index] = uint16(math.Float32bits(portable.RoundBFloat16(x)) >> 16)
		return
	}
	for i, piece := range amxSplit(x) {
		dst[i*blocks*1024+index] = piece
	}
	e.add(index%16, x)
}

// amxModelTile computes what the assembly computes, except sums outside of C.
func amxModelTile(t *amxTile, pieces int, order [][2]int) {
	size := t.terms * 1024 // of one piece of a panel
	a, b, c, sums := t.a, t.b, t.c, t.sums
	for rows := t.rows; rows > 0; rows -= amxSide {
		if t.begun == 0 {
			clear(sums[:amxSide*amxSide])
		}
		step := func(block int, o [2]int) {
			x, y := amxUnpack(a[o[0]*size+block*1024:], false), amxUnpack(b[o[1]*size+block*1024:], true)
			for i := range min(rows, amxSide) {
				for j := range t.cols {
					c := &sums[i*amxSide+j]
					*c = portable.TDPBF16PS(*c, x[i*32:][:32], 1, y[j*32:][:32], 1)
				}
			}
		}
		for block := range t.terms {
			for _, o := range order {
				step(block, o)
			}
		}
		for block := range t.terms {
			step(block, [2]int{0, 0})
		}
		if t.update != 0 {
			amxUpdate(t, sums, c, min(rows, amxSide))
		}
		if rows > amxSide {
			a, c, sums = a[size*pieces:], c[amxSide*t.ldc:], sums[t.next/4:]
		}
	}
}

// amxUnpack returns the 32 lines of a block with their 32 terms each. Subnormal numbers become 0.
func amxUnpack(block []uint16, across bool) *[1024]float32 {
	var lines [1024]float32
	for i, bits := range block[:1024] {
		line, term := i/32, i%32
		if across {
			line, term = i/512*16+i%32/2, i/32%16*2+i%2
		}
		if bits&0x7f80 != 0 {
			lines[line*32+term] = math.Float32frombits(uint32(bits) << 16)
		}
	}
	return &lines
}

// amxUpdate computes C = beta·C + alpha·sums for one block.
func amxUpdate(t *amxTile, sums, c []float32, rows int) {
	for i := range rows {
		row := c[i*t.ldc:][:t.cols]
		for j := range row {
			x := float32(t.alpha * sums[i*amxSide+j])
			if t.keep != 0 {
				x += float32(t.beta * row[j])
			}
			row[j] = x
		}
	}
}
