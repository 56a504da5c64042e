package kernel

import "slices"

// Largest sets ids[i] to the class with the largest of row i's vocab logits: the first one if there are several, or −1
// if the row holds NaN. It doesn't read rows whose ids[i] is below 0 before.
func Largest[F Float](cores int, ids []int, logits []F, vocab int) {
	runLoop[F](cores, largestLoop[F]{}, 2*len(logits), &loopWork[F]{
		n: len(ids), step: rowsPerTask(vocab, 2), x: logits, width: vocab, targets: ids,
	})
}

type largestLoop[F Float] struct{}

func (largestLoop[F]) run(w *loopWork[F], lo, hi int) {
	for i := lo; i < hi; i++ {
		if w.targets[i] >= 0 {
			row := w.x[i*w.width:][:w.width]
			w.targets[i] = slices.Index(row, w.body.maxOf(row)) // the maximum of a row with NaN is NaN, which equals nothing
		}
	}
}
