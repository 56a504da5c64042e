package kernel

import "math"

// RotaryTable sets row p of cos and sin, each of an element a pair, to magnitude times the cosines and sines of the
// angles by which rotary positions turn the pairs of position positions[p]: positions[p]·frequencies[i] for pair i.
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

// A Rotary describes vectors to be turned by their positions: they lie as (Batch, Outer, Length, Inner, Width), where
// Length counts positions and of each vector the first Dim elements are turned, in pairs: element 2i with 2i+1 if
// Interleaved, i with i+Dim/2 if not.
type Rotary struct {
	Batch, Outer, Length, Inner, Width int

	Dim         int
	Interleaved bool
	Inverse     bool // turn back
}

// Rotate sets y to x, turned: each pair (u, v) becomes (u·cos − v·sin, v·cos + u·sin). The tables have Length rows, or
// Batch times as many where each batch element has its own positions.
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

func rotatePortable[F Float](y, x, cos, sin []F, sign F, rows, stride int) {
	n := len(cos)
	sin = sin[:n]
	for r := range rows {
		x1, y1 := x[r*stride:][:n], y[r*stride:][:n]
		x2, y2 := x[r*stride+n:][:n], y[r*stride+n:][:n]
		for i, c := range cos {
			u, v, s := x1[i], x2[i], sign*sin[i]
			y1[i], y2[i] = u*c-v*s, v*c+u*s
		}
	}
}

func rotatePairsPortable[F Float](y, x, cos, sin []F, sign F, rows, stride int) {
	sin = sin[:len(cos)]
	for r := range rows {
		x, y := x[r*stride:][:2*len(cos)], y[r*stride:][:2*len(cos)]
		for i, c := range cos {
			u, v, s := x[2*i], x[2*i+1], sign*sin[i]
			y[2*i], y[2*i+1] = u*c-v*s, v*c+u*s
		}
	}
}
