package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestRMSNorm compares RMSNorm and its gradient with the formulas, for more rows than one task handles.
func TestRMSNorm(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testRMSNorm[float32](t, 2e-6) })
	t.Run("float64", func(t *testing.T) { testRMSNorm[float64](t, 1e-13) })
}

func testRMSNorm[F Float](t *testing.T, tol float64) {
	for _, size := range [][2]int{{1, 1}, {3, 1}, {1, 7}, {5, 8}, {40, 700}, {1100, 33}} {
		n, w := size[0], size[1]
		const eps = 0.01
		x, g, gamma := normals[F](1, n*w), normals[F](2, n*w), normals[F](3, w)
		y, dx, dgamma := make([]float64, n*w), make([]float64, n*w), make([]float64, w)
		for r := range n {
			square, dot := 0.0, 0.0
			for i := r * w; i < (r+1)*w; i++ {
				square += float64(x[i]) * float64(x[i])
			}
			rms := math.Sqrt(square/float64(w) + eps)
			for i := range w {
				index := r*w + i
				xhat := float64(x[index]) / rms
				y[index] = xhat * float64(gamma[i])
				dgamma[i] += float64(g[index]) * xhat
				dot += float64(g[index]) * float64(gamma[i]) * xhat
			}
			for i := range w {
				index := r*w + i
				dx[index] = (float64(g[index])*float64(gamma[i]) - float64(x[index])/rms*dot/float64(w)) / rms
			}
		}
		name := fmt.Sprintf("(%d, %d): ", n, w)
		gotY, gotX, gotGamma := normals[F](4, n*w), normals[F](5, n*w), normals[F](6, w)
		RMSNorm(0, gotY, x, gamma, eps)
		RMSNormGrad(0, gotX, gotGamma, x, gamma, g, nil, eps)
		addsPlus(t, name+"dx", gotX, func(dx, plus []F) { RMSNormGrad(0, dx, gotGamma, x, gamma, g, plus, eps) })
		closeTo(t, name+"y", gotY, y, tol)
		closeTo(t, name+"dx", gotX, dx, tol*10)
		closeTo(t, name+"dgamma", gotGamma, dgamma, tol*10)
	}
}

// TestRMSNormAtTheEdges tests a row of zeros, and rows with special values whose gradient is 0.
func TestRMSNormAtTheEdges(t *testing.T) {
	nan := float32(math.NaN())
	x := []float32{0, 0, nan, 1, 3, 4}
	g := []float32{1, 2, 0, 0, 1, 0}
	gamma := []float32{1, 1}
	y, dx, dgamma := make([]float32, 6), make([]float32, 6), make([]float32, 2)
	RMSNorm(0, y, x, gamma, 1e-60) // eps would be 0 in float32
	if y[0] != 0 || y[1] != 0 {
		t.Errorf("a row of zeros gives %v, want zeros", y[:2])
	}
	RMSNormGrad(0, dx, dgamma, x, gamma, g, nil, 1)
	inv := 1 / math.Sqrt(13.5)
	closeTo(t, "dx", dx, []float64{1, 2, 0, 0, inv - 9*inv*inv*inv/2, -12 * inv * inv * inv / 2}, 1e-6)
	closeTo(t, "dgamma", dgamma, []float64{3 * inv, 0}, 1e-6)
}
