package kernel

// Right sets right[i] to 1 if targets[i] is the class with the largest of row i's vocab logits, and to 0 otherwise. If
// several logits are largest, the first one counts. A row that holds NaN gets 0. A row with a target below 0 gets 0 and
// is not read.
func Right[F Float](cores int, right, logits []F, targets []int, vocab int) {
	runLoop[F](cores, rightLoop[F]{}, len(logits), &loopWork[F]{
		n: len(targets), step: rowsPerTask(vocab, 1), out: right, x: logits, width: vocab, targets: targets,
	})
}

type rightLoop[F Float] struct{}

func (rightLoop[F]) run(w *loopWork[F], lo, hi int) {
	for i := lo; i < hi; i++ {
		w.out[i] = 0
		target := w.targets[i]
		if target < 0 {
			continue
		}
		row := w.x[i*w.width:][:w.width]
		// The maximum of logits with a NaN is NaN, and comparisons with NaN are false.
		before, x, after := w.body.maxOf(row[:target]), row[target], w.body.maxOf(row[target+1:])
		if (x > before || target == 0) && x >= after {
			w.out[i] = 1
		}
	}
}
