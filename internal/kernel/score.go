package kernel

// A ScoreFunc returns a changed score, and its derivative with respect to the score, for a head and the positions of a
// query and a key. Several goroutines may call it at once.
type ScoreFunc func(score float64, head, query, key int) (value, derivative float64)

// changeRow sets out to the changed scores of a query at position p. The keys begin at j0.
func changeRow[F Float](f ScoreFunc, out, scores []F, head, p, j0 int) {
	for i, s := range scores {
		value, _ := f(float64(s), head, p, j0+i)
		out[i] = F(value)
	}
}

// changeRowGrad sets ds to the gradients of the scores, given the gradients g of the changed scores. Where g is 0, ds
// is 0, whatever the score is.
func changeRowGrad[F Float](f ScoreFunc, ds, scores, g []F, head, p, j0 int) {
	for i, x := range g {
		if x != 0 {
			_, slope := f(float64(scores[i]), head, p, j0+i)
			x *= F(slope)
		}
		ds[i] = x
	}
}

// ChangeScores sets out to the changed scores of all queries and keys. Of the mask m, only the shape and the offsets
// count.
func ChangeScores[F Float](cores int, out, scores []F, f ScoreFunc, m Mask[F]) {
	eachScoreRow(cores, m, func(row, h, p int) {
		keys := m.Shape[3]
		changeRow(f, out[row*keys:][:keys], scores[row*keys:][:keys], h, p, 0)
	})
}

// ChangeScoresGrad sets ds to the gradient of the scores, given the gradient g of the output of ChangeScores.
func ChangeScoresGrad[F Float](cores int, ds, scores, g []F, f ScoreFunc, m Mask[F]) {
	eachScoreRow(cores, m, func(row, h, p int) {
		keys := m.Shape[3]
		changeRowGrad(f, ds[row*keys:][:keys], scores[row*keys:][:keys], g[row*keys:][:keys], h, p, 0)
	})
}

// eachScoreRow calls do for each query, with its index among all queries, its head and its position.
func eachScoreRow[F Float](cores int, m Mask[F], do func(row, h, p int)) {
	const cost = 8 // of a call per key, roughly
	rows := m.Shape[0] * m.Shape[1] * m.Shape[2]
	runRanges(cores, rows, rowsPerTask(m.Shape[3], cost), cost*rows*m.Shape[3], func(lo, hi int) {
		for row := lo; row < hi; row++ {
			b, h, t := m.query(row)
			do(row, h, m.position(b, t))
		}
	})
}
