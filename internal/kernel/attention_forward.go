package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// Forward sets out to the attention of the queries q over the keys k and values v. Keys and values have a.Groups heads.
// Forward also sets lse, which Backward needs. It has one element per query, B·H·T in all: the log-sum-exp of the
// query's scores or, if one tile holds all keys, the largest score. If a query sees no key, its element is −Inf and its
// output is 0.
func (a *Attention[F]) Forward(cores int, q, k, v, out Rows[F], lse []F) {
	a.attentionOperands = attentionOperands[F]{cores: cores, q: q, k: k, v: v, out: out, lse: lse}
	if a.forward() {
		a.redoForward()
	}
	a.attentionOperands = attentionOperands[F]{}
}

// forward computes the output and reports whether it holds NaN.
func (a *Attention[F]) forward() bool {
	a.nan.Store(false)
	a.choice = dropoutOf[F](a.Dropout.P, a.Dropout.Seed, a.Dropout.Stream, a.Dropout.Run)
	wake := a.divideForward() >= gemmWakeWork
	parallelRun(a.cores, parts(a.heads()*a.runs, a.perTask), (*attentionForward[F])(a), wake)
	parallelRun(a.cores, parts(len(a.out.Data), grain), (*attentionCheck[F])(a), wake)
	return a.nan.Load()
}

// divideForward sets runs and perTask, and returns the number of multiplications. It counts the keys that any query
// sees: the cache of a decoder may have room for many more.
func (a *Attention[F]) divideForward() (work int) {
	queries, keys := a.Mask.Shape[2], 0
	for b := range a.Mask.Shape[0] {
		first, end := a.Mask.span(b, 0, queries)
		keys = max(keys, end-first)
	}
	each := keys * (a.Width + a.Value) // per query
	if queries == 1 {
		each *= gemmRowCost
	}
	a.runs = parts(queries, attentionRun)
	a.perTask = max(1, gemmTaskWork/max(1, min(queries, attentionRun)*each))
	return a.heads() * queries * each
}

// attentionForward is the task that computes the output of some runs of queries.
type attentionForward[F Float] Attention[F]

func (f *attentionForward[F]) run(task int) {
	a := (*Attention[F])(f)
	runs, perTask := a.runs, a.perTask
	s := attentionGet[F](attentionPitch(a.Mask.Shape[3]))
	for i := task * perTask; i < min((task+1)*perTask, a.heads()*runs); i++ {
		b, h := a.split(i % a.heads())
		first := (runs - 1 - i/a.heads()) * attentionRun // with a causal mask, later runs have more work: start with them
		a.forwardRun(s, b, h, first, min(first+attentionRun, a.Mask.Shape[2]))
	}
	attentionPut(s)
}

// attentionPitch returns the distance between the rows of a tile, in elements.
func attentionPitch(keys int) int { return min(keys, attentionKeys) + attentionGap }

// forwardRun computes the output of the queries t0 to t1 of one head.
func (a *Attention[F]) forwardRun(s *attentionScratch[F], b, h, t0, t1 int) {
	seed := a.seeded(h)
	s.largest, s.sum = grown(s.largest, t1-t0), grown(s.sum, t1-t0)
	for i := range s.largest {
		s.largest[i], s.sum[i] = seed, 0
	}
	pitch, cols, tile := attentionPitch(a.Mask.Shape[3]), s.body.tiles.cols, a.tileQueries()
	group, single := h/a.perGroup(), t1-t0 == 1 && a.Distances == nil
	first, end := a.Mask.span(b, t0, t1)
	s.prepare(a, b)
	skips := a.Mask.Blocks != nil // then the first tile of a query may be hidden, and none sets the output
	if skips {
		a.out.clear(b, h, t0, t1, a.Value)
	}
	for j0 := first; j0 < end; j0 += attentionKeys {
		j1 := min(j0+attentionKeys, end)
		if !a.short() && a.Mask.hidden(b, t0, t1, j0, j1) {
			continue
		}
		var panel int
		if !single { // for one query, packing costs more than it saves
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
			if a.Distances != nil {
				s.addDistances(a, b, h, i0, lo, m, n, pitch, s.keys[(lo-j0)*a.Width:], panel)
			}
			for i := range m {
				s.forwardRow(a, s.scores[i*pitch:][:n], b, h, i0+i, lo, i0+i-t0)
			}
			s.gemm(m, a.Value, n, 1, s.scores, pitch, 1, a.v.from(b, group, lo), a.v.Row, 0, a.out.from(b, h, i0), a.out.Row, skips || start < j0) // (m, n) x (n, V) -> (m, V)
		}
	}
	if !a.short() || first == end {
		s.finish(a, b, h, t0, t0, t1)
	}
}

// dots sets element j of out to alpha times the dot product of x and row j of y. Rows of y are ld elements apart.
func (s *attentionScratch[F]) dots(out []F, alpha F, x, y []F, ld int) {
	for j := range out {
		out[j] = alpha * s.body.dot(x, y[j*ld:][:len(x)])
	}
}

// forwardRow replaces the scores of query t for the keys from j0 on with the weights of the values. The argument i is
// the query's index in its run.
func (s *attentionScratch[F]) forwardRow(a *Attention[F], scores []F, b, h, t, j0, i int) {
	from, stop := s.reach.bounds(t, j0, len(scores))
	if s.changes {
		from, stop = a.maskSeen(scores, nil, b, h, t, j0, from, stop)
	}
	if a.short() {
		a.lse[a.row(b, h, t)] = s.softmax(scores, from, stop)
	} else {
		s.onlineSoftmax(scores, from, stop, a.out.from(b, h, t)[:a.Value], i)
	}
	if a.drops() {
		keep := s.keep[:stop-from]
		a.fillDropout(s.body, keep, b, h, t, j0+from)
		s.body.skipMul(scores[from:stop], scores[from:stop], keep)
	}
}

// softmax replaces the visible scores of a row with weights, and the others with zeros. It returns the largest visible
// score, or −Inf if none is visible. It writes the zeros last, because a vector load that overlaps a recent store has
// to wait for the store.
func (s *attentionScratch[F]) softmax(scores []F, from, stop int) (largest F) {
	live := scores[from:stop]
	largest = s.body.softmax(live, live)
	clear(scores[:from])
	clear(scores[stop:])
	if !portable.Finite(largest) {
		softmaxSpecial(live, live, largest)
	}
	return largest
}

// onlineSoftmax replaces the scores of query i of a run if its keys span several tiles. The weights are relative to the
// query's largest score so far. If that grows, the output of earlier tiles is rescaled.
func (s *attentionScratch[F]) onlineSoftmax(scores []F, from, stop int, out []F, i int) {
	live := scores[from:stop]
	old := s.largest[i]
	largest := max(old, s.body.maxOf(live))
	if largest == F(math.Inf(-1)) {
		clear(scores)
		return
	}
	if largest != old {
		s.largest[i] = largest
		if s.sum[i] != 0 {
			shrink := F(math.Exp(float64(old - largest)))
			s.sum[i] *= shrink
			s.body.scale(out, shrink)
		}
	}
	s.sum[i] += s.body.expShift(live, live, largest)
	clearOutside(scores, from, stop)
}

// clearOutside sets the elements of x[:from] and x[stop:] to 0. Most tiles have no such elements.
func clearOutside[F Float](x []F, from, stop int) {
	if stop-from < len(x) {
		clear(x[:from])
		clear(x[stop:])
	}
}

// finish divides the outputs of the queries i0 to i1 by the sums of their weights. Their run begins at t0.
func (s *attentionScratch[F]) finish(a *Attention[F], b, h, t0, i0, i1 int) {
	for t := i0; t < i1; t++ {
		out, row, sum := a.out.from(b, h, t)[:a.Value], a.row(b, h, t), s.sum[t-t0]
		if sum == 0 {
			clear(out)
			a.lse[row] = F(math.Inf(-1))
			continue
		}
		if a.Sinks != nil {
			sum += F(math.Exp(float64(a.Sinks[h] - s.largest[t-t0])))
		}
		s.body.scale(out, 1/sum)
		a.lse[row] = s.largest[t-t0] + F(math.Log(float64(sum)))
	}
}

// attentionCheck is the task that searches the output for NaN.
type attentionCheck[F Float] Attention[F]

func (f *attentionCheck[F]) run(task int) {
	if anyNaN(piece(f.out.Data, task)) {
		f.nan.Store(true)
	}
}

// piece returns piece i of x, for the search for NaN, or an empty slice if x has no piece i.
func piece[F Float](x []F, i int) []F { return x[min(i*grain, len(x)):min((i+1)*grain, len(x))] }

// anyNaN reports whether x holds NaN. The sum of squares is NaN only then.
func anyNaN[F Float](x []F) bool {
	d := bodyOf[F]().dot(x, x)
	return d != d
}
