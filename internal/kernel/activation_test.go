package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestSiLU compares SiLU and SiLUGrad with the formulas, for more elements than one task handles.
func TestSiLU(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testSiLU[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testSiLU[float64](t, 1e-14) })
}

func testSiLU[F Float](t *testing.T, tol float64) {
	const n = 40001
	x, g := make([]F, n), normals[F](2, n)
	y, dx := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = F(i-n/2) / 500
		v := float64(x[i])
		s := logistic(v)
		y[i] = v * s
		dx[i] = float64(g[i]) * (s + v*s*(1/(1+math.Exp(v))))
	}
	gotY, gotX := normals[F](3, n), normals[F](4, n)
	SiLU(0, gotY, x)
	SiLUGrad(0, gotX, x, g)
	for i := range x { // closeTo would ignore relative errors of small elements
		if d := math.Abs(float64(gotY[i]) - y[i]); !(d <= tol*math.Abs(y[i])) {
			t.Fatalf("silu of %v is %v, want %v", x[i], gotY[i], y[i])
		}
	}
	closeTo(t, "dx", gotX, dx, tol)
}

// TestTanh compares Tanh and TanhGrad with the formulas.
func TestTanh(t *testing.T) {
	x, g := normals[float64](1, 99), normals[float64](2, 99)
	y, dx, wantY, wantX := make([]float64, 99), make([]float64, 99), make([]float64, 99), make([]float64, 99)
	for i, v := range x {
		wantY[i] = math.Tanh(v)
		wantX[i] = g[i] / (math.Cosh(v) * math.Cosh(v))
	}
	Tanh(0, y, x)
	TanhGrad(0, dx, y, g)
	closeTo(t, "tanh", y, wantY, 1e-15)
	closeTo(t, "tanh'", dx, wantX, 1e-15)
}

// TestActivationsInPlace writes results over the inputs, for every length of the last vector.
func TestActivationsInPlace(t *testing.T) { eachBody(t, testInPlace[float32], testInPlace[float64]) }

func testInPlace[F Float](t *testing.T) {
	for name, f := range map[string]func(cores int, y, x []F){"ReLU": ReLU[F], "GELU": GELU[F], "GELUTanh": GELUTanh[F], "SiLU": SiLU[F], "Tanh": Tanh[F]} {
		for n := range 70 {
			x, want := normals[F](uint64(n), n), make([]F, n)
			f(0, want, x)
			if f(0, x, x); !slices.Equal(x, want) {
				t.Errorf("%s of %d elements in place is %v, want %v", name, n, x, want)
			}
		}
	}
}

// TestSiLUAtTheEdges tests inputs whose exponential is infinite, and gradients of 0.
func TestSiLUAtTheEdges(t *testing.T) {
	const big = math.MaxFloat32
	nan := float32(math.NaN())
	x := []float32{-big, -1e10, -100, -88.7, 0, 40, 1e10, big, nan, float32(math.Inf(-1))}
	g := []float32{1, 1, 1, 1, 1, 1, 1, 1, 0, 0}
	y := make([]float32, len(x))
	SiLU(0, y, x)
	closeTo(t, "silu", y[:7], []float64{0, 0, 0, 0, 0, 40, 1e10}, 1e-6)
	if y[7] != big {
		t.Errorf("silu of the largest number is %v, want the same number", y[7])
	}
	SiLUGrad(0, y, x, g)
	closeTo(t, "silu'", y, []float64{0, 0, 0, 0, 0.5, 1, 1, 1, 0, 0}, 1e-6)
}

// TestActivationsAtTheEdges tests inputs so large that a naive formula gives NaN.
func TestActivationsAtTheEdges(t *testing.T) {
	big := math.MaxFloat32
	x := []float32{float32(-big), -1e10, -40, 0, 40, 1e10, float32(big)}
	one := []float32{1, 1, 1, 1, 1, 1, 1}
	y := make([]float32, len(x))
	for name, f := range map[string]struct {
		value func(cores int, y, x []float32)
		grad  func(cores int, dx, x, g []float32)
		mid   float64 // the derivative at 0
	}{"relu": {ReLU[float32], ReLUGrad[float32], 0}, "gelu": {GELU[float32], GELUGrad[float32], 0.5}, "gelu tanh": {GELUTanh[float32], GELUTanhGrad[float32], 0.5}} {
		f.value(0, y, x)
		closeTo(t, name, y[:6], []float64{0, 0, 0, 0, 40, 1e10}, 1e-6)
		if y[6] != x[6] {
			t.Errorf("%s of the largest number is %v, want the same number", name, y[6])
		}
		f.grad(0, y, x, one)
		closeTo(t, name+"'", y, []float64{0, 0, 0, f.mid, 1, 1, 1}, 1e-6)
	}
}
