package kernel

// dots tells whether C is one row of dot products with the rows of B as it is stored: a token's x·Wᵀ. To pack B, which is
// read once, would cost more than the products do.
func (w *gemmWork[F]) dots() bool { return w.m == 1 && w.transB && !w.transA }

// row computes columns j0 to j1 of such a C.
func (w *gemmWork[F]) row(item, j0, j1 int) {
	dot := vectorOf[F]().dot
	a, b, c := w.a[item*w.strideA:][:w.k], w.b[item*w.strideB:], w.c[item*w.strideC:]
	for j := j0; j < j1; j++ {
		x := w.alpha * dot(a, b[j*w.ldb:][:w.k])
		if w.beta != 0 {
			x += w.beta * c[j]
		}
		c[j] = x
	}
}
