package kernel

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// quick reports whether to try fewer sizes.
func quick() bool { return testing.Short() || testseed.Race }

// canary fills the memory between the rows of C and before every slice.
const canary = -12345

// arena returns slices that end where readable memory ends, so that an access past the end faults.
type arena[F Float] struct{ all, out []F }

func newArena[F Float](t *testing.T) *arena[F] { return &arena[F]{all: guarded[F](t, 1<<21)} }

// take returns n elements with the given value, with canaries before them.
func (a *arena[F]) take(n int, fill F) []F {
	a.out = a.all[len(a.all)-n:]
	for i := range a.out {
		a.out[i] = fill
	}
	for i := range 64 {
		a.all[len(a.all)-n-1-i] = canary
	}
	return a.out
}

func (a *arena[F]) intact() bool {
	n := len(a.out)
	for i := range 64 {
		if a.all[len(a.all)-n-1-i] != canary {
			return false
		}
	}
	return true
}

// gemmChecker checks products of whole numbers, which are exact in both types and in any order of summation. Between
// the rows of A and B it puts NaN, which would spread, and between the rows of C it puts canaries.
type gemmChecker[F Float] struct {
	a, b, c *arena[F]
	rand    *rand.Rand
	x, y, p []float64 // op(A), op(B) and their product
	cores   int
}

func newGemmChecker[F Float](t *testing.T) *gemmChecker[F] {
	return &gemmChecker[F]{a: newArena[F](t), b: newArena[F](t), c: newArena[F](t), rand: rand.New(rand.NewSource(1))}
}

// store writes rows×cols numbers in storage order, transposed or not.
func store[F Float](dst []F, ld int, trans bool, x []float64, rows, cols int) {
	for i := range rows {
		for j := range cols {
			if trans {
				dst[j*ld+i] = F(x[i*cols+j])
			} else {
				dst[i*ld+j] = F(x[i*cols+j])
			}
		}
	}
}

// stored returns the length of count matrices, one after the other with gap elements between.
func stored(count, rows, cols, ld, gap int) (length, stride int) {
	if rows == 0 || cols == 0 {
		return 0, gap + 1
	}
	one := (rows-1)*ld + cols
	return (count-1)*(one+gap) + one, one + gap
}

func (g *gemmChecker[F]) check(t *testing.T, count int, transA, transB bool, m, n, k, pad int, alpha, beta F) {
	t.Helper()
	lda, ldb, ldc := k+pad, n+pad, n+pad
	ar, ac, br, bc := m, k, k, n
	if transA {
		ar, ac, lda = k, m, m+pad
	}
	if transB {
		br, bc, ldb = n, k, k+pad
	}
	nan := F(math.NaN())
	la, sa := stored(count, ar, ac, lda, pad)
	lb, sb := stored(count, br, bc, ldb, pad)
	lc, sc := stored(count, m, n, ldc, pad)
	a, b, c := g.a.take(la, nan), g.b.take(lb, nan), g.c.take(lc, canary)
	want := make([]F, lc)
	copy(want, c)
	for q := range count {
		g.fill(m, n, k)
		store(a[min(q*sa, la):], lda, transA, g.x, m, k)
		store(b[min(q*sb, lb):], ldb, transB, g.y, k, n)
		for i := range m {
			for j := range n {
				index, old := q*sc+i*ldc+j, float64(g.rand.Intn(9)-4)
				c[index] = F(old)
				if beta == 0 {
					c[index], old = nan, 0
				}
				want[index] = F(float64(alpha)*g.p[i*n+j] + float64(beta)*old)
			}
		}
	}
	if alpha == 0 {
		a, b = nil, nil
	}
	if count == 1 {
		Gemm(g.cores, transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	} else {
		GemmBatch(g.cores, count, transA, transB, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc)
	}
	if !slices.Equal(c, want) || !g.a.intact() || !g.b.intact() || !g.c.intact() {
		t.Fatalf("%d products (%d, %d) x (%d, %d), transposed %v and %v, padding %d, alpha %v, beta %v:\ngot  %v\nwant %v", count, m, k, k, n, transA, transB, pad, alpha, beta, c, want)
	}
}

// fill makes the matrices of one product.
func (g *gemmChecker[F]) fill(m, n, k int) {
	whole := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(g.rand.Intn(9) - 4)
		}
		return x
	}
	g.x, g.y = whole(m*k), whole(k*n)
	g.p = make([]float64, m*n)
	for i := range m {
		row := g.p[i*n:][:n]
		for p := range k {
			x := g.x[i*k+p]
			for j, y := range g.y[p*n:][:n] {
				row[j] += x * y
			}
		}
	}
}

// variant returns combination i of transposes, alpha and beta.
func variant[F Float](i int) (transA, transB bool, alpha, beta F) {
	factors := []F{1, -0.5, 0}
	return i&1 != 0, i&2 != 0, factors[i/4%3], factors[(i/12+1)%3]
}

func TestGemmSmall(t *testing.T) {
	eachBody(t, testGemmSmall[float32], testGemmSmall[float64])
}

func testGemmSmall[F Float](t *testing.T) {
	g, try, limit := newGemmChecker[F](t), 0, min(20, 12*testseed.Cases(1))
	if quick() {
		limit = 9
	}
	for m := range limit + 1 {
		for n := range limit + 1 {
			for k := range limit + 1 {
				for range 4 {
					transA, transB, alpha, beta := variant[F](try)
					g.check(t, 1, transA, transB, m, n, k, try/36%3, alpha, beta)
					try++
				}
				try++
			}
		}
	}
}

func TestGemmRemainders(t *testing.T) {
	eachBody(t, testGemmRemainders[float32], testGemmRemainders[float64])
}

// testGemmRemainders tests all sizes of tiles.
func testGemmRemainders[F Float](t *testing.T) {
	g := newGemmChecker[F](t)
	try := 0
	for m := 1; m <= 29; m++ {
		for n := 1; n <= 66; n++ {
			if quick() && (m+n)%5 != 0 {
				continue
			}
			transA, transB, _, beta := variant[F](try)
			g.check(t, 1, transA, transB, m, n, 1+try%11, try%3, 1, beta)
			try++
		}
	}
}

func TestGemmRandom(t *testing.T) {
	eachBody(t, testGemmRandom[float32], testGemmRandom[float64])
}

func testGemmRandom[F Float](t *testing.T) {
	g := newGemmChecker[F](t)
	r := rand.New(rand.NewSource(int64(testseed.Of(t))))
	tries := testseed.Cases(24)
	if testseed.Race {
		tries = 6
	}
	for try := range tries {
		g.cores = 1 + try%3
		transA, transB, alpha, beta := variant[F](r.Intn(36))
		count, m, n, k := 1, 1+r.Intn(300), 1+r.Intn(150), 1+r.Intn(150)
		switch try % 4 {
		case 1:
			count, m, n, k = 2+r.Intn(40), 1+r.Intn(20), 1+r.Intn(40), 1+r.Intn(40)
		case 2:
			k += 512 // more terms than one run
		case 3:
			n += 600
		}
		if try%5 == 4 {
			m = 1
		}
		g.check(t, count, transA, transB, m, n, k, r.Intn(4), alpha, beta)
	}
}

func TestGemmBatchShares(t *testing.T) {
	a, b := []float64{1, 2, 3, 4}, []float64{5, 6}
	c := make([]float64, 4)
	GemmBatch(0, 2, false, false, 2, 1, 2, 1, a, 2, 0, b, 1, 0, 0, c, 1, 2)
	if want := []float64{17, 39, 17, 39}; !slices.Equal(c, want) {
		t.Errorf("got %v, want %v", c, want)
	}
}

func TestGemmSpreadsNaN(t *testing.T) {
	eachBody(t, testGemmSpreadsNaN[float32], testGemmSpreadsNaN[float64])
}

// testGemmSpreadsNaN checks that 0·NaN and 0·∞ are NaN in products, but that C times a beta of 0 is 0.
func testGemmSpreadsNaN[F Float](t *testing.T) {
	a, b, c := make([]F, 6), make([]F, 6), []F{F(math.NaN()), F(math.Inf(1)), 1, 1}
	b[0] = F(math.Inf(1))
	Gemm(0, false, false, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2)
	for i, x := range c {
		if isNaN := x != x; isNaN != (i%2 == 0) {
			t.Errorf("element %d is %v (NaN: %t, want %t)", i, x, isNaN, !isNaN)
		}
	}
}

func TestGemmPanics(t *testing.T) {
	x := make([]float32, 12)
	for name, call := range map[string]func(){
		"negative dimension": func() { Gemm(0, false, false, -1, 2, 3, 1, x, 3, x, 2, 0, x, 2) },
		"short A":            func() { Gemm(0, false, false, 4, 1, 4, 1, x, 4, x, 1, 0, make([]float32, 4), 1) },
		"short B":            func() { Gemm(0, false, true, 1, 4, 4, 1, x, 4, x, 4, 0, make([]float32, 4), 4) },
		"short C":            func() { Gemm(0, false, false, 2, 7, 1, 1, x, 1, x, 7, 0, x, 7) },
		"short row":          func() { Gemm(0, false, false, 2, 2, 3, 1, x, 2, x, 2, 0, make([]float32, 4), 2) },
		"C shared":           func() { GemmBatch(0, 2, false, false, 1, 1, 1, 1, x, 1, 1, x, 1, 1, 0, make([]float32, 2), 1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

func ExampleGemm() {
	x := []float32{1, 2, 3, 4, 5, 6} // (2, 3)
	w := []float32{1, 0, 1, 0, 1, 0} // (2, 3)
	y := make([]float32, 4)          // x·wᵀ: (2, 2)
	Gemm(0, false, true, 2, 2, 3, 1, x, 3, w, 3, 0, y, 2)
	fmt.Println(y)
	// Output: [4 2 10 5]
}
