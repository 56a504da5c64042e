package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// gemm computes C = alpha·op(A)·op(B) + beta·C by kernel.GemmFinish or, with BFloat16, by kernel.GemmBFloat16. C has n
// columns. If finish is nil, nothing more is done. If kept is nil, B is packed for this product alone.
func gemm[F kernel.Float](e *Env, transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, beta F, c []F, finish *kernel.Finish[F], kept *kernel.Kept) {
	if x, ok := any(a).([]float32); ok && e.BFloat16 {
		kernel.GemmBFloat16(e.Cores, transA, transB, m, n, k, float32(alpha), x, lda, any(b).([]float32), ldb, float32(beta), any(c).([]float32), n, any(finish).(*kernel.Finish[float32]), kept)
		return
	}
	kernel.GemmFinish(e.Cores, transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, finish, kept)
}

// skipGemm computes C = alpha·op(A)·op(B) like gemm, but zero times NaN or infinity is zero.
func skipGemm[F kernel.Float](e *Env, transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, c []F, ldc int) {
	if x, ok := any(a).([]float32); ok && e.BFloat16 {
		kernel.SkipGemmBFloat16(e.Cores, transA, transB, m, n, k, float32(alpha), x, lda, any(b).([]float32), ldb, any(c).([]float32), ldc)
		return
	}
	kernel.SkipGemm(e.Cores, transA, transB, m, n, k, alpha, a, lda, b, ldb, c, ldc)
}

// checkPrecision returns an error if BFloat16 is set and the operands of a layer's products aren't float32.
func (e *Env) checkPrecision(name string, x *G.Node) error {
	if e.BFloat16 && x.Dtype() != tensor.Float32 {
		return fmt.Errorf("%s: precision bfloat16 needs float32 inputs and parameters, got %v: make the parameters float32, or use the precision float32, which leaves %v as it is", name, x.Dtype(), x.Dtype())
	}
	return nil
}
