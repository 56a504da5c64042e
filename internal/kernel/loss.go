package kernel

import "math"

// CrossEntropy sets losses[i] to −log softmax(logits)[targets[i]] and logSums[i] to the logarithm of the sum of the
// exponentials, for each row of vocab logits. A row whose target is below 0 has a loss of 0 and is not read.
func CrossEntropy[F Float](losses []F, logSums []float64, logits []F, targets []int, vocab int) {
	split(len(targets), rowsPerTask(vocab*8), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if targets[i] < 0 {
				losses[i], logSums[i] = 0, 0
				continue
			}
			row := logits[i*vocab:][:vocab]
			most := row[0]
			for _, v := range row {
				most = max(most, v)
			}
			var sum float64
			for _, v := range row {
				sum += math.Exp(float64(v - most))
			}
			logSums[i] = float64(most) + math.Log(sum) // in double precision: what counts may be small beside most
			losses[i] = F(logSums[i] - float64(row[targets[i]]))
		}
	})
}

// CrossEntropyGrad sets d to scale·(softmax(logits) − onehot(target)), row by row; a row whose target is below 0 gets 0.
// logSums are those of CrossEntropy.
func CrossEntropyGrad[F Float](d []F, logSums []float64, logits []F, targets []int, vocab int, scale F) {
	split(len(targets), rowsPerTask(vocab*8), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			d := d[i*vocab:][:vocab]
			if targets[i] < 0 {
				clear(d)
				continue
			}
			for j, v := range logits[i*vocab:][:vocab] {
				d[j] = scale * F(math.Exp(float64(v)-logSums[i]))
			}
			d[targets[i]] -= scale
		}
	})
}

// Gather copies row ids[i] of a table to row i of out.
func Gather[F Float](out, table []F, ids []int, width int) {
	for i, id := range ids {
		copy(out[i*width:][:width], table[id*width:][:width])
	}
}

// ScatterAdd adds row i of g to row ids[i] of dt.
func ScatterAdd[F Float](dt, g []F, ids []int, width int) {
	for i, id := range ids {
		to := dt[id*width:][:width]
		for j, v := range g[i*width:][:width] {
			to[j] += v
		}
	}
}
