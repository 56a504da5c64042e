package kernel

// normBlock is the number of rows whose contributions to the gradients of gamma and beta are added up in order.
const normBlock = 32

// normRows returns the number of rows of the given width per task of a norm, a multiple of normBlock.
func normRows(width int) int { return roundUp(rowsPerTask(width, 2), normBlock) }

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
	first, end := lo*w.width, hi*w.width
	w.body.layerNorm(w.out[first:end], w.x[first:end], w.y, w.z, F(w.width), w.a, hi-lo)
}

// RMSNorm divides each row of x, of len(gamma) elements, by its root mean square, √(mean(x²) + eps), and multiplies it
// by gamma.
func RMSNorm[F Float](cores int, y, x, gamma []F, eps float64) {
	width := len(gamma)
	runLoop[F](cores, rmsNormLoop[F]{}, 2*len(x), &loopWork[F]{n: len(x) / width, step: normRows(width), out: y, x: x, y: gamma, width: width, eps: eps})
}

type rmsNormLoop[F Float] struct{}

func (rmsNormLoop[F]) run(w *loopWork[F], lo, hi int) {
	first, end := lo*w.width, hi*w.width
	w.body.rmsNorm(w.out[first:end], w.x[first:end], w.y, F(w.width), w.eps, hi-lo)
}

// LayerNormGrad sets dx, dgamma and, if it isn't nil, dbeta to the gradients of LayerNorm, where g is the gradient of
// y. If g is zero for a whole row, the row adds nothing, even if its x is NaN. If plus isn't nil, it is added to dx.
func LayerNormGrad[F Float](cores int, dx, dgamma, dbeta, x, gamma, g, plus []F, eps F) {
	width := len(gamma)
	spare := takeSpare[F](2 * width * (parts(len(x)/width, normBlock) + 1))
	sum, sums := (*spare)[:2*width], (*spare)[2*width:]
	normGrad(cores, sum, &loopWork[F]{out: dx, x: x, y: gamma, z: g, plus: plus, sums: sums, width: width, a: eps})
	copy(dgamma, sum[:width])
	copy(dbeta, sum[width:])
	putSpare(spare)
}

// RMSNormGrad sets dx and dgamma to the gradients of RMSNorm, like LayerNormGrad.
func RMSNormGrad[F Float](cores int, dx, dgamma, x, gamma, g, plus []F, eps float64) {
	width := len(gamma)
	sums := takeSpare[F](width * parts(len(x)/width, normBlock))
	normGrad(cores, dgamma, &loopWork[F]{out: dx, x: x, y: gamma, z: g, plus: plus, sums: *sums, width: width, eps: eps})
	putSpare(sums)
}

// normGrad sets w.out and sum to the gradients of LayerNorm or, if sum has only the gradient of gamma, of RMSNorm. It
// uses w.sums for the sums of blocks of rows.
func normGrad[F Float](cores int, sum []F, w *loopWork[F]) {
	w.n, w.step = len(w.x)/w.width, normRows(w.width)
	runLoop[F](cores, normGradLoop[F]{}, 4*len(w.x), w)
	SumRows(cores, sum, w.sums)
}

type normGradLoop[F Float] struct{}

func (normGradLoop[F]) run(w *loopWork[F], lo, hi int) {
	n, each := w.width, len(w.sums)/max(parts(w.n, normBlock), 1)
	for ; lo < hi; lo += normBlock {
		rows := min(normBlock, hi-lo)
		sums := w.sums[lo/normBlock*each:][:each] // sums of dgamma and dbeta over these rows
		clear(sums)
		first, end := lo*n, (lo+rows)*n
		dx, x, g := w.out[first:end], w.x[first:end], w.z[first:end]
		if each == n {
			w.body.rmsNormGrad(dx, sums, x, w.y, g, F(n), w.eps, rows)
		} else {
			w.body.layerNormGrad(dx, sums[:n], sums[n:], x, w.y, g, F(n), w.a, rows)
		}
		if w.plus != nil {
			w.body.add(dx, dx, w.plus[first:end])
		}
	}
}
