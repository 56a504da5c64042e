package kernel

import "math"

// CrossEntropy sets losses[i] to −log softmax(logits)[targets[i]] and logSums[i] to the logarithm of the sum of the
// exponentials, for each row of vocab logits. A row whose target is below 0 has a loss of 0 and is not read.
func CrossEntropy[F Float](losses []F, logSums []float64, logits []F, targets []int, vocab int) {
	spread[F](crossEntropyPart[F]{}, 4*len(logits), &vectorWork[F]{
		n: len(targets), step: rowsPerTask(vocab, 4), out: losses, x: logits, width: vocab, targets: targets, logSums: logSums,
	})
}

type crossEntropyPart[F Float] struct{}

func (crossEntropyPart[F]) do(w *vectorWork[F], lo, hi int) {
	for i := lo; i < hi; i++ {
		target := w.targets[i]
		if target < 0 {
			w.out[i], w.logSums[i] = 0, 0
			continue
		}
		row := w.x[i*w.width:][:w.width]
		most := w.body.maxOf(row)
		sum := float64(w.body.expSum(row, most))
		w.logSums[i] = float64(most) + math.Log(sum) // in double precision: what counts may be small beside most
		w.out[i] = F(w.logSums[i] - float64(row[target]))
	}
}

// CrossEntropyGrad sets d to scale·(softmax(logits) − onehot(target)), row by row; a row whose target is below 0 gets 0.
// logSums are those of CrossEntropy.
func CrossEntropyGrad[F Float](d []F, logSums []float64, logits []F, targets []int, vocab int, scale F) {
	spread[F](crossEntropyGradPart[F]{}, 4*len(logits), &vectorWork[F]{
		n: len(targets), step: rowsPerTask(vocab, 4), out: d, x: logits, width: vocab, a: scale, targets: targets, logSums: logSums,
	})
}

type crossEntropyGradPart[F Float] struct{}

func (crossEntropyGradPart[F]) do(w *vectorWork[F], lo, hi int) {
	for i := lo; i < hi; i++ {
		d := w.out[i*w.width:][:w.width]
		target := w.targets[i]
		if target < 0 {
			clear(d)
			continue
		}
		// exp(x − s) = exp(x − shift)·exp(shift − s): what F can't hold of s goes into the second factor.
		shift := F(w.logSums[i])
		w.body.expShift(d, w.x[i*w.width:][:w.width], shift)
		w.body.scale(d, F(float64(w.a)*math.Exp(float64(shift)-w.logSums[i])))
		d[target] -= w.a
	}
}

// Gather copies row ids[i] of a table to row i of out.
func Gather[F Float](out, table []F, ids []int, width int) {
	for i, id := range ids {
		copy(out[i*width:][:width], table[id*width:][:width])
	}
}

// ScatterAdd adds row i of g to row ids[i] of dt.
func ScatterAdd[F Float](dt, g []F, ids []int, width int) {
	body := vectorOf[F]()
	for i, id := range ids {
		body.axpy(dt[id*width:][:width], g[i*width:][:width], 1)
	}
}
