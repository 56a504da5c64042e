package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestSkipGemm checks that NaN and infinities affect a product unless the other factor is zero.
func TestSkipGemm(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for flags := range 4 {
		transA, transB := flags&1 != 0, flags&2 != 0
		for _, size := range [][3]int{{2, 3, 4}, {5, 33, 18}, {40, 50, 60}} {
			m, n, k := size[0], size[1], size[2]
			a, b := normals[float64](1, 2*m*k), normals[float64](2, 2*k*n)
			lda, ldb := k, n
			ia := func(q, i, p int) int { return q*m*k + i*k + p }
			ib := func(q, p, j int) int { return q*k*n + p*n + j }
			if transA {
				lda = m
				ia = func(q, i, p int) int { return q*m*k + p*m + i }
			}
			if transB {
				ldb = k
				ib = func(q, p, j int) int { return q*k*n + j*k + p }
			}
			multiply := func() []float64 {
				c := normals[float64](3, 2*m*n)
				SkipGemmBatch(0, 2, transA, transB, m, n, k, 0.5, a, lda, m*k, b, ldb, k*n, c, n, m*n)
				return c
			}
			// Columns of A are set to zero, so the same rows of B have no effect: row 1 in both products, and row 2 in
			// the second product.
			for i := range m {
				a[ia(0, i, 1)], a[ia(1, i, 1)], a[ia(1, i, 2)] = 0, 0, 0
			}
			want := multiply()
			for j := range n {
				b[ib(0, 1, j)], b[ib(1, 1, j)], b[ib(1, 2, j)] = nan, -inf, inf
			}
			a[ia(1, 0, 0)] = nan // multiplies only row 0 of B, and affects only row 0 of C
			for j := range n {
				b[ib(1, 0, j)] = 0
			}
			got := multiply()
			a[ia(1, 0, 0)] = 0
			clean := multiply()
			for i := range got {
				if i < m*n && math.Float64bits(got[i]) != math.Float64bits(want[i]) || i >= m*n && math.Float64bits(got[i]) != math.Float64bits(clean[i]) {
					t.Fatalf("%v, %t, %t: element %d is %v, want %v", size, transA, transB, i, got[i], want[i])
				}
			}
			b[ib(0, 0, 1)], a[ia(1, 1, 3)] = inf, nan // these must affect the result
			a[ia(0, 0, 0)], a[ia(0, 1, 0)] = 2, 0
			got = multiply()
			if got[1] != inf {
				t.Errorf("∞·2 + … is %v, want +Inf", got[1])
			}
			if math.IsNaN(got[n+1]) || math.IsInf(got[n+1], 0) {
				t.Errorf("∞·0 + … is %v, want a finite number", got[n+1])
			}
			if !math.IsNaN(got[m*n+n]) || math.IsNaN(got[m*n]) {
				t.Errorf("NaN in row 1 of A gives %v in row 1 of C and %v in row 0, want NaN only in row 1", got[m*n+n], got[m*n])
			}
		}
	}
}

// TestSkipGemmBFloat16 checks that NaN, and numbers that round to infinity, change no bit if the other factor is zero.
func TestSkipGemmBFloat16(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		const m, n, k = 7, 40, 50
		a, b := normals[float32](1, m*k), normals[float32](2, k*n)
		multiply := func(transA bool) []float32 {
			c, x, lda := make([]float32, m*n), a, k
			if transA {
				x, lda = transposed(a, m, k), m
			}
			SkipGemmBFloat16(0, transA, false, m, n, k, 0.5, x, lda, b, n, c, n)
			return c
		}
		for i := range m {
			a[i*k+1], a[i*k+2] = 0, 0x1p-130 // subnormal, so it rounds to 0
		}
		want := multiply(false)
		for j := range n {
			b[n+j], b[2*n+j] = float32(math.NaN()), -math.MaxFloat32
		}
		for _, transA := range []bool{false, true} {
			if !slices.Equal(multiply(transA), want) {
				t.Errorf("NaN and infinities change the result, although they are multiplied by 0 (A transposed: %t)", transA)
			}
		}
		a[1], a[k+2] = 1, 1 // NaN reaches row 0, and an infinity row 1
		for i, x := range multiply(false) {
			switch i / n {
			case 0:
				if x == x {
					t.Errorf("element %d of row 0 is %v, want NaN", i, x)
				}
			case 1:
				if x != float32(math.Inf(-1)) {
					t.Errorf("element %d of row 1 is %v, want -Inf", i%n, x)
				}
			default:
				if x != want[i] {
					t.Errorf("element %d of row %d is %v, want %v", i%n, i/n, x, want[i])
				}
			}
		}
	})
}
