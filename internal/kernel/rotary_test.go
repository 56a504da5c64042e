package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestRotate compares Rotate with a loop over pairs, and checks that Inverse undoes it.
func TestRotate(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testRotate[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testRotate[float64](t, 1e-14) })
}

func testRotate[F Float](t *testing.T, tol float64) {
	for _, r := range []Rotary{
		{Batch: 1, Outer: 1, Length: 1, Inner: 1, Width: 2, Dim: 2},
		{Batch: 2, Outer: 3, Length: 4, Inner: 1, Width: 6, Dim: 4},
		{Batch: 3, Outer: 1, Length: 5, Inner: 2, Width: 7, Dim: 6},
		{Batch: 2, Outer: 2, Length: 300, Inner: 3, Width: 32, Dim: 32},
	} {
		for flags := range 4 {
			var perBatch bool
			r.Interleaved, perBatch = flags&1 != 0, flags&2 != 0
			n := r.Length
			if perBatch {
				n *= r.Batch
			}
			const base = 50.0
			positions := make([]int, n)
			for i := range positions {
				positions[i] = i*i%61 - 7
			}
			cos, sin := make([]F, n*r.Dim/2), make([]F, n*r.Dim/2)
			frequencies := make([]float64, r.Dim/2)
			for i := range frequencies {
				frequencies[i] = math.Pow(base, -2*float64(i)/float64(r.Dim))
			}
			RotaryTable(0, cos, sin, positions, frequencies, 1)

			x := normals[F](1, r.Batch*r.Outer*r.Length*r.Inner*r.Width)
			want := make([]float64, len(x))
			for i := range x {
				e, index := i%r.Width, i/r.Width/r.Inner
				p := index % r.Length
				if perBatch {
					p += index / r.Length / r.Outer * r.Length
				}
				if want[i] = float64(x[i]); e >= r.Dim {
					continue
				}
				pair, other, sign := e%(r.Dim/2), i+r.Dim/2, -1.0
				if e >= r.Dim/2 {
					other, sign = i-r.Dim/2, 1
				}
				if r.Interleaved {
					pair, other, sign = e/2, i+1, -1
					if e%2 == 1 {
						other, sign = i-1, 1
					}
				}
				angle := float64(positions[p]) / math.Pow(base, 2*float64(pair)/float64(r.Dim))
				want[i] = float64(x[i])*math.Cos(angle) + sign*float64(x[other])*math.Sin(angle)
			}
			y, back := normals[F](2, len(x)), normals[F](3, len(x))
			Rotate(0, y, x, cos, sin, r)
			name := fmt.Sprintf("%+v, own positions %t", r, perBatch)
			closeTo(t, name, y, want, tol*10)
			for i, v := range x {
				want[i] = float64(v)
			}
			inverse := r
			inverse.Inverse = true
			Rotate(0, back, y, cos, sin, inverse)
			closeTo(t, name+", and back", back, want, tol)
		}
	}
}
