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
	p := gemmProduct[F]{
		count: count, transA: transA, transB: transB, m: m, n: n, k: k, alpha: alpha,
		a: a, b: b, c: c, lda: lda, ldb: ldb, ldc: ldc, strideA: strideA, strideB: strideB, strideC: strideC,
		finish: takeSeeking[F](),
	}
	gemmBatch(cores, &p)
	// If an operand holds NaN or an infinity, its product with zero has given NaN in C. The search for NaN costs little
	// beside the products.
	if putSeeking(p.finish) {
		p.a, p.b, p.finish = portable.Cleaned(a), portable.Cleaned(b), nil
		gemmBatch(cores, &p)
		p.addInfinite(a, b)
	}
}

// SkipGemmBFloat16 computes C = alpha·op(A)·op(B) like GemmBFloat16, but zero times NaN or infinity is zero. Elements
// are rounded first: a subnormal number counts as zero, and a number that rounds to infinity as infinity.
func SkipGemmBFloat16(cores int, transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	finish := takeSeeking[float32]()
	GemmBFloat16(cores, transA, transB, m, n, k, alpha, a, lda, b, ldb, 0, c, ldc, finish, nil)
	if putSeeking(finish) {
		a, b = slices.Clone(a), slices.Clone(b)
		portable.RoundBFloat16s(a)
		portable.RoundBFloat16s(b)
		GemmBFloat16(cores, transA, transB, m, n, k, alpha, portable.Cleaned(a), lda, portable.Cleaned(b), ldb, 0, c, ldc, nil, nil)
		p := gemmProduct[float32]{count: 1, transA: transA, transB: transB, m: m, n: n, k: k, alpha: alpha, c: c, lda: lda, ldb: ldb, ldc: ldc}
		p.addInfinite(a, b)
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

// addInfinite adds the products of NaN and infinities in a and b with factors other than 0 to C, which is the product
// with 0 in their place. So if NaN is multiplied only by zeros, it changes no bit of the results.
func (p *gemmProduct[F]) addInfinite(a, b []F) {
	rowA, colA, rowB, colB := p.lda, 1, p.ldb, 1
	if p.transA {
		rowA, colA = 1, p.lda
	}
	if p.transB {
		rowB, colB = 1, p.ldb
	}
	for item := range p.count {
		a, b, c := a[item*p.strideA:], b[item*p.strideB:], p.c[item*p.strideC:]
		for l := range p.k {
			for i := range p.m {
				if x := a[i*rowA+l*colA]; !portable.Finite(x) {
					for j := range p.n {
						if y := b[l*rowB+j*colB]; y != 0 {
							c[i*p.ldc+j] += p.alpha * x * y
						}
					}
				}
			}
			for j := range p.n {
				if y := b[l*rowB+j*colB]; !portable.Finite(y) {
					for i := range p.m {
						if x := a[i*rowA+l*colA]; x != 0 {
							c[i*p.ldc+j] += p.alpha * x * y
						}
					}
				}
			}
		}
	}
}
