package kernel

import "math"

// RotaryTable fills cos and sin, which have one row per position and one element per pair. Pair i of position
// positions[p] turns by the angle positions[p]·frequencies[i]; row p holds the cosine and the sine of this angle, times
// magnitude.
func RotaryTable[F Float](cores int, cos, sin []F, positions []int, frequencies []float64, magnitude float64) {
	half := len(frequencies)
	runRanges(cores, len(positions), max(1, 1024/half), len(positions)*half*16, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			for i, f := range frequencies {
				s, c := math.Sincos(float64(positions[p]) * f)
				cos[p*half+i], sin[p*half+i] = F(magnitude*c), F(magnitude*s)
			}
		}
	})
}

// A Rotary describes a tensor whose vectors are turned by their positions. Its shape is (Batch, Outer, Length, Inner,
// Width), where Length is the number of positions. The first Dim elements of each vector are turned in pairs. If
// Interleaved is true, elements 2i and 2i+1 form a pair, otherwise elements i and i+Dim/2.
type Rotary struct {
	Batch, Outer, Length, Inner, Width int

	Dim         int
	Interleaved bool
	Inverse     bool // turn in the other direction
}

// Rotate copies x to y and turns each pair (u, v) to (u·cos − v·sin, v·cos + u·sin). The tables cos and sin have Length
// rows, or Batch·Length rows if each batch element has its own positions.
func Rotate[F Float](cores int, y, x, cos, sin []F, r Rotary) {
	half := r.Dim / 2
	perBatch := len(cos) > r.Length*half
	row := r.Inner * r.Width
	body, sign := bodyOf[F](), F(1)
	turn := body.rotate
	if r.Interleaved {
		turn = body.rotatePairs
	}
	if r.Inverse {
		sign = -1
	}
	runRanges(cores, r.Batch*r.Outer*r.Length, max(1, grain/(2*row)), 2*len(x), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p := i % r.Length
			if perBatch {
				p += i / (r.Outer * r.Length) * r.Length
			}
			y, x := y[i*row:][:row], x[i*row:][:row]
			turn(y, x, cos[p*half:][:half], sin[p*half:][:half], sign, r.Inner, r.Width)
			if rest := r.Width - r.Dim; rest > 0 {
				body.copyRows(y[r.Dim:], x[r.Dim:], r.Inner, rest, r.Width, r.Width)
			}
		}
	})
}
