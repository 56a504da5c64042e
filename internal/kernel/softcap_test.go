package kernel

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// TestSoftcap compares Softcap and its gradient with the formulas, for more elements than one task handles, down to the
// smallest inputs.
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
	Softcap(0, y, x, c)
	SoftcapGrad(0, dx, y, g, c)
	for i := range x {
		if want := c * math.Tanh(float64(x[i])/c); !(math.Abs(float64(y[i])-want) <= tol*math.Abs(want)) {
			t.Fatalf("softcap of %v is %v, want %v", x[i], y[i], want)
		}
		r := float64(y[i]) / c
		if want := float64(g[i]) * (1 - r*r); !(math.Abs(float64(dx[i])-want) <= tol*math.Abs(float64(g[i]))) {
			t.Fatalf("softcap' of %v is %v, want %v", x[i], dx[i], want)
		}
	}
	Softcap(0, x, x, c)
	SoftcapGrad(0, g, y, g, c)
	for i := range x {
		if x[i] != y[i] || g[i] != dx[i] {
			t.Fatalf("in place: %v, %v, want %v, %v", x[i], g[i], y[i], dx[i])
		}
	}
	g = normals[F](2, n)
	SoftcapGrad(0, dx, y, g, c)
	SoftcapGrad(0, y, y, g, c)
	if !slices.Equal(y, dx) {
		t.Fatal("the gradient in the memory of the output differs")
	}
}

// TestSoftcapAtTheEdges tests NaN, infinite and huge inputs, and gradients of 0.
func TestSoftcapAtTheEdges(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testSoftcapAtTheEdges[float32](t) })
	t.Run("float64", func(t *testing.T) { testSoftcapAtTheEdges[float64](t) })
}

func testSoftcapAtTheEdges[F Float](t *testing.T) {
	inf, nan := F(math.Inf(1)), F(math.NaN())
	x := []F{inf, -inf, 1e30, -1e30, 0, F(math.Copysign(0, -1)), nan, nan}
	y, dx := make([]F, len(x)), make([]F, len(x))
	Softcap(0, y, x, 5)
	for i, want := range []F{5, -5, 5, -5, 0, 0} {
		if y[i] != want || math.Signbit(float64(y[i])) != math.Signbit(float64(x[i])) {
			t.Errorf("softcap of %v is %v, want %v", x[i], y[i], want)
		}
	}
	if y[6] == y[6] {
		t.Errorf("softcap of NaN is %v, want NaN", y[6])
	}
	SoftcapGrad(0, dx, y, []F{1, 1, 1, 1, 1, 1, 1, 0}, 5)
	for i, want := range []F{0, 0, 0, 0, 1, 1} {
		if dx[i] != want {
			t.Errorf("softcap' of %v is %v, want %v", x[i], dx[i], want)
		}
	}
	if dx[6] == dx[6] || dx[7] != 0 {
		t.Errorf("softcap' of NaN is %v, and %v for a gradient of 0, want NaN and 0", dx[6], dx[7])
	}
}

// TestSoftcapErrors checks that the error is at most 4 ulp over the whole range of float32, unless x/c is subnormal.
func TestSoftcapErrors(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		for _, c := range []float32{1, 0.7, 30, 1e-30, 1e30} {
			t.Run(fmt.Sprint(c), func(t *testing.T) {
				y, worst, where := make([]float32, 4096), 0.0, float32(0)
				scanFloat32(func(x []float32) {
					inUse.f32.softcap(y, x, c)
					for i, v := range x {
						if v != v {
							if y[i] == y[i] {
								t.Fatalf("softcap of NaN is %v, want NaN", y[i])
							}
							continue
						}
						want := float64(c) * math.Tanh(float64(v)/float64(c))
						_, exp := math.Frexp(want)
						ulp := math.Ldexp(1, max(exp-24, -149))
						d := math.Abs(float64(y[i])-want) - float64(c)*0x1p-149
						if d /= ulp; d > worst {
							worst, where = d, v
						}
						if math.Abs(float64(y[i])) > float64(c) || math.Signbit(float64(y[i])) != math.Signbit(float64(v)) {
							t.Fatalf("softcap of %v is %v, want the same sign and at most the cap", v, y[i])
						}
					}
				})
				if t.Logf("off by up to %.3f ulp, where %v", worst, where); worst > 4 {
					t.Errorf("off by %v ulp where %v, want at most 4", worst, where)
				}
			})
		}
	})
}

// TestSoftcapErrors64 checks that the error is at most 4 ulp in float64, by comparison with a hyperbolic tangent of
// more than 100 bits.
func TestSoftcapErrors64(t *testing.T) {
	n := 3000
	if quick() {
		n = 300
	}
	r := rand.New(rand.NewPCG(testseed.Of(t), 2))
	x := make([]float64, n)
	for i := range x {
		x[i] = []float64{r.Float64()*50 - 25, r.NormFloat64(), r.NormFloat64() * math.Ldexp(1, -r.IntN(40))}[i%3]
	}
	exact := make([]*big.Float, n)
	for i, v := range x {
		e, one := bigExp(2*v), big.NewFloat(1)
		exact[i] = new(big.Float).Sub(e, one)
		exact[i].Quo(exact[i], e.Add(e, one))
	}
	eachSet(t, func(t *testing.T) {
		y := make([]float64, n)
		inUse.f64.softcap(y, x, 1)
		worst, where := 0.0, 0.0
		for i, want := range exact {
			d, _ := new(big.Float).Sub(want, big.NewFloat(y[i])).Float64()
			if d = math.Abs(d) / math.Ldexp(1, want.MantExp(nil)-53); d > worst {
				worst, where = d, x[i]
			}
		}
		if t.Logf("off by up to %.3f ulp, where %v", worst, where); worst > 4 {
			t.Errorf("off by %v ulp where %v, want at most 4", worst, where)
		}
	})
}
