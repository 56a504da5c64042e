package kernel

// turns reports whether to compute x·Wᵀ as the transpose of W·xᵀ. If x has few rows, packing W takes a large part of
// the time; packing x takes little. It pays off if x's rows fill most of a tile. Each element adds up the same terms in
// the same order, so no bit changes.
func (p *gemmProduct[F]) turns(g *gemmTiles[F]) bool {
	fits := 2*g.cols <= 3*p.m && p.m <= g.cols && 2*p.m <= p.n
	crowded := g.collides && p.ldb%(1<<10) == 0
	return !p.transA && p.transB && p.count == 1 && p.beta == 0 && fits && !crowded
}

// turn makes w the transpose of its product. Its results come to c.
func (w *gemmWork[F]) turn(c []F) {
	p := w.gemmProduct
	w.turned = p
	w.m, w.n = p.n, p.m
	w.a, w.b, w.c = p.b, p.a, c
	w.lda, w.ldb, w.ldc = p.ldb, p.lda, p.m
}

// turnBack copies rows i0 to i1 and columns j0 to j1 to the product whose transpose this is, and finishes them there.
func (w *gemmWork[F]) turnBack(i0, i1, j0, j1 int) {
	p := &w.turned
	w.body.tiles.transposeTo(p.c[j0*p.ldc+i0:], p.ldc, w.c[i0*w.ldc+j0:], w.ldc, i1-i0, j1-j0)
	p.finishBlock(w.body, 0, j0, j1, i0, i1)
}
