package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// scanFloat32 calls check with numbers from the whole range of float32, 4096 at a time. The step between their bits is
// 65521 with -short or the race detector, and otherwise 8193, or less with HEED_PROOFS and -cases.
func scanFloat32(check func(x []float32)) {
	step := (1<<32)/uint64(testseed.Cases(1<<20)) | 1
	if quick() {
		step = 65521
	}
	x := make([]float32, 4096)
	for bits := uint64(0); bits < 1<<32; {
		for i := range x {
			x[i] = math.Float32frombits(uint32(bits))
			bits += step
		}
		check(x)
	}
}

// TestExp32 checks the error bound of the exponential over the whole range of float32.
func TestExp32(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		y, worst := make([]float32, 4096), 0.0
		scanFloat32(func(x []float32) {
			inUse.f32.expShift(y, x, 0)
			for i, v := range x {
				want := math.Exp(float64(v))
				switch got := y[i]; {
				case v != v:
					if got == got {
						t.Fatalf("exp(NaN) is %v, want NaN", got)
					}
				case math.IsInf(float64(float32(want)), 1) || math.IsInf(float64(v), -1):
					if got != float32(want) {
						t.Fatalf("exp(%v) is %v, want %v", v, got, float32(want))
					}
				default:
					_, e := math.Frexp(want)
					ulp := math.Ldexp(1, max(e-24, -149))
					worst = max(worst, math.Abs(float64(got)-want)/ulp)
				}
			}
		})
		if t.Logf("off by up to %.3f ulp", worst); worst > 1.5 {
			t.Errorf("off by %v ulp, want at most 1.5", worst)
		}
	})
}

// TestExp64 checks the error bound of the exponential in float64, by comparison with an exponential of about 190 bits.
func TestExp64(t *testing.T) {
	n := 4000
	if quick() {
		n = 400
	}
	r := rand.New(rand.NewPCG(testseed.Of(t), 2))
	x := make([]float64, n)
	for i := range x {
		x[i] = []float64{r.Float64()*1457 - 748, r.Float64()*2 - 1, r.Float64()*40 - 745, 709 + r.Float64()*0.78}[i%4]
	}
	x = append(x, 0, math.Copysign(0, -1), 709.782712893384, -745.1332191019411, -745.1332191019412, 5e-324, 1e-300)
	exact := make([]*big.Float, len(x))
	for i, v := range x {
		exact[i] = bigExp(v)
	}
	eachSet(t, func(t *testing.T) {
		b := inUse.f64
		y := make([]float64, len(x))
		b.expShift(y, x, 0)
		worst := 0.0
		for i, want := range exact {
			ulp := math.Ldexp(1, max(want.MantExp(nil)-53, -1074))
			d, _ := new(big.Float).Sub(want, big.NewFloat(y[i])).Float64()
			worst = max(worst, math.Abs(d)/ulp)
		}
		if t.Logf("off by up to %.3f ulp", worst); worst > 1.5 {
			t.Errorf("off by %v ulp, want at most 1.5", worst)
		}
		special := []float64{math.Inf(1), math.Inf(-1), math.NaN(), 709.79, 1e300, -746, -1e300}
		b.expShift(special, special, 0)
		for i, want := range []float64{math.Inf(1), 0, math.NaN(), math.Inf(1), math.Inf(1), 0, 0} {
			if special[i] != want && (want == want || special[i] == special[i]) {
				t.Errorf("special argument %d gives %v, want %v", i, special[i], want)
			}
		}
	})
}

// bigExp returns exp(x) to about 190 bits: Taylor's series for x/2¹⁶, squared 16 times.
func bigExp(x float64) *big.Float {
	const prec = 256
	r := new(big.Float).SetPrec(prec).SetFloat64(x)
	r.SetMantExp(r, -16)
	sum, term := big.NewFloat(1).SetPrec(prec), big.NewFloat(1).SetPrec(prec)
	for i := 1; i < 40; i++ {
		term.Mul(term, r).Quo(term, big.NewFloat(float64(i)))
		sum.Add(sum, term)
	}
	for range 16 {
		sum.Mul(sum, sum)
	}
	return sum
}

// These functions return activations and their derivatives by their formulas.

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func silu(x float64) float64 { return x * logistic(x) }

func siluSlope(x float64) float64 {
	s, x := logistic(x), max(-700, min(x, 700))
	return s * (1 + x*(1-s))
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func gelu(x float64) float64 { return x * normalCDF(x) }

func geluSlope(x float64) float64 { return normalCDF(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) }

const geluC, geluA = 0.7978845608028654, 0.044715 // of the tanh approximation

func geluSigmoid(x float64) float64 { return logistic(2 * geluC * (x + geluA*x*x*x)) }

func geluTanh(x float64) float64 { return x * geluSigmoid(x) }

func geluTanhSlope(x float64) float64 {
	s, x := geluSigmoid(x), max(-40, min(x, 40))
	return s + x*s*(1-s)*2*geluC*(1+3*geluA*x*x)
}

// TestActivationErrors checks the documented error bounds of SiLU, GELU and its approximation, in float32.
func TestActivationErrors(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		b := inUse.f32
		for _, c := range []struct {
			name     string
			run      func(y, x []float32)
			want     func(x float64) float64
			scale    func(x, want float64) float64 // divides the error
			exponent int
		}{
			{"silu", b.silu, silu, relative, -21},
			{"siluGrad", func(y, x []float32) { b.siluGrad(y, x, ones[:len(x)]) }, siluSlope, absolute, -21},
			{"gelu", b.gelu, gelu, relative, -20},
			{"geluTanh", b.geluTanh, geluTanh, relative, -20},
			{"geluGrad", func(y, x []float32) { b.geluGrad(y, x, ones[:len(x)]) }, geluSlope, absolute, -21},
			{"geluTanhGrad", func(y, x []float32) { b.geluTanhGrad(y, x, ones[:len(x)]) }, geluTanhSlope, absolute, -21},
		} {
			t.Run(c.name, func(t *testing.T) {
				y, worst, where := make([]float32, 4096), 0.0, float32(0)
				scanFloat32(func(x []float32) {
					for i, v := range x {
						if a := math.Abs(float64(v)); !(a > 1e-30 && a <= math.MaxFloat32) {
							x[i] = 1
						}
					}
					c.run(y, x)
					for i, v := range x {
						want := c.want(float64(v))
						if e := math.Abs(float64(y[i])-want) / c.scale(float64(v), want); !(e <= worst) {
							worst, where = e, v
						}
					}
				})
				if t.Logf("off by up to 2^%.2f, where %v", math.Log2(worst), where); !(worst <= math.Ldexp(1, c.exponent)) {
					t.Errorf("off by %v where %v, want at most 2^%d", worst, where, c.exponent)
				}
			})
		}
	})
}

var ones = func() (x [4096]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

func relative(x, want float64) float64 {
	if x >= -1 {
		return math.Abs(want)
	}
	return math.Abs(x)
}

func absolute(_, _ float64) float64 { return 1 }
