package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// normals returns n numbers from the standard normal distribution.
func normals[F Float](seed uint64, n int) []F {
	return drawn[F](n, rand.New(rand.NewPCG(seed, 1)).NormFloat64)
}

// drawn returns n numbers from a function.
func drawn[F Float](n int, draw func() float64) []F {
	x := make([]F, n)
	for i := range x {
		x[i] = F(draw())
	}
	return x
}

// closeTo fails if got differs from want by more than tol, relative to the largest magnitude in want.
func closeTo[F Float](t *testing.T, what string, got []F, want []float64, tol float64) {
	t.Helper()
	largest := 1e-300
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	within(t, what, got, want, tol*largest)
}

// within fails if got differs from want by more than distance.
func within[F Float](t *testing.T, what string, got []F, want []float64, distance float64) {
	t.Helper()
	for i := range got {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= distance) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestSoftmaxIsStable tests scores whose exponentials overflow, with a different offset in each row.
func TestSoftmaxIsStable(t *testing.T) {
	scores := []float32{60, 0, -60, -59, 3e38, 3e38, -3e38, -3e38, 3e38, -3e38}
	w := make([]float32, len(scores))
	MaskedSoftmax(0, w, scores, Mask[float32]{Shape: [4]int{1, 1, 5, 2}})
	e := math.Exp(-1)
	closeTo(t, "weights", w, []float64{1, 0, e / (1 + e), 1 / (1 + e), 0.5, 0.5, 0.5, 0.5, 1, 0}, 1e-6)
}

// TestSoftmaxGrad compares SoftmaxGrad with the Jacobian. Where a weight is zero, its gradient is NaN or infinite.
func TestSoftmaxGrad(t *testing.T) {
	w := []float64{0.25, 0, 0.75, 0, 0, 0}
	g := []float64{2, math.NaN(), -1, math.Inf(1), math.NaN(), 5}
	ds := make([]float64, 6)
	SoftmaxGrad(0, ds, w, g, 3)
	closeTo(t, "gradient", ds, []float64{0.25 * (2 + 0.25), 0, 0.75 * (-1 + 0.25), 0, 0, 0}, 1e-15)
}

// TestSumBroadcast compares SumBroadcast with a loop over single elements.
func TestSumBroadcast(t *testing.T) {
	large := [4]int{2, 3, 2, 4}
	x := normals[float64](5, 2*3*2*4)
	for axes := range 8 {
		for _, width := range []int{1, 3, 4} {
			small := large
			for i := range 3 {
				if axes>>i&1 == 1 {
					small[i] = 1
				}
			}
			small[3] = width
			n := small[0] * small[1] * small[2] * width
			want := make([]float64, n)
			for i, v := range x {
				b, h, q, k := i/24%small[0], i/8%3%small[1], i/4%2%small[2], i%4
				if k < width {
					want[((b*small[1]+h)*small[2]+q)*width+k] += v
				}
			}
			got := normals[float64](1, n)
			SumBroadcast(got, x, small, large)
			closeTo(t, fmt.Sprint(small), got, want, 1e-14)
		}
	}
}

// TestLayerNorm compares LayerNorm and its gradient with the formulas, for more rows than one task handles, and for
// rows far from zero.
func TestLayerNorm(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testLayerNorm[float32](t, 2e-6) })
	t.Run("float64", func(t *testing.T) { testLayerNorm[float64](t, 1e-13) })
}

func testLayerNorm[F Float](t *testing.T, tol float64) {
	for _, size := range [][2]int{{1, 1}, {3, 5}, {200, 17}, {5, 1000}} {
		n, w := size[0], size[1]
		x, g, gamma, beta := normals[F](1, n*w), normals[F](2, n*w), normals[F](3, w), normals[F](4, w)
		const eps = 1e-3
		y, dx := make([]float64, n*w), make([]float64, n*w)
		dgamma, dbeta := make([]float64, w), make([]float64, w)
		var term float64 // largest absolute value of a term of dx
		for r := range n {
			x, g := x[r*w:][:w], g[r*w:][:w]
			mean, variance := 0.0, 0.0
			for _, v := range x {
				mean += float64(v) / float64(w)
			}
			for _, v := range x {
				variance += (float64(v) - mean) * (float64(v) - mean) / float64(w)
			}
			sd := math.Sqrt(variance + eps)
			var d1, d2 float64
			for i, v := range x {
				hat := (float64(v) - mean) / sd
				y[r*w+i] = hat*float64(gamma[i]) + float64(beta[i])
				d := float64(g[i]) * float64(gamma[i])
				term = max(term, math.Abs(d)/sd)
				d1 += d / float64(w)
				d2 += d * hat / float64(w)
				dgamma[i] += float64(g[i]) * hat
				dbeta[i] += float64(g[i])
			}
			for i, v := range x {
				dx[r*w+i] = (float64(g[i])*float64(gamma[i]) - d1 - (float64(v)-mean)/sd*d2) / sd
			}
		}
		gotY, gotX := make([]F, n*w), make([]F, n*w)
		gotGamma, gotBeta := normals[F](8, w), normals[F](9, w)
		LayerNorm(0, gotY, x, gamma, beta, eps)
		LayerNormGrad(0, gotX, gotGamma, gotBeta, x, gamma, g, nil, eps)
		name := fmt.Sprint(size, ": ")
		addsPlus(t, name+"dx", gotX, func(dx, plus []F) { LayerNormGrad(0, dx, gotGamma, gotBeta, x, gamma, g, plus, eps) })
		closeTo(t, name+"y", gotY, y, tol)
		// In a row of one element the terms of dx cancel. With a fused multiply-add, as on arm64, the rounding error of
		// a term remains.
		within(t, name+"dx", gotX, dx, tol*10*term)
		closeTo(t, name+"dgamma", gotGamma, dgamma, tol*10)
		closeTo(t, name+"dbeta", gotBeta, dbeta, tol*10)
		LayerNormGrad(0, gotX, gotGamma, nil, x, gamma, g, nil, eps)
		closeTo(t, name+"dgamma without beta", gotGamma, dgamma, tol*10)
	}
}

// addsPlus checks that grad, which gets memory for dx and a term, adds the term to dx.
func addsPlus[F Float](t *testing.T, name string, dx []F, grad func(dx, plus []F)) {
	t.Helper()
	plus, got, want := normals[F](10, len(dx)), make([]F, len(dx)), make([]float64, len(dx))
	for i, v := range plus {
		want[i] = float64(dx[i] + v)
	}
	grad(got, plus)
	closeTo(t, name+" with a term to add", got, want, 0)
}
