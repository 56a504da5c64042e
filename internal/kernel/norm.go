package kernel

// normBlock is the number of rows whose contributions to the gradients of gamma and beta are added up in order.
const normBlock = 32

func normBlocks(rows int) int { return (rows + normBlock - 1) / normBlock }

// normRows returns the number of rows of the given width per task of LayerNorm, a multiple of normBlock.
func normRows(width int) int { return normBlocks(rowsPerTask(width, 2)) * normBlock }

// LayerNorm normalises each row of x, of len(gamma) elements, to mean 0 and variance 1, multiplies it by gamma and adds
// beta, unless beta is nil.
func LayerNorm[F Float](cores int, y, x, gamma, beta []F, eps F) {
	width := len(gamma)
	if beta != nil {
		beta = beta[:width]
	}
	runLoop[F](cores, layerNormLoop[F]{}, 2*len(x), &loopWork[F]{n: len(x) / width, step: normRows(width), out: y, x: x, y: gamma, z: beta, width: width, a: eps})
}

type layerNormLoop[F Float] struct{}

func (layerNormLoop[F]) run(w *loopWork[F], lo, hi int) {
	rows := hi - lo
	lo, hi = lo*w.width, hi*w.width
	w.body.layerNorm(w.out[lo:hi], w.x[lo:hi], w.y, w.z, F(w.width), w.a, rows)
}

// LayerNormGrad sets dx, dgamma and, if it isn't nil, dbeta to the gradients of LayerNorm, where g is the gradient of
// y. If g is zero for a whole row, the row adds nothing, even if its x is NaN. If plus isn't nil, it is added to dx.
func LayerNormGrad[F Float](cores int, dx, dgamma, dbeta, x, gamma, g, plus []F, eps F) {
	width := len(gamma)
	n := len(x) / width
	spare := takeSpare[F](2 * width * (normBlocks(n) + 1))
	sum, sums := (*spare)[:2*width], (*spare)[2*width:]
	runLoop[F](cores, layerNormGradLoop[F]{}, 4*len(x), &loopWork[F]{n: n, step: normRows(width), out: dx, x: x, y: gamma, z: g, plus: plus, sums: sums, width: width, a: eps})
	SumRows(cores, sum, sums)
	copy(dgamma, sum[:width])
	copy(dbeta, sum[width:])
	putSpare(spare)
}

type layerNormGradLoop[F Float] struct{}

func (layerNormGradLoop[F]) run(w *loopWork[F], lo, hi int) {
	n := w.width
	for ; lo < hi; lo += normBlock {
		rows := min(normBlock, hi-lo)
		sums := w.sums[lo/normBlock*2*n:][:2*n] // sums of dgamma and dbeta over these rows
		clear(sums)
		first, end := lo*n, (lo+rows)*n
		w.body.layerNormGrad(w.out[first:end], sums[:n], sums[n:], w.x[first:end], w.y, w.z[first:end], F(n), w.a, rows)
		w.addPlus(first, end)
	}
}
