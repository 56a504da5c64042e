package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// eachUnit runs a test with the matrix unit in Go, and with every other one that this processor has. Products use it
// whatever their size.
func eachUnit(t *testing.T, test func(t *testing.T)) {
	for _, s := range append([]*instructionSet{amxModelSet()}, instructionSets...) {
		if s.amx3 == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if !s.runs {
				t.Skipf("this processor can't run %s", s.name)
			}
			set, three, one := *s, *s.amx3, *s.amx1
			three.pays = func(int, int, int) bool { return true }
			one.pays = three.pays
			set.amx3, set.amx1 = &three, &one
			use(t, &set)
			test(t)
		})
	}
}

// multiplyAdds returns the instruction set in use without its matrix unit.
func multiplyAdds() *instructionSet {
	set := *inUse
	set.amx3 = nil
	return &set
}

// TestSplit checks that the three pieces of a number add up to it, and that each is at most 2⁻⁸ of the one before. The
// least products of pieces of two numbers must be below 2⁻²⁴ of the product.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 2))
	var before [3]float64 // the pieces of the last number, as multiples of it
	for range testseed.Cases(100_000) {
		exponent := 127 - 100 + r.Uint32N(100+127)
		x := math.Float32frombits(r.Uint32()&^(0xff<<23) | exponent<<23)
		sum, last := 0.0, math.Inf(1)
		var pieces [3]float64
		for i, bits := range amxSplit(x) {
			piece := float64(math.Float32frombits(uint32(bits) << 16))
			if math.Abs(piece) > last/256 || piece != 0 && math.Abs(piece) < 0x1p-126 {
				t.Fatalf("%x has the pieces %x", x, amxSplit(x))
			}
			last = math.Abs(piece)
			sum += piece
			pieces[i] = last / math.Abs(float64(x))
		}
		if rest := pieces[1]*before[2] + pieces[2]*before[1] + pieces[2]*before[2]; rest > 0x1p-24 {
			t.Fatalf("the products left out are %x of the product with %x", rest, x)
		}
		before = pieces
		if float32(sum) != x || sum != float64(x) {
			t.Fatalf("the pieces of %x add up to %x", x, sum)
		}
	}
}

// amxCase is a product for tests: a kind of numbers, and sizes.
type amxCase struct {
	name    string
	m, n, k int
	number  func(r *rand.Rand) float64
	spread  int // exponents by which rows of A and columns of B differ, up and down
}

var amxCases = []amxCase{
	{"normal", 70, 90, 300, (*rand.Rand).NormFloat64, 0},
	{"few terms", 100, 90, 64, (*rand.Rand).NormFloat64, 0},
	{"positive", 70, 40, 2*amxRun + 76, func(r *rand.Rand) float64 { return math.Abs(r.NormFloat64()) }, 0},
	{"scaled rows", 90, 70, 200, (*rand.Rand).NormFloat64, 40},
	{"all scales", 64, 128, 130, func(r *rand.Rand) float64 { return math.Ldexp(r.NormFloat64(), r.IntN(80)-40) }, 0},
	{"small", 64, 64, 130, func(r *rand.Rand) float64 { return math.Ldexp(r.NormFloat64(), -50-r.IntN(40)) }, 0},
	{"subnormal", 64, 64, 130, func(r *rand.Rand) float64 { return math.Ldexp(r.NormFloat64(), -60-r.IntN(80)) }, 0},
	{"sparse", 64, 160, 128, func(r *rand.Rand) float64 {
		if r.IntN(8) > 0 {
			return 0
		}
		return math.Ldexp(r.NormFloat64(), -r.IntN(70))
	}, 0},
	{"large", 64, 90, 128, func(r *rand.Rand) float64 { return math.Ldexp(r.NormFloat64(), 54) }, 3},
}

// make draws the operands.
func (c *amxCase) make(r *rand.Rand) (a, b []float32) {
	a, b = make([]float32, c.m*c.k), make([]float32, c.k*c.n)
	rows, cols := make([]int, c.m), make([]int, c.n)
	for _, scales := range [][]int{rows, cols} {
		for i := range scales {
			scales[i] = r.IntN(2*c.spread+1) - c.spread
		}
	}
	for i := range a {
		a[i] = float32(math.Ldexp(c.number(r), rows[i/c.k]))
	}
	for i := range b {
		b[i] = float32(math.Ldexp(c.number(r), cols[i%c.n]))
	}
	return a, b
}

// errors returns the largest error of an element, in units of 2⁻²⁴·Σ|a||b|, and the relative Frobenius error.
func (c *amxCase) errors(a, b, got []float32) (worst, frobenius float64) {
	var errs, norm float64
	sum, size := make([]float64, c.n), make([]float64, c.n)
	for i := range c.m {
		clear(sum)
		clear(size)
		for p := range c.k {
			x := float64(a[i*c.k+p])
			for j, y := range b[p*c.n:][:c.n] {
				sum[j] += x * float64(y)
				size[j] += math.Abs(x * float64(y))
			}
		}
		for j := range c.n {
			d := math.Abs(float64(got[i*c.n+j]) - sum[j])
			if d > float64(c.k)*0x1p-149 { // not from rounding to subnormal numbers
				worst = max(worst, d/(0x1p-24*size[j]))
			}
			errs += d * d
			norm += sum[j] * sum[j]
		}
	}
	return worst, math.Sqrt(errs / norm)
}

// TestMatrixErrors compares products with float64: each element with the stated bound, and all together with
// multiply-adds. Where the sums have a term far above the others, both errors are about one rounding, and luck decides
// which is smaller. So errors up to 2⁻²⁴ always pass, and others by up to 3 %.
func TestMatrixErrors(t *testing.T) {
	eachUnit(t, func(t *testing.T) {
		for _, c := range amxCases {
			t.Run(c.name, func(t *testing.T) {
				a, b := c.make(rand.New(rand.NewPCG(uint64(testseed.Of(t)), 3)))
				got, other := make([]float32, c.m*c.n), make([]float32, c.m*c.n)
				Gemm(0, false, false, c.m, c.n, c.k, 1, a, c.k, b, c.n, 0, got, c.n)
				use(t, multiplyAdds())
				Gemm(0, false, false, c.m, c.n, c.k, 1, a, c.k, b, c.n, 0, other, c.n)
				worst, frobenius := c.errors(a, b, got)
				worstFMA, frobeniusFMA := c.errors(a, b, other)
				t.Logf("worst %.2f (FMA %.2f), Frobenius %.3g (FMA %.3g)", worst, worstFMA, frobenius, frobeniusFMA)
				if limit := 38 + float64(c.k)/amxRun; worst > limit {
					t.Errorf("the error is %.3g·2⁻²⁴·Σ|a||b|, want at most %.3g", worst, limit)
				}
				if frobenius > 1.03*max(frobeniusFMA, 0x1p-24) {
					t.Errorf("the relative Frobenius error is %.3g, and %.3g with multiply-adds", frobenius, frobeniusFMA)
				}
			})
		}
	})
}

// TestMatrixLimits checks products just inside and just outside of the limits in amx_range.go. Inside, the unit
// computes them, with errors below the bound. Outside, they have the bits of multiply-adds.
func TestMatrixLimits(t *testing.T) {
	const large, small = 0x1.fffffep0, 0x1.234566p0 // with three pieces; below 2, and with a square below 2
	most, flush := 0, 0                             // sums of amxRun products below 4·2^most are below 2¹²⁷; see amxFlush
	for math.Ldexp(amxRun, most+1) <= 0x1p125 {
		most++
	}
	for math.Ldexp(8*amxRun, -126) <= math.Ldexp(0x1p-26, flush-1) {
		flush--
	}
	for _, c := range []struct {
		name     string
		x        float64
		e, f     int  // exponents of A and B
		terms    int  // terms that aren't zero
		unit     bool // whether the unit computes the product
		infinite bool
	}{
		{"no overflow", large, most / 2, most - most/2, amxRun, true, false},
		{"nearly overflow", large, most / 2, most - most/2 + 1, amxRun, false, false},
		{"overflow", large, most / 2, most - most/2 + 2, amxRun, false, true},
		{"overflow of pieces", large, 127, most - 127, amxRun, false, false},
		{"no pieces overflow", 0x1.fefefp0, 127, most - 127, amxRun, true, false},
		{"not flushed", small, flush / 2, flush - flush/2, 1, true, false},
		{"flushed", small, flush / 2, flush - flush/2 - 1, 1, false, false},
		{"flushed, but small beside the sum", small, flush / 2, flush - flush/2 - 1, amxRun, true, false},
		{"no subnormal pieces", small, -100, 100 + flush, 1, true, false},
		{"subnormal pieces", small, -101, 101 + flush, 1, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachUnit(t, func(t *testing.T) {
				p := amxCase{m: 33, n: 3, k: amxRun}
				a, b := make([]float32, p.m*p.k), make([]float32, p.k*p.n)
				for i := range p.m {
					for q := range c.terms {
						a[i*p.k+q*(p.k-1)/max(1, c.terms-1)] = float32(math.Ldexp(c.x, c.e))
					}
				}
				for i := range b {
					b[i] = float32(math.Ldexp(c.x, c.f))
				}
				got, want := make([]float32, p.m*p.n), make([]float32, p.m*p.n)
				Gemm(0, false, false, p.m, p.n, p.k, 1, a, p.k, b, p.n, 0, got, p.n)
				use(t, multiplyAdds())
				Gemm(0, false, false, p.m, p.n, p.k, 1, a, p.k, b, p.n, 0, want, p.n)
				left, right := (&amxLines{}).read(a, p.k, true, 1, p.k)[0], (&amxLines{}).read(b, p.n, false, 1, p.k)[0]
				if on := left.safe(&right, got[0]); on != c.unit || !on && !slices.Equal(got, want) {
					t.Errorf("the sum %x is safe: %v. Multiply-adds give %x", got[0], on, want[0])
				}
				if infinite := math.IsInf(float64(got[0]), 1); infinite != c.infinite {
					t.Errorf("the result is %v", got[0])
				} else if worst, _ := p.errors(a, b, got); worst > 39 && !infinite {
					t.Errorf("the error is %.3g·2⁻²⁴·Σ|a||b|", worst)
				}
			})
		})
	}
}

// transposed returns the transposes of matrices, one after the other.
func transposed[F Float](x []F, rows, cols int) []F {
	y := make([]F, len(x))
	for i, v := range x {
		matrix, row, col := i/(rows*cols), i/cols%rows, i%cols
		y[(matrix*cols+col)*rows+row] = v
	}
	return y
}

// TestMatrixOverflow checks a sum that overflows in two runs, with different signs: multiply-adds keep the first sign.
func TestMatrixOverflow(t *testing.T) {
	const m, n, k = 40, 40, amxRun + 100
	a, b := make([]float32, m*k), make([]float32, k*n)
	for i := range m {
		a[i*k+5], a[i*k+amxRun+3] = 0x1p100, -0x1p100
	}
	for i := range b {
		b[i] = 0x1p90
	}
	eachUnit(t, func(t *testing.T) {
		for _, alpha := range []float32{1, -2} {
			got, want := make([]float32, m*n), make([]float32, m*n)
			Gemm(0, false, false, m, n, k, alpha, a, k, b, n, 0, got, n)
			unit := inUse
			inUse = multiplyAdds()
			Gemm(0, false, false, m, n, k, alpha, a, k, b, n, 0, want, n)
			inUse = unit
			for i, x := range want {
				if x == x && got[i] != x { // without a fused multiply-add, x is NaN
					t.Fatalf("alpha %v: element %d is %v, want %v as with multiply-adds", alpha, i, got[i], x)
				}
			}
		}
	})
}

// TestMatrixRange checks numbers that a matrix unit can't compute with: they must give what multiply-adds give.
func TestMatrixRange(t *testing.T) {
	const m, n, k = 70, 80, amxRun + 100
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 6))
	for name, c := range map[string]struct{ inA, inB, scaleA, scaleB float32 }{
		"NaN in A":            {nan, 1, 1, 1},
		"NaN in B":            {1, nan, 1, 1},
		"infinity in A":       {inf, 1, 1, 1},
		"infinity in B":       {0, -inf, 1, 1},
		"infinite pieces":     {math.MaxFloat32, 1, 1, 0x1p-20},
		"overflow":            {0x1p100, 0x1p90, 1, 1},
		"overflow of pieces":  {0x1.fffp63, 0x1.fffp63, 1, 1},
		"subnormal operands":  {1, 1, 0x1p-135, 0x1p60},
		"subnormal pieces":    {1, 1, 0x1p-115, 0x1p60},
		"subnormal results":   {1, 1, 0x1p-68, 0x1p-68},
		"one large, one tiny": {1, 0x1p-140, 0x1p120, 0x1p-60},
	} {
		if testing.Short() && testseed.LeftOut(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			eachUnit(t, func(t *testing.T) {
				a, b := drawn[float32](m*k, r.NormFloat64), drawn[float32](k*n, r.NormFloat64)
				for i := range a {
					a[i] *= c.scaleA
				}
				for i := range b {
					b[i] *= c.scaleB
				}
				for _, i := range []int{0, 1*k + amxRun + 3, 69*k + k - 1} {
					a[i] = c.inA
				}
				for _, i := range []int{(amxRun + 3) * n, (k-1)*n + 79} {
					b[i] = c.inB
				}
				got, want, other := make([]float32, m*n), make([]float32, m*n), make([]float32, m*n)
				Gemm(0, false, false, m, n, k, 1, a, k, b, n, 0, got, n)
				Gemm(0, true, true, m, n, k, 1, transposed(a, m, k), m, transposed(b, k, n), k, 0, other, n)
				use(t, multiplyAdds())
				Gemm(0, false, false, m, n, k, 1, a, k, b, n, 0, want, n)
				for i := range got {
					if got[i] != other[i] && (got[i] == got[i] || other[i] == other[i]) {
						t.Fatalf("element (%d, %d) is %g, and %g with transposed operands", i/n, i%n, got[i], other[i])
					}
					x, y := float64(got[i]), float64(want[i])
					if x == y || x != x && y != y {
						continue
					}
					size := 0.0
					for p := range k {
						size += math.Abs(float64(a[i/n*k+p]) * float64(b[p*n+i%n]))
					}
					if !(math.Abs(x-y) <= 60*0x1p-24*size+0x1p-148) {
						t.Fatalf("element (%d, %d) is %g, and %g with multiply-adds", i/n, i%n, x, y)
					}
				}
			})
		})
	}
}

// TestMatrixRowsApart checks that unusual numbers in a row of A or a column of B change no bit of other rows and
// columns.
func TestMatrixRowsApart(t *testing.T) {
	const m, n, k = 40, 50, amxRun + 12
	r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 11))
	eachUnit(t, func(t *testing.T) {
		a, b := drawn[float32](m*k, r.NormFloat64), drawn[float32](k*n, r.NormFloat64)
		product := func() []float32 {
			c := make([]float32, m*n)
			Gemm(0, false, true, m, n, k, 1, a, k, transposed(b, k, n), k, 0, c, n)
			return c
		}
		want := product()
		const row, col = 3, 36
		for _, x := range []float32{0, float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32, 0x1p-140, 0x1p-100} {
			a[row*k+amxRun+3], b[(amxRun+2)*n+col] = x, x
			for i, y := range product() {
				if i/n != row && i%n != col && y != want[i] {
					t.Fatalf("%g in row %d and column %d changes element (%d, %d) from %x to %x", x, row, col, i/n, i%n, want[i], y)
				}
			}
		}
	})
}

// TestMatrixProducts checks exact products of all kinds of operands, in memory with guards.
func TestMatrixProducts(t *testing.T) {
	eachUnit(t, func(t *testing.T) {
		g := newGemmChecker[float32](t)
		r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 7))
		for try := range testseed.Cases(48) {
			g.cores = 1 + try%3
			transA, transB, alpha, beta := variant[float32](r.IntN(36))
			m, n, k := 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(70)
			switch try % 6 {
			case 1:
				k += amxRun
			case 2:
				m += 256
			case 3:
				n += 128
			}
			g.check(t, 1+try/6%2, transA, transB, m, n, k, r.IntN(4), alpha, beta)
		}
	})
}

// TestMatrixBFloat16 checks products of bfloat16 on the unit, to the bit.
func TestMatrixBFloat16(t *testing.T) {
	eachUnit(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 8))
		memory := [3]*arena[float32]{newArena[float32](t), newArena[float32](t), newArena[float32](t)}
		for try := range testseed.Cases(24) {
			c := bfloat16Case{m: 1 + r.IntN(70), n: 1 + r.IntN(70), k: 1 + r.IntN(300), pad: r.IntN(3)}
			if try == 0 { // sums of all rows are kept
				c.k += 4 * amxRun
			}
			c.draw = func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }
			if try%3 == 0 {
				c.draw = func(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32()) }
			}
			c.transA, c.transB, c.alpha, c.beta = variant[float32](r.IntN(36))
			c.check(t, 1+try%3, r, memory)
		}
	})
}

// TestMatrixSameBits checks that the number of cores and the transposes don't change a bit, with sizes that are divided
// in every way.
func TestMatrixSameBits(t *testing.T) {
	shapes := [][3]int{{70, 100, 150}, {300, 40, 33}, {33, amxCols + 40, 40}, {40, 33, 2*amxRun + 150}, {33, 5958, 40}}
	if quick() {
		shapes = shapes[:2]
	}
	eachUnit(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 9))
		for _, s := range shapes {
			m, n, k := s[0], s[1], s[2]
			number := func() float64 { return math.Ldexp(r.NormFloat64(), -r.IntN(60)) }
			a, b := drawn[float32](m*k, number), drawn[float32](k*n, number)
			ta, tb := transposed(a, m, k), transposed(b, k, n)
			var want []float32
			for try, cores := range []int{1, 2, 3, 7} {
				if try > 0 && testseed.LeftOut(fmt.Sprint(s, try)) {
					continue
				}
				x, y, lda, ldb := a, b, k, n
				if try&1 != 0 {
					x, lda = ta, m
				}
				if try&2 != 0 {
					y, ldb = tb, k
				}
				c := make([]float32, m*n)
				Gemm(cores, try&1 != 0, try&2 != 0, m, n, k, 1, x, lda, y, ldb, 0, c, n)
				if want == nil {
					want = c
				}
				if !slices.Equal(c, want) {
					t.Errorf("%v on %d cores, transposes %02b: the bits differ", s, cores, try)
				}
			}
		}
	})
}

// TestMatrixRandomBits checks that the number of cores doesn't change a bit of batches of products, with all kinds of
// numbers and of strides. With bfloat16, the batches have one product.
func TestMatrixRandomBits(t *testing.T) {
	unusual := []float64{0, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32, 0x1p-140, 0x1p-100, -0x1p100}
	eachUnit(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 12))
		for try := range testseed.Cases(24) {
			rare := 20 << r.IntN(12)
			number := func() float64 {
				if r.IntN(rare) == 0 {
					return unusual[r.IntN(len(unusual))]
				}
				return math.Ldexp(r.NormFloat64(), -r.IntN(1+try%3*20))
			}
			transA, transB, alpha, beta := variant[float32](r.IntN(36))
			count, m, n, k := 1+r.IntN(3), 1+r.IntN(100), 1+r.IntN(100), 1+r.IntN(amxRun+200)
			lda, ldb, ldc := k+r.IntN(3), n+r.IntN(3), n+r.IntN(3)
			if transA {
				lda += m
			}
			if transB {
				ldb += k
			}
			strideA, strideB, strideC := r.IntN(9), r.IntN(9), m*ldc+r.IntN(9)
			a, b := drawn[float32](2*strideA+max(m, k)*lda, number), drawn[float32](2*strideB+max(k, n)*ldb, number)
			c := drawn[float32](count*strideC, number)
			sameOnAnyCores(t, func(cores int) []float32 {
				x, y := slices.Clone(c), slices.Clone(c)
				GemmBatch(cores, count, transA, transB, m, n, k, alpha, a, lda, strideA, b, ldb, strideB, beta, x, ldc, strideC)
				GemmBFloat16(cores, transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, y, ldc, nil, nil)
				return append(x, y...)
			})
		}
	})
}

// TestMatrixShares checks that each panel of B is packed once, that many products at once on one processor finish, and
// that a panic in a task reaches the caller while other tasks wait for it.
func TestMatrixShares(t *testing.T) {
	const m, n, k = 300, 150, 2*amxRun + 40
	set := amxModelSet()
	unit := *set.amx3
	set.amx3, unit.pays = &unit, func(int, int, int) bool { return true }
	var packed atomic.Int64
	across := unit.across
	unit.across = func(dst []uint16, src []float32, ld, blocks int, e *amxExtremes) {
		packed.Add(1)
		across(dst, src, ld, blocks, e)
	}
	unit.tile = func(*amxTile) {}
	use(t, set)
	a, b := make([]float32, m*k), make([]float32, k*n)
	product := func(cores int) { Gemm(cores, false, false, m, n, k, 1, a, k, b, n, 0, make([]float32, m*n), n) }
	for _, cores := range []int{1, 2, 7} {
		packed.Store(0)
		if product(cores); packed.Load() != 5*3 {
			t.Errorf("%d panels of B were packed on %d cores, want 5 panels for each of 3 runs", packed.Load(), cores)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var products sync.WaitGroup
	for range 4 {
		products.Go(func() { product(5) })
	}
	products.Wait()
	for _, failing := range []int64{1, 6, 15} {
		packed.Store(0)
		unit.across = func(dst []uint16, src []float32, ld, blocks int, e *amxExtremes) {
			runtime.Gosched()
			if packed.Add(1) == failing {
				panic("failing")
			}
			across(dst, src, ld, blocks, e)
		}
		func() {
			defer func() {
				if got := recover(); got != "failing" {
					t.Errorf("recovered %v from panel %d", got, failing)
				}
			}()
			product(3)
		}()
	}
}

// TestMatrixAllocates checks that products allocate nothing, apart from the tiles in Go.
func TestMatrixAllocates(t *testing.T) {
	set := amxModelSet()
	set.amx3.tile = func(*amxTile) {}
	set.amx3.pays = func(int, int, int) bool { return true }
	use(t, set)
	a, b, c := make([]float32, 128*140), make([]float32, 140*150), make([]float32, 128*150)
	allocatesNothing(t, set.name, func() { Gemm(0, false, true, 128, 150, 140, 1, a, 140, b, 140, 0, c, 150) })
}
