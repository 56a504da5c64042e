package kernel

import (
	"math"
	"slices"
	"testing"
)

// An activation has its functions, and its formulas in float64.
type activation[F Float] struct {
	name  string
	value func(cores int, y, x []F)
	grad  func(cores int, dx, x, g []F)
	of    func(x float64) float64
	slope func(x float64) float64
}

// activations returns all activations, with Tanh and Sigmoid as the last ones.
func activations[F Float]() []activation[F] {
	relu, step := func(x float64) float64 { return max(x, 0) }, func(x float64) float64 { return min(1, max(0, math.Ceil(x))) }
	tanhGrad := func(cores int, dx, x, g []F) { // reads the result of Tanh
		Tanh(cores, dx, x)
		TanhGrad(cores, dx, dx, g)
	}
	sigmoidGrad := func(cores int, dx, x, g []F) { // reads the result of Sigmoid
		Sigmoid(cores, dx, x)
		SigmoidGrad(cores, dx, dx, g)
	}
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	return []activation[F]{
		{"ReLU", ReLU[F], ReLUGrad[F], relu, step},
		{"GELU", GELU[F], GELUGrad[F], gelu, geluSlope},
		{"GELUTanh", GELUTanh[F], GELUTanhGrad[F], geluTanh, geluTanhSlope},
		{"SiLU", SiLU[F], SiLUGrad[F], silu, siluSlope},
		{"Tanh", Tanh[F], tanhGrad, math.Tanh, func(x float64) float64 { return 1 / (math.Cosh(x) * math.Cosh(x)) }},
		{"Sigmoid", Sigmoid[F], sigmoidGrad, logistic, func(x float64) float64 { return logistic(x) * logistic(-x) }},
	}
}

// TestActivations compares activations and their gradients with the formulas, for more elements than one task handles.
func TestActivations(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testActivations[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testActivations[float64](t, 1e-14) })
}

func testActivations[F Float](t *testing.T, tol float64) {
	const n = 40001
	x, g := make([]F, n), normals[F](2, n)
	for i := range x {
		x[i] = F(i-n/2) / 500
	}
	for _, f := range activations[F]() {
		y, dx, wantY, wantX := normals[F](3, n), normals[F](4, n), make([]float64, n), make([]float64, n)
		for i, v := range wide(x) {
			wantY[i], wantX[i] = f.of(v), float64(g[i])*f.slope(v)
		}
		f.value(0, y, x)
		f.grad(0, dx, x, g)
		for i, v := range wide(x) {
			if d := math.Abs(float64(y[i]) - wantY[i]); !(d <= tol*relative(v, wantY[i])) {
				t.Fatalf("%s of %v is %v, want %v", f.name, v, y[i], wantY[i])
			}
		}
		closeTo(t, f.name+"'", dx, wantX, tol)
	}
}

// TestActivationsInPlace writes results over the inputs, for every length of the last vector.
func TestActivationsInPlace(t *testing.T) { eachBody(t, testInPlace[float32], testInPlace[float64]) }

func testInPlace[F Float](t *testing.T) {
	for _, f := range activations[F]() {
		for n := range 70 {
			x, want := normals[F](uint64(n), n), make([]F, n)
			f.value(0, want, x)
			if f.value(0, x, x); !slices.Equal(x, want) {
				t.Errorf("%s of %d elements in place is %v, want %v", f.name, n, x, want)
			}
		}
	}
}

// TestActivationsAtTheEdges tests inputs so large that a naive formula gives NaN.
func TestActivationsAtTheEdges(t *testing.T) {
	x := []float32{-math.MaxFloat32, -1e10, -100, -88.7, 0, 40, 1e10, math.MaxFloat32}
	y := make([]float32, len(x))
	for _, f := range activations[float32]()[:4] { // Tanh is in TestSoftcapAtTheEdges
		f.value(0, y, x)
		closeTo(t, f.name, y[:7], []float64{0, 0, 0, 0, 0, 40, 1e10}, 1e-6)
		if y[7] != x[7] {
			t.Errorf("%s of the largest number is %v, want the same number", f.name, y[7])
		}
		f.grad(0, y, x, ones[:len(x)])
		closeTo(t, f.name+"'", y, []float64{0, 0, 0, 0, f.slope(0), 1, 1, 1}, 1e-6)
	}
}
