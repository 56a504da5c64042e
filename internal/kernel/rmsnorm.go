package kernel

// RMSNorm divides each row of x, of len(gamma) elements, by its root mean square, √(mean(x²) + eps), and multiplies it
// by gamma.
func RMSNorm[F Float](cores int, y, x, gamma []F, eps float64) {
	width := len(gamma)
	runLoop[F](cores, rmsNormLoop[F]{}, 2*len(x), &loopWork[F]{n: len(x) / width, step: normRows(width), out: y, x: x, y: gamma, width: width, eps: eps})
}

type rmsNormLoop[F Float] struct{}

func (rmsNormLoop[F]) run(w *loopWork[F], lo, hi int) {
	rows := hi - lo
	lo, hi = lo*w.width, hi*w.width
	w.body.rmsNorm(w.out[lo:hi], w.x[lo:hi], w.y, F(w.width), w.eps, rows)
}

// RMSNormGrad sets dx and dgamma to the gradients of RMSNorm, where g is the gradient of y. If g is zero for a whole
// row, the row adds nothing, even if its x is NaN. If plus isn't nil, it is added to dx.
func RMSNormGrad[F Float](cores int, dx, dgamma, x, gamma, g, plus []F, eps float64) {
	width := len(gamma)
	n := len(x) / width
	sums := takeSpare[F](width * normBlocks(n))
	runLoop[F](cores, rmsNormGradLoop[F]{}, 4*len(x), &loopWork[F]{n: n, step: normRows(width), out: dx, x: x, y: gamma, z: g, plus: plus, sums: *sums, width: width, eps: eps})
	SumRows(cores, dgamma, *sums)
	putSpare(sums)
}

type rmsNormGradLoop[F Float] struct{}

func (rmsNormGradLoop[F]) run(w *loopWork[F], lo, hi int) {
	n := w.width
	for ; lo < hi; lo += normBlock {
		rows := min(normBlock, hi-lo)
		sum := w.sums[lo/normBlock*n:][:n] // sum of dgamma over these rows
		clear(sum)
		first, end := lo*n, (lo+rows)*n
		w.body.rmsNormGrad(w.out[first:end], sum, w.x[first:end], w.y, w.z[first:end], F(n), w.eps, rows)
		w.addPlus(first, end)
	}
}
