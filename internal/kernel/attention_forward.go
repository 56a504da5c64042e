package kernel

import "math"

// Forward sets out to the attention of the queries q to the keys k and values v, which have Groups heads. It sets lse,
// of B·H·T elements, to what Backward needs of each query: the log-sum-exp of its scores or, where one tile has all
// keys, the largest score. A query without a key gets −Inf, and an output of 0.
func (a *Attention[F]) Forward(cores int, q, k, v, out Rows[F], lse []F) {
	a.attentionOperands = attentionOperands[F]{cores: cores, q: q, k: k, v: v, out: out, lse: lse}
	if a.forward() {
		a.redoForward()
	}
	a.attentionOperands = attentionOperands[F]{}
}

// forward computes the output and reports whether there is a NaN in it.
func (a *Attention[F]) forward() bool {
	a.nan.Store(false)
	a.choice = dropoutOf[F](a.Dropout.P, a.Dropout.Seed, a.Dropout.Stream, a.Dropout.Run)
	work := a.heads() * a.Mask.Shape[2] * a.Mask.Shape[3] * (a.Width + a.Value)
	wake := work >= gemmWakeWork
	parallelRun(a.cores, a.forwardTasks(), (*attentionForward[F])(a), wake)
	parallelRun(a.cores, pieces(len(a.out.Data)), (*attentionCheck[F])(a), wake)
	return a.nan.Load()
}

// forwardRuns returns the number of runs of queries that a head is divided into, and how many runs make a task.
func (a *Attention[F]) forwardRuns() (runs, perTask int) {
	queries := a.Mask.Shape[2]
	runs = (queries + attentionRun - 1) / attentionRun
	work := min(queries, attentionRun) * a.Mask.Shape[3] * (a.Width + a.Value)
	return runs, max(1, attentionTaskWork/max(1, work))
}

func (a *Attention[F]) forwardTasks() int {
	runs, perTask := a.forwardRuns()
	return (a.heads()*runs + perTask - 1) / perTask
}

// attentionForward is Attention as a task that computes the output of some runs of queries.
type attentionForward[F Float] Attention[F]

func (f *attentionForward[F]) run(task int) {
	a := (*Attention[F])(f)
	runs, perTask := a.forwardRuns()
	s := attentionGet[F](attentionPitch(a.Mask.Shape[3]))
	for i := task * perTask; i < min((task+1)*perTask, a.heads()*runs); i++ {
		b, h := a.split(i % a.heads())
		first := (runs - 1 - i/a.heads()) * attentionRun // causal runs have most work at the end: they go first
		a.forwardRun(s, b, h, first, min(first+attentionRun, a.Mask.Shape[2]))
	}
	attentionPut(s)
}

// attentionPitch returns the distance between rows of a tile.
func attentionPitch(keys int) int { return min(keys, attentionKeys) + attentionGap }

// forwardRun computes the output of the queries from t0 to t1 of one head.
func (a *Attention[F]) forwardRun(s *attentionScratch[F], b, h, t0, t1 int) {
	inf := F(math.Inf(-1))
	s.most, s.sum = grown(s.most, t1-t0), grown(s.sum, t1-t0)
	for i := range s.most {
		s.most[i], s.sum[i] = inf, 0
	}
	pitch, cols, tile := attentionPitch(a.Mask.Shape[3]), s.body.tiles.cols, a.tileQueries()
	group, single := h/a.perGroup(), t1-t0 == 1
	first, end := a.Mask.span(b, t0, t1)
	s.prepare(a, b)
	for j0 := first; j0 < end; j0 += attentionKeys {
		j1 := min(j0+attentionKeys, end)
		var panel int
		if !single { // for one query packing costs more than it saves
			s.keys, panel = s.packed(s.keys, a.k.from(b, group, j0), a.k.Row, j1-j0, a.Width)
		}
		for i0 := t0; i0 < t1; i0 += tile {
			i1 := min(i0+tile, t1)
			start, lo, hi := a.seen(b, i0, i1, j0, j1, cols)
			m, n, q := i1-i0, hi-lo, a.q.from(b, h, i0)
			if n == 0 {
				if a.short() {
					s.finish(a, b, h, t0, i0, i1)
				}
				continue
			}
			if single {
				s.dots(s.scores[:n], a.Scale, q[:a.Width], a.k.from(b, group, lo), a.k.Row)
			} else {
				s.gemm(m, n, a.Width, a.Scale, q, a.q.Row, 1, s.keys[(lo-j0)*a.Width:], 0, panel, s.scores, pitch, false) // (m, K) x (n, K)ᵀ -> (m, n)
			}
			for i := range m {
				s.forwardRow(a, s.scores[i*pitch:][:n], b, h, i0+i, lo, i0+i-t0)
			}
			s.gemm(m, a.Value, n, 1, s.scores, pitch, 1, a.v.from(b, group, lo), a.v.Row, 0, a.out.from(b, h, i0), a.out.Row, start < j0) // (m, n) x (n, V) -> (m, V)
		}
	}
	if !a.short() || first == end {
		s.finish(a, b, h, t0, t0, t1)
	}
}

// dots sets element j of out to alpha·Σ x·y, for row j of y, whose rows are ld elements apart.
func (s *attentionScratch[F]) dots(out []F, alpha F, x, y []F, ld int) {
	for j := range out {
		out[j] = alpha * s.body.dot(x, y[j*ld:][:len(x)])
	}
}

// forwardRow turns a row of scores, of query t with the keys from j0 on, into the weights that the values get. The
// query is number i of its run.
func (s *attentionScratch[F]) forwardRow(a *Attention[F], scores []F, b, h, t, j0, i int) {
	from, to := s.reach.bounds(t, j0, len(scores))
	if s.changes {
		a.maskSeen(scores, nil, b, h, t, j0, from, to)
	}
	if a.short() {
		a.lse[a.row(b, h, t)] = s.softmax(scores, from, to)
	} else {
		s.onlineSoftmax(scores, from, to, a.out.from(b, h, t)[:a.Value], i)
	}
	if a.drops() {
		keep := s.keep[:to-from]
		a.fillDropout(s.body, keep, b, h, t, j0+from)
		s.body.skipMul(scores[from:to], scores[from:to], keep)
	}
}

// short reports whether one tile has all keys. Then its weights are those of the whole row, and lse holds only the
// largest score.
func (a *Attention[F]) short() bool { return a.Mask.Shape[3] <= attentionKeys }

// softmax turns the part of a row of scores that is seen into weights and the rest into zeros, and returns the largest
// score: −Inf if there is none. The zeros come last: a vector that is read just after its end was cleared is late.
func (s *attentionScratch[F]) softmax(scores []F, from, to int) (most F) {
	live := scores[from:to]
	most = s.body.softmax(live, live)
	clear(scores[:from])
	clear(scores[to:])
	if finite(most) {
		return most
	}
	if most == F(math.Inf(-1)) {
		clear(live)
		return most
	}
	for j, x := range live {
		if live[j] = 0; x != F(math.Inf(-1)) && (most != most || x == most) {
			live[j] = F(math.NaN()) // and it stays in this row
		}
	}
	return most
}

// onlineSoftmax does what softmax does with a row of one of several tiles, for query i of a run: the weights are
// relative to the query's largest score so far, and the output of the earlier tiles is scaled to that.
func (s *attentionScratch[F]) onlineSoftmax(scores []F, from, to int, out []F, i int) {
	live := scores[from:to]
	old := s.most[i]
	most := max(old, s.body.maxOf(live))
	if most == F(math.Inf(-1)) {
		clear(scores)
		return
	}
	if most != old {
		s.most[i] = most
		if s.sum[i] != 0 {
			shrink := F(math.Exp(float64(old - most)))
			s.sum[i] *= shrink
			s.body.scale(out, shrink)
		}
	}
	s.sum[i] += s.body.expShift(live, live, most)
	clearOutside(scores, from, to)
}

// clearOutside sets the elements before from, and those at to and after, to 0. In most tiles there are none.
func clearOutside[F Float](x []F, from, to int) {
	if to-from < len(x) {
		clear(x[:from])
		clear(x[to:])
	}
}

// finish divides the outputs of the queries from i0 to i1, of a run that begins at t0, by the sums of their weights.
func (s *attentionScratch[F]) finish(a *Attention[F], b, h, t0, i0, i1 int) {
	for t := i0; t < i1; t++ {
		out, row, sum := a.out.from(b, h, t)[:a.Value], a.row(b, h, t), s.sum[t-t0]
		if sum == 0 {
			clear(out)
			a.lse[row] = F(math.Inf(-1))
			continue
		}
		scale(out, 1/sum)
		a.lse[row] = s.most[t-t0] + F(math.Log(float64(sum)))
	}
}

// attentionCheck is Attention as a task that looks for NaN in the output.
type attentionCheck[F Float] Attention[F]

func (f *attentionCheck[F]) run(task int) {
	if anyNaN(piece(f.out.Data, task)) {
		f.nan.Store(true)
	}
}

// pieces returns the number of pieces in which n elements are searched for NaN.
func pieces(n int) int { return (n + grain - 1) / grain }

// piece returns piece i of x, which is empty past the last one.
func piece[F Float](x []F, i int) []F { return x[min(i*grain, len(x)):min((i+1)*grain, len(x))] }

// anyNaN reports whether there is a NaN in x: a sum of squares is NaN if, and only if, there is one.
func anyNaN[F Float](x []F) bool {
	d := dotOf(x, x)
	return d != d
}
