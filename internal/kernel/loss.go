package kernel

import "math"

// CrossEntropy sets losses[i] to −Σ q·log softmax(row i) and logSums[i] to log Σ exp(row i), for rows of vocab logits,
// with q = (1 − smoothing)·onehot(targets[i]) + smoothing/vocab. If targets[i] is below 0, it sets both to 0 and
// doesn't read the row. If smoothing is above 0, a logit of −Inf makes the loss infinite.
func CrossEntropy[F Float](cores int, losses []F, logSums []float64, logits []F, targets []int, vocab int, smoothing F) {
	runLoop[F](cores, crossEntropyLoop[F]{}, 4*len(logits), &loopWork[F]{
		n: len(targets), step: rowsPerTask(vocab, 4), out: losses, x: logits, width: vocab, a: smoothing, targets: targets, logSums: logSums,
	})
}

type crossEntropyLoop[F Float] struct{}

func (crossEntropyLoop[F]) run(w *loopWork[F], lo, hi int) {
	for i := lo; i < hi; i++ {
		target := w.targets[i]
		if target < 0 {
			w.out[i], w.logSums[i] = 0, 0
			continue
		}
		row := w.x[i*w.width:][:w.width]
		largest := w.body.maxOf(row)
		loss := math.Log(float64(w.body.expSum(row, largest)))
		w.logSums[i] = float64(largest) + loss        // in float64, because loss may be much smaller than largest
		if smoothing := float64(w.a); smoothing < 1 { // without this check, 0 times infinity would give NaN
			loss += (1 - smoothing) * (float64(largest) - float64(row[target]))
		}
		if w.a > 0 {
			loss += float64(w.a) * meanBelow(row, largest)
		}
		w.out[i] = F(loss)
	}
}

// meanBelow returns the mean of the terms largest − x[i]. No term is negative, so no digits cancel. Groups of four
// terms are added in F, and the sums of the groups in float64.
func meanBelow[F Float](x []F, largest F) float64 {
	n := float64(len(x))
	var s0, s1 float64
	for len(x) >= 8 {
		s0 += float64(((largest - x[0]) + (largest - x[1])) + ((largest - x[2]) + (largest - x[3])))
		s1 += float64(((largest - x[4]) + (largest - x[5])) + ((largest - x[6]) + (largest - x[7])))
		x = x[8:]
	}
	for _, v := range x {
		s0 += float64(largest - v)
	}
	return (s0 + s1) / n
}

// CrossEntropyGrad sets row i of d to scales[i]·(softmax(row i) − q); for q, see CrossEntropy. If scales[i] is 0, it
// sets the row to 0 and doesn't read the logits. The slice logSums must come from CrossEntropy.
func CrossEntropyGrad[F Float](cores int, d []F, logSums []float64, logits []F, targets []int, vocab int, smoothing F, scales []F) {
	runLoop[F](cores, crossEntropyGradLoop[F]{}, 4*len(logits), &loopWork[F]{
		n: len(targets), step: rowsPerTask(vocab, 4), out: d, x: logits, z: scales, width: vocab, a: smoothing, targets: targets, logSums: logSums,
	})
}

type crossEntropyGradLoop[F Float] struct{}

func (crossEntropyGradLoop[F]) run(w *loopWork[F], lo, hi int) {
	smoothing := w.a
	for i := lo; i < hi; i++ {
		d := w.out[i*w.width:][:w.width]
		scale := w.z[i]
		if scale == 0 {
			clear(d)
			continue
		}
		// exp(x − s) = exp(x − shift)·exp(shift − s), where shift is s rounded to F.
		shift := F(w.logSums[i])
		w.body.expShift(d, w.x[i*w.width:][:w.width], shift)
		w.body.scale(d, F(float64(scale)*math.Exp(float64(shift)-w.logSums[i])))
		if smoothing > 0 {
			each := scale * smoothing / F(w.width)
			for j := range d {
				d[j] -= each
			}
		}
		d[w.targets[i]] -= scale * (1 - smoothing)
	}
}
