package kernel

import (
	"slices"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// SkipGemm computes C = alpha·op(A)·op(B) like Gemm, but zero times NaN or infinity is zero. Attention needs such
// products: a masked key has a weight of exactly 0, and an ignored position has a gradient of exactly 0.
func SkipGemm[F Float](cores int, transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, c []F, ldc int) {
	SkipGemmBatch(cores, 1, transA, transB, m, n, k, alpha, a, lda, 0, b, ldb, 0, c, ldc, 0)
}

// SkipGemmBatch computes count products like SkipGemm. The operands of successive products are strideA, strideB and
// strideC elements apart.
func SkipGemmBatch[F Float](cores, count int, transA, transB bool, m, n, k int, alpha F, a []F, lda, strideA int, b []F, ldb, strideB int, c []F, ldc, strideC int) {
	finish := takeSeeking[F]()
	product := gemmProduct[F]{
		count: count, transA: transA, transB: transB, m: m, n: n, k: k, alpha: alpha,
		a: a, b: b, c: c, lda: lda, ldb: ldb, ldc: ldc, strideA: strideA, strideB: strideB, strideC: strideC,
		finish: finish,
	}
	gemmBatch(cores, &product)
	// If an operand holds NaN or an infinity, its product with zero has given NaN in C. The search for NaN costs little
	// beside the products.
	if putSeeking(finish) {
		product.a, product.b, product.finish = portable.Cleaned(a), portable.Cleaned(b), nil
		gemmBatch(cores, &product)
		addInfinite(count, transA, transB, m, n, k, alpha, a, lda, strideA, b, ldb, strideB, c, ldc, strideC)
	}
}

// SkipGemmBFloat16 computes C = alpha·op(A)·op(B) like GemmBFloat16, but zero times NaN or infinity is zero. Elements
// are rounded first: a subnormal number counts as zero, and a number that rounds to infinity as infinity.
func SkipGemmBFloat16(cores int, transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	finish := takeSeeking[float32]()
	GemmBFloat16(cores, transA, transB, m, n, k, alpha, a, lda, b, ldb, 0, c, ldc, finish)
	if putSeeking(finish) {
		a, b = slices.Clone(a), slices.Clone(b)
		portable.RoundBFloat16s(a)
		portable.RoundBFloat16s(b)
		GemmBFloat16(cores, transA, transB, m, n, k, alpha, portable.Cleaned(a), lda, portable.Cleaned(b), ldb, 0, c, ldc, nil)
		addInfinite(1, transA, transB, m, n, k, alpha, a, lda, 0, b, ldb, 0, c, ldc, 0)
	}
}

// takeSeeking returns a Finish that searches a product for NaN.
func takeSeeking[F Float]() *Finish[F] {
	f := take[Finish[F]](&bodyOf[F]().finishes)
	f.seeks = true
	f.nan.Store(false)
	return f
}

// putSeeking puts f back and reports whether it found NaN.
func putSeeking[F Float](f *Finish[F]) bool {
	found := f.nan.Load()
	bodyOf[F]().finishes.Put(f)
	return found
}

// addInfinite adds the products of NaN and infinities with factors other than 0 to C, which is the product with 0 in
// their place. So if NaN is multiplied only by zeros, it changes no bit of the results.
func addInfinite[F Float](count int, transA, transB bool, m, n, k int, alpha F, a []F, lda, strideA int, b []F, ldb, strideB int, c []F, ldc, strideC int) {
	rowA, colA := lda, 1
	if transA {
		rowA, colA = 1, lda
	}
	rowB, colB := ldb, 1
	if transB {
		rowB, colB = 1, ldb
	}
	for q := range count {
		a, b, c := a[q*strideA:], b[q*strideB:], c[q*strideC:]
		for p := range k {
			for i := range m {
				if x := a[i*rowA+p*colA]; !portable.Finite(x) {
					for j := range n {
						if y := b[p*rowB+j*colB]; y != 0 {
							c[i*ldc+j] += alpha * x * y
						}
					}
				}
			}
			for j := range n {
				if y := b[p*rowB+j*colB]; !portable.Finite(y) {
					for i := range m {
						if x := a[i*rowA+p*colA]; x != 0 {
							c[i*ldc+j] += alpha * x * y
						}
					}
				}
			}
		}
	}
}
