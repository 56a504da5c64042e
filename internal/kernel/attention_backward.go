package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// Backward sets dq, dk and dv to the gradients of q, k and v, given dout, the gradient of the output, and the results
// out and lse of Forward. If dbias isn't nil, Backward sets it to the gradient of the mask's bias; it has the bias's
// shape.
func (a *Attention[F]) Backward(cores int, q, k, v, out, dout Rows[F], lse []F, dq, dk, dv Rows[F], dbias []F) {
	a.attentionOperands = attentionOperands[F]{cores: cores, q: q, k: k, v: v, out: out, dout: dout, lse: lse, dq: dq, dk: dk, dv: dv, dbias: dbias}
	if a.backward() {
		a.redoBackward()
	}
	a.attentionOperands = attentionOperands[F]{}
}

// backward computes the gradients and reports whether one of them holds NaN.
func (a *Attention[F]) backward() bool {
	a.nan.Store(false)
	a.choice = dropoutOf[F](a.Dropout.P, a.Dropout.Seed, a.Dropout.Stream, a.Dropout.Run)
	a.divideBackward()
	a.less, a.shift = grown(a.less, len(a.lse)), grown(a.shift, len(a.lse))
	if a.parts > 1 {
		a.spare = grown(a.spare, (a.parts-1)*len(a.dq.Data))
	}
	clear(a.dbias)
	work := 5 * a.heads() * a.Mask.Shape[2] * a.Mask.Shape[3] * a.Width
	wake := work >= gemmWakeWork
	sets, perTask := a.backwardSets()
	if !a.short() {
		parallelRun(a.cores, parts(sets, perTask), (*attentionRows[F])(a), wake)
		a.sumSinks()
	}
	parallelRun(a.cores, parts(sets*a.parts, perTask), (*attentionBackward[F])(a), wake)
	longest := max(len(a.dq.Data), len(a.dk.Data), len(a.dv.Data))
	if d := a.Distances; d != nil {
		longest = max(longest, len(d.DKeys), len(d.DQueries))
	}
	parallelRun(a.cores, parts(longest, grain), (*attentionSum[F])(a), wake)
	return a.nan.Load() || anyNaN(a.dbias) || anyNaN(a.SinkGrads)
}

// divideBackward divides the work in a way that depends only on the shapes. If heads share a gradient, they form a set:
// one task adds up their contributions, in order. If there are few sets, divideBackward also divides the keys into
// parts, each with its own dQ.
func (a *Attention[F]) divideBackward() {
	a.shared = a.perGroup()
	if a.dbias != nil {
		switch shape, bias := a.Mask.Shape, a.Mask.BiasShape; {
		case bias[0] < shape[0]:
			a.shared = a.heads()
		case bias[1] < shape[1]:
			a.shared = shape[1]
		}
	}
	const enough = 8 // tasks
	sets := a.heads() / a.shared
	a.parts = min(parts(enough, sets), max(2, enough/a.heads()), parts(a.Mask.Shape[3], attentionKeys))
	if sets >= enough {
		a.parts = 1
	}
	if a.Distances != nil {
		a.parts = 1
		a.divideDistances(enough)
	}
}

// backwardSets returns the number of sets of heads, and how many sets, or parts of sets, form a task.
func (a *Attention[F]) backwardSets() (sets, perTask int) {
	work := a.shared * a.Mask.Shape[2] * a.Mask.Shape[3] * a.Width * 2
	return a.heads() / a.shared, max(1, gemmTaskWork/max(1, work))
}

// setsOf returns the range of sets, or parts of sets, of one task.
func (a *Attention[F]) setsOf(task, total int) (lo, hi int) {
	_, perTask := a.backwardSets()
	return task * perTask, min((task+1)*perTask, total)
}

// attentionRows is the task that sets shift and less of each query.
type attentionRows[F Float] Attention[F]

func (r *attentionRows[F]) run(task int) {
	a := (*Attention[F])(r)
	lo, hi := a.setsOf(task, a.heads()/a.shared)
	for head := lo * a.shared; head < hi*a.shared; head++ {
		b, h := a.split(head)
		for t := range a.Mask.Shape[2] {
			row := a.row(b, h, t)
			if a.shift[row] = a.lse[row]; a.passedOver(b, h, t) {
				a.shift[row] = F(math.Inf(-1))
			} else {
				a.less[row] = bodyOf[F]().dot(a.dout.from(b, h, t)[:a.Value], a.out.from(b, h, t)[:a.Value])
			}
		}
	}
}

// passedOver reports whether the backward pass ignores a query: it sees no key, or the gradient of its output is zero,
// or redoBackward handles it.
func (a *Attention[F]) passedOver(b, h, t int) bool {
	row := a.row(b, h, t)
	return a.lse[row] == F(math.Inf(-1)) || a.dead != nil && a.dead[row] || portable.AllZero(a.dout.from(b, h, t)[:a.Value])
}

// attentionBackward is the task that computes the gradients for one part of the keys and some sets of heads.
type attentionBackward[F Float] Attention[F]

func (f *attentionBackward[F]) run(task int) {
	a := (*Attention[F])(f)
	s := attentionGet[F](attentionPitch(a.Mask.Shape[3]))
	s.grads, s.capped = grown(s.grads, len(s.scores)), grown(s.capped, len(s.scores))
	sets := a.heads() / a.shared
	lo, hi := a.setsOf(task, sets*a.parts)
	for i := lo; i < hi; i++ {
		set, part := i%sets, i/sets
		dq := a.dq
		if part > 0 {
			dq.Data = a.spare[(part-1)*len(dq.Data):][:len(dq.Data)]
		}
		for i := range a.shared / a.perGroup() {
			b, group := a.member(set, i)
			for j0 := part * attentionKeys; j0 < a.Mask.Shape[3]; j0 += a.parts * attentionKeys {
				a.backwardKeys(s, dq, b, group, j0, min(j0+attentionKeys, a.Mask.Shape[3]), j0 == part*attentionKeys)
			}
		}
	}
	attentionPut(s)
}

// member returns the batch element and the group of one of the groups of heads in a set.
func (a *Attention[F]) member(set, i int) (b, group int) {
	groups := a.Mask.Shape[1] / a.perGroup()
	if a.Distances != nil && a.shared < a.heads() { // a set has one group in several batch elements
		return set/groups*a.batches + i, set % groups
	}
	i += set * a.shared / a.perGroup()
	return i / groups, i % groups
}

// backwardKeys computes dK and dV of the keys j0 to j1 of one group, and adds their contribution to dQ of the group's
// query heads. If first is true, it sets dQ instead.
func (a *Attention[F]) backwardKeys(s *attentionScratch[F], dq Rows[F], b, group, j0, j1 int, first bool) {
	queries, tile, perGroup := a.Mask.Shape[2], a.tileQueries(), a.perGroup()
	t0, t1 := a.Mask.queries(b, j0, j1)
	if first {
		t0, t1 = 0, queries
	}
	_, end := a.Mask.span(b, 0, queries)
	s.prepare(a, b)
	var keyPanel, valuePanel int
	if columns := min(j1, end) - j0; columns > 0 && t0 < t1 && !a.Mask.hidden(b, t0, t1, j0, j1) {
		s.keys, keyPanel = s.packed(s.keys, a.k.from(b, group, j0), a.k.Row, columns, a.Width)
		s.values, valuePanel = s.packed(s.values, a.v.from(b, group, j0), a.v.Row, columns, a.Value)
	}
	fresh := true // dK and dV of these keys aren't set yet
	for h := group * perGroup; h < (group+1)*perGroup; h++ {
		for i0 := t0 - t0%tile; i0 < t1; i0 += tile {
			i1 := min(i0+tile, queries)
			_, lo, hi := a.seen(b, i0, i1, j0, j1, s.body.tiles.cols)
			m, n := i1-i0, hi-lo
			if n == 0 {
				if first {
					dq.clear(b, h, i0, i1, a.Width)
				}
				continue
			}
			if fresh {
				a.clearKeys(b, group, j0, lo)
				a.clearKeys(b, group, hi, j1)
			}
			pitch, q, g := attentionPitch(a.Mask.Shape[3]), a.q.from(b, h, i0), a.dout.from(b, h, i0)
			s.gemm(m, n, a.Width, a.Scale, q, a.q.Row, 1, s.keys[(lo-j0)*a.Width:], 0, keyPanel, s.scores, pitch, false) // (m, K) x (n, K)ᵀ -> (m, n)
			if a.Distances != nil {
				s.addDistances(a, b, h, i0, lo, m, n, pitch, s.keys[(lo-j0)*a.Width:], keyPanel)
			}
			s.gemm(m, n, a.Value, 1, g, a.dout.Row, 1, s.values[(lo-j0)*a.Value:], 0, valuePanel, s.grads, pitch, false) // (m, V) x (n, V)ᵀ -> (m, n)
			s.scoreGrads(a, b, h, i0, lo, m, n, pitch)
			s.gemm(n, a.Value, m, 1, s.scores, 1, pitch, g, a.dout.Row, 0, a.dv.from(b, group, lo), a.dv.Row, !fresh)                // (m, n)ᵀ x (m, V) -> (n, V)
			s.gemm(n, a.Width, m, a.Scale, s.grads, 1, pitch, q, a.q.Row, 0, a.dk.from(b, group, lo), a.dk.Row, !fresh)              // (m, n)ᵀ x (m, K) -> (n, K)
			s.gemm(m, a.Width, n, a.Scale, s.grads, pitch, 1, a.k.from(b, group, lo), a.k.Row, 0, dq.from(b, h, i0), dq.Row, !first) // (m, n) x (n, K) -> (m, K)
			if a.Distances != nil {
				s.distanceGrads(a, dq, b, h, i0, lo, m, n, pitch)
			}
			fresh = false
		}
	}
	if fresh {
		a.clearKeys(b, group, j0, j1)
	}
}

// clear sets the vectors t0 to t1 of one head to 0.
func (r Rows[F]) clear(b, h, t0, t1, width int) {
	for t := t0; t < t1; t++ {
		clear(r.from(b, h, t)[:width])
	}
}

// clearKeys sets the gradients of the keys j0 to j1, and of their values, to 0.
func (a *Attention[F]) clearKeys(b, group, j0, j1 int) {
	a.dk.clear(b, group, j0, j1, a.Width)
	a.dv.clear(b, group, j0, j1, a.Value)
}

// scoreGrads replaces s.scores, a tile of scores, with the weights of the values. It replaces s.grads, the gradients of
// these weights, with the gradients of the scores.
func (s *attentionScratch[F]) scoreGrads(a *Attention[F], b, h, i0, j0, m, n, pitch int) {
	size := m * pitch // including the gap between rows
	if a.drops() {
		for i := range m {
			a.fillDropout(s.body, s.keep[i*pitch:][:n], b, h, i0+i, j0)
		}
		s.body.skipMul(s.grads[:size], s.grads[:size], s.keep[:size])
	}
	if a.short() {
		for i := range m {
			scores := s.scores[i*pitch:][:pitch]
			if a.passedOver(b, h, i0+i) {
				clear(scores)
			} else {
				from, stop := s.reach.bounds(i0+i, j0, n)
				if s.changes {
					from, stop = a.maskSeen(scores, s.capped[i*pitch:], b, h, i0+i, j0, from, stop)
				}
				s.softmax(scores, from, stop) // also sets the gap to 0
			}
		}
		s.body.softmaxGrad(s.grads[:size], s.scores[:size], s.grads[:size], pitch)
	} else {
		for i := range m {
			s.scoreRow(a, s.scores[i*pitch:][:n], s.grads[i*pitch:][:n], s.capped[i*pitch:], b, h, i0+i, j0)
		}
	}
	if a.drops() {
		s.body.skipMul(s.scores[:size], s.scores[:size], s.keep[:size])
	}
	if a.dbias == nil && a.Softcap <= 0 && a.Score == nil {
		return
	}
	for i := range m {
		grads := s.grads[i*pitch:][:n]
		if a.dbias != nil {
			Axpy(a.dbias[broadcastRow(a.Mask.BiasShape, b, h, i0+i)+j0:], 1, grads)
		}
		if a.Score != nil {
			changeRowGrad(a.Score, grads, s.capped[i*pitch:][:n], grads, h, a.Mask.position(b, i0+i), j0)
		}
		if a.Softcap > 0 {
			s.body.softcapGrad(grads, s.capped[i*pitch:][:n], grads, a.Softcap)
		}
	}
}

// scoreRow does the work of scoreGrads for one query whose keys span several tiles, except for dropout, bias and cap.
func (s *attentionScratch[F]) scoreRow(a *Attention[F], scores, grads, capped []F, b, h, t, j0 int) {
	row := a.row(b, h, t)
	shift, less := a.shift[row], a.less[row]
	if shift == F(math.Inf(-1)) {
		clear(scores)
		clear(grads)
		return
	}
	from, stop := s.reach.bounds(t, j0, len(scores))
	if s.changes {
		from, stop = a.maskSeen(scores, capped, b, h, t, j0, from, stop)
	}
	p, g := scores[from:stop], grads[from:stop]
	s.body.expShift(p, p, shift)
	var tiny F // Smaller weights become 0: products with subnormal numbers are slow, and slopes cause many of them.
	if portable.Is32[F]() {
		tiny = 0x1p-100
	}
	s.body.scoreGrad(g, p, less, tiny) // sets g to 0 where p is 0, as masked values may be NaN
	clearOutside(scores, from, stop)
	clearOutside(grads, from, stop)
}

// attentionSum is the task that adds the parts of dQ and of the distances' gradients, in order, and searches the
// gradients for NaN.
type attentionSum[F Float] Attention[F]

func (f *attentionSum[F]) run(task int) {
	a := (*Attention[F])(f)
	if lo := task * grain; lo < len(a.dq.Data) {
		dq := piece(a.dq.Data, task)
		for part := 1; part < a.parts; part++ {
			Axpy(dq, 1, a.spare[(part-1)*len(a.dq.Data)+lo:][:len(dq)])
		}
	}
	if a.Distances != nil && a.sumDistances(task) {
		a.nan.Store(true)
	}
	if anyNaN(piece(a.dq.Data, task)) || anyNaN(piece(a.dk.Data, task)) || anyNaN(piece(a.dv.Data, task)) {
		a.nan.Store(true)
	}
}
