package kernel

import (
	"math"
	"testing"
)

// TestSoftcap compares with the formula, on more elements than one task takes, down to the smallest arguments.
func TestSoftcap(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testSoftcap[float32](t, 4e-7) })
	t.Run("float64", func(t *testing.T) { testSoftcap[float64](t, 2e-15) })
}

func testSoftcap[F Float](t *testing.T, tol float64) {
	const n, c = 40001, 30
	x, g := make([]F, n), normals[F](2, n)
	for i := range x {
		x[i] = F(i-n/2) / 100
		if i%3 == 0 {
			x[i] *= F(math.Pow(2, -float64(i%60)))
		}
		if i%10 == 0 {
			g[i] = 0
		}
	}
	y, dx := make([]F, n), make([]F, n)
	Softcap(y, x, c)
	SoftcapGrad(dx, y, g, c)
	for i := range x {
		if want := c * math.Tanh(float64(x[i])/c); !(math.Abs(float64(y[i])-want) <= tol*math.Abs(want)) {
			t.Fatalf("softcap of %v is %v, want %v", x[i], y[i], want)
		}
		r := float64(y[i]) / c
		if want := float64(g[i]) * (1 - r*r); !(math.Abs(float64(dx[i])-want) <= tol*math.Abs(float64(g[i]))) {
			t.Fatalf("softcap' of %v is %v, want %v", x[i], dx[i], want)
		}
	}
	Softcap(x, x, c)
	SoftcapGrad(g, y, g, c)
	for i := range x {
		if x[i] != y[i] || g[i] != dx[i] {
			t.Fatalf("in place: %v, %v, want %v, %v", x[i], g[i], y[i], dx[i])
		}
	}
}

// TestSoftcapAtTheEdges has arguments that aren't finite, or as good as, and gradients of 0.
func TestSoftcapAtTheEdges(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testSoftcapAtTheEdges[float32](t) })
	t.Run("float64", func(t *testing.T) { testSoftcapAtTheEdges[float64](t) })
}

func testSoftcapAtTheEdges[F Float](t *testing.T) {
	inf, nan := F(math.Inf(1)), F(math.NaN())
	x := []F{inf, -inf, 1e30, -1e30, 0, F(math.Copysign(0, -1)), nan, nan}
	y, dx := make([]F, len(x)), make([]F, len(x))
	Softcap(y, x, 5)
	for i, want := range []F{5, -5, 5, -5, 0, 0} {
		if y[i] != want || math.Signbit(float64(y[i])) != math.Signbit(float64(x[i])) {
			t.Errorf("softcap of %v is %v, want %v", x[i], y[i], want)
		}
	}
	if y[6] == y[6] {
		t.Errorf("softcap of NaN is %v", y[6])
	}
	SoftcapGrad(dx, y, []F{1, 1, 1, 1, 1, 1, 1, 0}, 5)
	for i, want := range []F{0, 0, 0, 0, 1, 1} {
		if dx[i] != want {
			t.Errorf("softcap' of %v is %v, want %v", x[i], dx[i], want)
		}
	}
	if dx[6] == dx[6] || dx[7] != 0 {
		t.Errorf("softcap' of NaN is %v, and %v for a gradient of 0", dx[6], dx[7])
	}
}

func TestSoftcapOnAnyWorkers(t *testing.T) {
	sameOnAnyWorkers(t, func() []float32 {
		const n = 100001
		x, g := normals[float32](1, n), normals[float32](2, n)
		y, dx := make([]float32, n), make([]float32, n)
		Softcap(y, x, 2)
		SoftcapGrad(dx, y, g, 2)
		return append(y, dx...)
	})
}

func BenchmarkSoftcap(b *testing.B) {
	x := normals[float32](1, 4096)
	y := make([]float32, len(x))
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		softcap(y, x, 5)
	}
}
