package kernel

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
)

func TestGemm(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testGemm[float32](t, 1e-4) })
	t.Run("float64", func(t *testing.T) { testGemm[float64](t, 1e-12) })
}

func testGemm[F Float](t *testing.T, tol float64) {
	r := rand.New(rand.NewSource(1))
	for try := range 600 {
		m, n, k := r.Intn(40), r.Intn(40), r.Intn(40)
		if try%10 == 0 {
			m, n, k = r.Intn(100), r.Intn(100), r.Intn(100)
		}
		ta, tb := r.Intn(2) == 1, r.Intn(2) == 1
		count := 1 + r.Intn(3)
		ar, ac, br, bc := m, k, k, n
		if ta {
			ar, ac = ac, ar
		}
		if tb {
			br, bc = bc, br
		}
		lda, ldb, ldc := max(1, ac)+r.Intn(3), max(1, bc)+r.Intn(3), max(1, n)+r.Intn(3)
		fill := func(n int) []F {
			s := make([]F, n)
			for i := range s {
				s[i] = F(r.NormFloat64())
			}
			return s
		}
		a, b, c := fill(count*ar*lda), fill(count*br*ldb), fill(count*m*ldc)
		alpha, beta := []F{0, 1, -0.5}[r.Intn(3)], []F{0, 1, -0.5}[r.Intn(3)]
		want := make([]float64, len(c))
		for i := range c {
			want[i] = float64(c[i])
		}
		for q := range count {
			for i := range m {
				for j := range n {
					s := 0.0
					for p := range k {
						x, y := i*lda+p, p*ldb+j
						if ta {
							x = p*lda + i
						}
						if tb {
							y = j*ldb + p
						}
						s += float64(a[q*ar*lda+x]) * float64(b[q*br*ldb+y])
					}
					at := q*m*ldc + i*ldc + j
					want[at] = float64(alpha)*s + float64(beta)*want[at]
					if beta == 0 {
						c[at] = F(math.NaN())
					}
				}
			}
		}
		if count == 1 {
			Gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		} else {
			GemmBatch(count, ta, tb, m, n, k, alpha, a, lda, ar*lda, b, ldb, br*ldb, beta, c, ldc, m*ldc)
		}
		name := fmt.Sprint(count, ta, tb, m, n, k, alpha, beta)
		for i := range c {
			if d := math.Abs(float64(c[i]) - want[i]); !(d <= tol*(1+math.Abs(want[i]))) {
				t.Fatalf("%s: element %d is %v, want %v", name, i, c[i], want[i])
			}
		}
	}
}
