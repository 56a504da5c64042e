package kernel

import (
	"math"
	"testing"
)

// TestGate compares Gate with two separate steps: an activation, then a product. It also checks that a gradient of 0
// gives gradients of 0, even for NaN.
func TestGate(t *testing.T) {
	type activation struct {
		forward  func(cores int, y, x []float64)
		backward func(cores int, dx, x, g []float64)
	}
	for name, f := range map[string]activation{
		"relu": {ReLU[float64], ReLUGrad[float64]}, "gelu": {GELU[float64], GELUGrad[float64]},
		"gelu tanh": {GELUTanh[float64], GELUTanhGrad[float64]}, "silu": {SiLU[float64], SiLUGrad[float64]},
	} {
		const n = 40001
		a, b, g := normals[float64](1, n), normals[float64](2, n), normals[float64](3, n)
		for i, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			a[i], g[i] = bad, 0
			b[10+i], g[10+i] = bad, 0
		}
		act, back := make([]float64, n), make([]float64, n)
		f.forward(0, act, a)
		f.backward(0, back, a, b)
		y, da, db := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range y {
			y[i] = act[i] * b[i]
			if g[i] != 0 {
				da[i], db[i] = g[i]*back[i], g[i]*act[i]
			}
		}
		gotY, gotA, gotB := normals[float64](4, n), normals[float64](5, n), normals[float64](6, n)
		Gate(0, gotY, a, b, f.forward)
		GateGrad(0, gotA, gotB, a, b, g, f.forward, f.backward)
		closeTo(t, name+": y", gotY[20:], y[20:], 1e-15)
		closeTo(t, name+": da", gotA, da, 1e-14)
		closeTo(t, name+": db", gotB, db, 1e-14)
	}
}
