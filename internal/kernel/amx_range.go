package kernel

import "math"

// amxExtremes holds the extremes of 16 columns of a panel. All numbers are bits of absolute values of float32, in which
// larger numbers have larger bits, and NaN the largest.
type amxExtremes struct {
	least [16]uint32 // the least bits above 0, minus 1, or all ones if there are none
	most  [16]uint32
}

// amxRange is the range of the absolute values in a panel, except zeros. In a panel of zeros, least is above most.
type amxRange struct{ least, most uint32 }

func (e *amxExtremes) reset() {
	for i := range e.least {
		e.least[i], e.most[i] = math.MaxUint32, 0
	}
}

func (e *amxExtremes) add(lane int, x float32) {
	bits := math.Float32bits(x) &^ (1 << 31)
	e.least[lane], e.most[lane] = min(e.least[lane], bits-1), max(e.most[lane], bits)
}

func (e *amxExtremes) overall() amxRange {
	r := amxRange{least: math.MaxUint32}
	for i := range e.least {
		r.least, r.most = min(r.least, e.least[i]), max(r.most, e.most[i])
	}
	if r.least < math.MaxUint32 {
		r.least++
	}
	return r
}

// The functions that follow use the exponents stored in float32, which are 127 above the numbers' exponents.

// Sums of products that aren't all zero lose nothing to flushing if they are at least 2^amxFlush. In a run, fewer than
// 8·amxRun sums of an element may be flushed: 34 in each instruction, of which there are 6 for 32 terms. Each is below
// 2⁻¹²⁶, so together they are below 2⁻²⁶ of a sum from 2^amxFlush on.
const amxFlush = 3 + amxRunBits - 126 + 26

// finite reports whether the pieces of all numbers of two panels, and the sums of their products, are finite. The first
// piece of a number from 0x7f7f8000 on would be infinite. Numbers below 2^(e+1) and 2^(f+1) have sums below
// 2^(e+f+2+amxRunBits) in a run, apart from the roundings of their pieces, for which one bit is enough.
func (r *amxRange) finite(o *amxRange) bool {
	return max(r.most, o.most) < 0x7f7f8000 && r.most>>23+o.most>>23 <= 2*127+127-2-amxRunBits
}

// plain reports whether the sums of products of two panels need no check, because they are finite and no number is so
// small that flushing to zero matters. Pieces of numbers from 2⁻¹⁰⁰ on aren't subnormal. Only if all products of an
// element are zero is S = Σ|a||b| below 2^amxFlush.
func (r *amxRange) plain(o *amxRange) bool {
	e, f := r.least>>23, o.least>>23
	return r.finite(o) && min(e, f) >= 127-100 && e+f >= 2*127+amxFlush
}

// safe reports whether the sum of products of a row and a column in a run is as good as one of numbers for which plain
// holds. If |sum| is at least 2^amxFlush, so is S, and the flushed sums don't matter. Subnormal pieces became 0, which
// changes each product by up to 2⁻¹²⁶·most, and their sum by less than 2⁻²⁶ of it.
func (r *amxRange) safe(o *amxRange, sum float32) bool {
	if !r.finite(o) || r.plain(o) {
		return r.finite(o)
	}
	least := float32(1.0 / (1 << -amxFlush))
	if min(r.least, o.least)>>23 < 127-100 {
		least *= max(1, math.Float32frombits(r.most), math.Float32frombits(o.most))
	}
	return max(sum, -sum) >= least
}

// amxLines holds the ranges of the lines of a panel, once read was called.
type amxLines struct {
	known  bool
	ranges [amxSide]amxRange
}

// read returns the ranges, which it computes from the panel's source the first time.
func (l *amxLines) read(src []float32, ld int, along bool, lines, terms int) *[amxSide]amxRange {
	if l.known {
		return &l.ranges
	}
	l.known = true
	for i := range lines {
		r := amxRange{least: math.MaxUint32}
		for p := range terms {
			index := i*ld + p
			if !along {
				index = p*ld + i
			}
			bits := math.Float32bits(src[index]) &^ (1 << 31)
			r.most = max(r.most, bits)
			if bits > 0 {
				r.least = min(r.least, bits)
			}
		}
		l.ranges[i] = r
	}
	return &l.ranges
}
