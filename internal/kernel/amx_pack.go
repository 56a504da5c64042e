package kernel

import "math"

// pack packs rows of op(A), or columns of op(B) if right is set, and returns their range. The argument lines is their
// number. If along is set, the terms of a line are adjacent; otherwise the lines are.
func (u *amxUnit) pack(s *amxPadding, dst []uint16, src []float32, ld int, along, right bool, lines, terms int) amxRange {
	blocks := parts(terms, bfloat16Terms)
	if lines < amxSide || terms < blocks*bfloat16Terms {
		src, ld = s.pad(src, ld, along, lines, terms)
	}
	dst = dst[:blocks*bfloat16Terms*amxSide*u.pieces]
	s.extremes.reset()
	if along {
		u.along(dst, src, ld, blocks, &s.extremes)
	} else {
		u.across(dst, src, ld, blocks, &s.extremes)
	}
	if along == right {
		u.transpose(dst)
	}
	return s.extremes.overall()
}

// amxPadding is memory for packing.
type amxPadding struct {
	extremes amxExtremes
	padded   []float32
}

// pad copies lines of up to amxRun terms, and adds zeros up to 32 lines and a multiple of 32 terms.
func (s *amxPadding) pad(src []float32, ld int, along bool, lines, terms int) ([]float32, int) {
	rows, cols, width := terms, lines, amxSide
	if along {
		rows, cols, width = lines, terms, roundUp(terms, bfloat16Terms)
	}
	s.padded = grown(s.padded, amxSide*roundUp(terms, bfloat16Terms))
	clear(s.padded)
	for i := range rows {
		copy(s.padded[i*width:], src[i*ld:][:cols])
	}
	return s.padded, width
}

// amxSplit returns the bits of the three pieces of x. The first two are rounded to nearest, and the last one is exact.
func amxSplit(x float32) [3]uint16 {
	var pieces [3]uint16
	for i := range pieces {
		bits := math.Float32bits(x)
		if i < 2 {
			bits += 1 << 15
		}
		pieces[i] = uint16(bits >> 16)
		x -= math.Float32frombits(bits &^ 0xffff)
	}
	return pieces
}
