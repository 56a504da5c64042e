package kernel

// Gemm computes C = alpha·op(A)·op(B) + beta·C, where op(X) is X or, if its flag is set, its transpose.
//
// All matrices are row-major: op(A) is m×k, op(B) is k×n and C is m×n. lda, ldb and ldc are the distances between the
// rows of the stored matrices. If beta is 0, C isn't read, so it may hold NaN before. If alpha or k is 0, A and B
// aren't read. C must not overlap A or B.
//
// The result has the same bits for any number of cores. The order in which an element of C is summed depends only on k,
// with two exceptions: if C has one row and B is transposed, and if the processor has a matrix unit and the product is
// large enough for it.
//
// Gemm panics if a dimension is negative, or a slice or a distance between rows is too short.
func Gemm[F Float](cores int, transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, beta F, c []F, ldc int) {
	GemmBatch(cores, 1, transA, transB, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0)
}

// GemmBatch computes count products like Gemm. The operands of product i begin at a[i*strideA], b[i*strideB] and
// c[i*strideC]. If strideA or strideB is 0, all products use the same A or B. The results must not overlap one another.
func GemmBatch[F Float](cores, count int, transA, transB bool, m, n, k int, alpha F, a []F, lda, strideA int, b []F, ldb, strideB int, beta F, c []F, ldc, strideC int) {
	gemmBatch(cores, &gemmProduct[F]{
		count: count, transA: transA, transB: transB, m: m, n: n, k: k, alpha: alpha, beta: beta,
		a: a, b: b, c: c, lda: lda, ldb: ldb, ldc: ldc, strideA: strideA, strideB: strideB, strideC: strideC,
	})
}

// GemmFinish computes C = alpha·op(A)·op(B) + beta·C like Gemm, and then does what finish says. C's rows are adjacent.
// If kept isn't nil, B is transposed, and the product may use and fill kept.
func GemmFinish[F Float](cores int, transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, beta F, c []F, finish *Finish[F], kept *Kept) {
	gemmBatch(cores, &gemmProduct[F]{
		count: 1, transA: transA, transB: transB, m: m, n: n, k: k, alpha: alpha, beta: beta,
		a: a, b: b, c: c, lda: lda, ldb: ldb, ldc: n, finish: finish, weight: kept,
	})
}

func gemmBatch[F Float](cores int, p *gemmProduct[F]) {
	if !p.hasTerms() || amxGemm(cores, inUse.amx3, p) {
		return
	}
	body := bodyOf[F]()
	w := take[gemmWork[F]](&body.products)
	w.body = body
	w.gemmProduct = *p
	if p.turns(&body.tiles) {
		c := takeSpare[F](p.m * p.n)
		defer putSpare(c)
		w.turn(*c)
	}
	w.divide(workers(cores))
	parallelRun(cores, w.tasks(), w, w.work() >= gemmWakeWork)
	*w = gemmWork[F]{}
	body.products.Put(w)
}
