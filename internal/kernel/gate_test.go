package kernel

import (
	"math"
	"testing"
)

// TestGate compares Gate with two separate steps: an activation, then a product. It also checks that a gradient of 0
// gives gradients of 0, even for NaN.
func TestGate(t *testing.T) {
	for _, f := range activations[float64]() {
		const n = 40001
		a, b, g := normals[float64](1, n), normals[float64](2, n), normals[float64](3, n)
		for i, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			a[i], g[i] = bad, 0
			b[10+i], g[10+i] = bad, 0
		}
		act, back := make([]float64, n), make([]float64, n)
		f.value(0, act, a)
		f.grad(0, back, a, b)
		y, da, db := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range y {
			y[i] = act[i] * b[i]
			if g[i] != 0 {
				da[i], db[i] = g[i]*back[i], g[i]*act[i]
			}
		}
		gotY, gotA, gotB := normals[float64](4, n), normals[float64](5, n), normals[float64](6, n)
		Gate(0, gotY, a, b, f.value)
		GateGrad(0, gotA, gotB, a, b, g, f.value, f.grad)
		closeTo(t, f.name+": y", gotY[20:], y[20:], 1e-15)
		closeTo(t, f.name+": da", gotA, da, 1e-14)
		closeTo(t, f.name+": db", gotB, db, 1e-14)
	}
}
