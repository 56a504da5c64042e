package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
	"github.com/heed-go/heed/internal/testseed"
)

// bfloat16Case is a product of matrices between which the memory holds NaN.
type bfloat16Case struct {
	transA, transB bool
	m, n, k, pad   int
	alpha, beta    float32
	draw           func(r *rand.Rand) float32
}

// check compares GemmBFloat16 with sums of one element at a time, to the bit.
func (c bfloat16Case) check(t *testing.T, cores int, r *rand.Rand, memory [3]*arena[float32]) {
	t.Helper()
	matrix := func(a *arena[float32], trans bool, rows, cols int) (x []float32, ld int, element func(i, j int) *float32) {
		if trans {
			rows, cols = cols, rows
		}
		ld = cols + c.pad
		x = a.take((rows-1)*ld+cols, float32(math.NaN()))
		element = func(i, j int) *float32 {
			if trans {
				i, j = j, i
			}
			return &x[i*ld+j]
		}
		for i := range rows {
			for j := range cols {
				x[i*ld+j] = c.draw(r)
			}
		}
		return x, ld, element
	}
	a, lda, elementA := matrix(memory[0], c.transA, c.m, c.k)
	b, ldb, elementB := matrix(memory[1], c.transB, c.k, c.n)
	y, ldc, elementC := matrix(memory[2], false, c.m, c.n)
	if c.beta == 0 {
		for i := range y {
			y[i] = float32(math.NaN())
		}
	}
	want := slices.Clone(y)
	padded := roundUp(c.k, portable.BFloat16Terms)
	left, right := make([]float32, padded), make([]float32, padded)
	for i := range c.m {
		for p := range c.k {
			left[p] = portable.RoundBFloat16(*elementA(i, p))
		}
		for j := range c.n {
			for p := range c.k {
				right[p] = portable.RoundBFloat16(*elementB(p, j))
			}
			var sum float32
			for p := 0; p < padded; p += portable.BFloat16Terms {
				sum = portable.TDPBF16PS(sum, left[p:], 1, right[p:], 1)
			}
			x, old := float32(c.alpha*sum), float32(c.beta**elementC(i, j))
			switch {
			case c.alpha == 0 && c.beta == 0:
				x = 0
			case c.alpha == 0:
				x = old
			case c.beta != 0:
				x += old
			}
			want[i*ldc+j] = x
		}
	}
	GemmBFloat16(cores, c.transA, c.transB, c.m, c.n, c.k, c.alpha, a, lda, b, ldb, c.beta, y, ldc, nil, nil)
	for i, x := range y {
		if math.Float32bits(x) != math.Float32bits(want[i]) && (x == x || want[i] == want[i]) {
			t.Fatalf("(%d, %d) x (%d, %d), transposed %v and %v, padding %d, alpha %v, beta %v, %d cores: element (%d, %d) is %x, want %x",
				c.m, c.k, c.k, c.n, c.transA, c.transB, c.pad, c.alpha, c.beta, cores, i/ldc, i%ldc, x, want[i])
		}
	}
	for i, a := range memory {
		if !a.intact() {
			t.Fatalf("memory before operand %d was overwritten", i)
		}
	}
}

func TestGemmBFloat16(t *testing.T) {
	normal := func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }
	draws := []func(r *rand.Rand) float32{
		normal,
		func(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32()) },   // all scales, NaN and infinities too
		func(r *rand.Rand) float32 { return float32(r.NormFloat64()) * 0x1p-63 }, // sums near the smallest number
		func(r *rand.Rand) float32 { return float32(r.NormFloat64()) * 0x1p63 },  // and near the largest
		func(r *rand.Rand) float32 { return float32(r.IntN(5)-2) * 0x1p-63 },     // whole numbers, which cancel
	}
	eachSet(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(testseed.Of(t), 1))
		memory := [3]*arena[float32]{newArena[float32](t), newArena[float32](t), newArena[float32](t)}
		for try := range testseed.Cases(160) {
			c := bfloat16Case{m: 1 + r.IntN(20), n: 1 + r.IntN(70), k: 1 + r.IntN(100), pad: r.IntN(3), draw: draws[try%len(draws)]}
			c.transA, c.transB, c.alpha, c.beta = variant[float32](r.IntN(36))
			c.check(t, 1+try%3, r, memory)
		}
		for try, s := range [][3]int{{70, 97, 290}, {300, 35, 64}, {13, 530, 33}, {90, 64, 513}} {
			c := bfloat16Case{m: s[0], n: s[1], k: s[2], alpha: 1, beta: float32(try % 2), draw: normal}
			for i := range 4 {
				if quick() && i != try {
					continue
				}
				c.transA, c.transB = i&1 != 0, i&2 != 0
				c.check(t, 1+i, r, memory)
			}
		}
	})
}

func ExampleGemmBFloat16() {
	x := []float32{1, 1 + 1.0/128, 1 + 1.0/256} // the last is rounded to 1
	w := []float32{100, 0, 0, 0, 100, 0, 0, 0, 100}
	y := make([]float32, 3)
	GemmBFloat16(0, false, false, 1, 3, 3, 1, x, 3, w, 3, 0, y, 3, nil, nil)
	fmt.Println(y)
	// Output: [100 100.78125 100]
}
