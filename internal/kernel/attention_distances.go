package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// Distances adds products with vectors of distances to the scores of attention (He et al., DeBERTa, 2021):
//
//	score(t, j) = Scale·(Q_t·K_j + Q_t·Keys[r] + K_j·Queries[r])   with r = the row of the distance p − j
//
// for a query t at position p. A tile needs only the rows of its own distances, which are few: it multiplies its
// queries and keys with all of them, and each score takes the products of its row. So nothing of size T×S or T×R is
// stored.
type Distances[F Float] struct {
	Keys    []F // (R, G·K); nil for no such products
	Queries []F // (R, H·K); nil for no such products

	// Rows has the rows of the distances −n to n, 2n+1 in all. They may not descend. Greater distances have the last
	// row of their side.
	Rows []int

	DKeys, DQueries []F // Backward sets them to the gradients of Keys and Queries
}

// row returns the row of a distance.
func (d *Distances[F]) row(distance int) int {
	n := len(d.Rows) / 2
	return d.Rows[min(max(distance, -n), n)+n]
}

// distanceScratch is the memory of one task for Distances.
type distanceScratch[F Float] struct {
	rows    []int // rows of a tile's distances, minus first, in ascending order of the distances
	panels  []F   // packed rows of Keys
	byQuery []F   // (m, count): products of a tile's queries with rows of Keys, or the gradients of these
	byKey   []F   // (count, n): products of rows of Queries with a tile's keys, or the gradients of these

	first, count int // the range of rows
}

// tileRows sets the rows of a tile's distances. The tile has the queries t0 to t0+m and the keys j0 to j0+n.
func (s *distanceScratch[F]) tileRows(a *Attention[F], b, t0, j0, m, n int) {
	least := a.Mask.position(b, t0) - (j0 + n - 1)
	s.rows = grown(s.rows, m+n-1)
	s.first = a.Distances.row(least)
	for i := range s.rows {
		s.rows[i] = a.Distances.row(least+i) - s.first
	}
	s.count = s.rows[len(s.rows)-1] + 1
	s.byQuery, s.byKey = grown(s.byQuery, m*s.count), grown(s.byKey, s.count*n)
}

// distanceKeys and distanceQueries return the vectors of a head's rows.
func (a *Attention[F]) distanceKeys(data []F) Rows[F] {
	heads := a.Mask.Shape[1] / a.perGroup()
	return Rows[F]{data, 0, a.Width, heads * a.Width}
}

func (a *Attention[F]) distanceQueries(data []F) Rows[F] {
	return Rows[F]{data, 0, a.Width, a.Mask.Shape[1] * a.Width}
}

// addDistances adds the products with the distances to s.scores, a tile of the queries t0 to t0+m and the keys j0 to
// j0+n. The keys lie in panels.
func (s *attentionScratch[F]) addDistances(a *Attention[F], b, h, t0, j0, m, n, pitch int, keys []F, panel int) {
	x, d := &s.distances, a.Distances
	x.tileRows(a, b, t0, j0, m, n)
	if d.Keys != nil {
		rows, width := a.distanceKeys(d.Keys), 0
		x.panels, width = s.packed(x.panels, rows.from(0, h/a.perGroup(), x.first), rows.Row, x.count, a.Width)
		s.gemm(m, x.count, a.Width, a.Scale, a.q.from(b, h, t0), a.q.Row, 1, x.panels, 0, width, x.byQuery, x.count, false) // (m, K) x (count, K)ᵀ -> (m, count)
		for i := range m {
			scores, rows, products := s.scores[i*pitch:][:n], x.rows[i:][:n], x.byQuery[i*x.count:][:x.count]
			for j := range scores {
				scores[j] += products[rows[n-1-j]]
			}
		}
	}
	if d.Queries != nil {
		rows := a.distanceQueries(d.Queries)
		s.gemm(x.count, n, a.Width, a.Scale, rows.from(0, h, x.first), rows.Row, 1, keys, 0, panel, x.byKey, n, false) // (count, K) x (n, K)ᵀ -> (count, n)
		for i := range m {
			scores, rows := s.scores[i*pitch:][:n], x.rows[i:][:n]
			for j := range scores {
				scores[j] += x.byKey[rows[n-1-j]*n+j]
			}
		}
	}
}

// distanceGrads adds the contributions of a tile to the gradients. s.grads holds the gradients of its scores.
func (s *attentionScratch[F]) distanceGrads(a *Attention[F], dq Rows[F], b, h, t0, j0, m, n, pitch int) {
	x, d, group := &s.distances, a.Distances, h/a.perGroup()
	x.tileRows(a, b, t0, j0, m, n)
	q, k, dk := a.q.from(b, h, t0), a.k.from(b, group, j0), a.dk.from(b, group, j0)
	if d.Keys != nil {
		clear(x.byQuery)
		for i := range m {
			grads, rows, sums := s.grads[i*pitch:][:n], x.rows[i:][:n], x.byQuery[i*x.count:][:x.count]
			for j, g := range grads {
				sums[rows[n-1-j]] += g
			}
		}
		rows, grads := a.distanceKeys(d.Keys), a.distanceKeys(a.ofSet(d.DKeys, a.spareKeys, b))
		s.gemm(m, a.Width, x.count, a.Scale, x.byQuery, x.count, 1, rows.from(0, group, x.first), rows.Row, 0, dq.from(b, h, t0), dq.Row, true) // (m, count) x (count, K) -> (m, K)
		s.gemm(x.count, a.Width, m, a.Scale, x.byQuery, 1, x.count, q, a.q.Row, 0, grads.from(0, group, x.first), grads.Row, true)              // (m, count)ᵀ x (m, K) -> (count, K)
	}
	if d.Queries != nil {
		clear(x.byKey)
		for i := range m {
			grads, rows := s.grads[i*pitch:][:n], x.rows[i:][:n]
			for j, g := range grads {
				x.byKey[rows[n-1-j]*n+j] += g
			}
		}
		rows, grads := a.distanceQueries(d.Queries), a.distanceQueries(a.ofSet(d.DQueries, a.spareQueries, b))
		s.gemm(n, a.Width, x.count, a.Scale, x.byKey, 1, n, rows.from(0, h, x.first), rows.Row, 0, dk, a.dk.Row, true) // (count, n)ᵀ x (count, K) -> (n, K)
		s.gemm(x.count, a.Width, n, a.Scale, x.byKey, n, 1, k, a.k.Row, 0, grads.from(0, h, x.first), grads.Row, true) // (count, n) x (n, K) -> (count, K)
	}
}

// divideDistances divides the work of the backward pass with Distances. All batch elements add to the same gradients,
// so a set has the heads of a group in some batch elements. If there are few groups, there are several sets per group,
// each with its own gradients.
func (a *Attention[F]) divideDistances(enough int) {
	d, batch := a.Distances, a.Mask.Shape[0]
	groups := a.Mask.Shape[1] / a.perGroup()
	copies := min(parts(enough, groups), batch)
	for batch%copies != 0 {
		copies--
	}
	if a.shared > a.perGroup() { // heads share a gradient of the bias: one task has all
		copies, groups = 1, 1
	}
	a.batches = batch / copies
	a.shared = a.heads() / (copies * groups)
	clear(d.DKeys)
	clear(d.DQueries)
	a.spareKeys, a.spareQueries = grown(a.spareKeys, (copies-1)*len(d.DKeys)), grown(a.spareQueries, (copies-1)*len(d.DQueries))
	clear(a.spareKeys)
	clear(a.spareQueries)
}

// ofSet returns the gradient to which batch element b adds: total for the first set, and a part of spare for the
// others.
func (a *Attention[F]) ofSet(total, spare []F, b int) []F {
	if set := b / a.batches; set > 0 {
		return spare[(set-1)*len(total):][:len(total)]
	}
	return total
}

// sumDistances adds a piece of the gradients of all sets, in order, and reports whether the sums hold NaN.
func (a *Attention[F]) sumDistances(task int) bool {
	sum := func(total, spare []F) bool {
		sums := piece(total, task)
		for ; len(spare) > 0; spare = spare[len(total):] {
			Axpy(sums, 1, piece(spare[:len(total)], task))
		}
		return anyNaN(sums)
	}
	keys, queries := sum(a.Distances.DKeys, a.spareKeys), sum(a.Distances.DQueries, a.spareQueries)
	return keys || queries
}

// cleaned returns a copy with 0 in place of NaN and infinities.
func (d *Distances[F]) cleaned() *Distances[F] {
	if d == nil {
		return nil
	}
	c := *d
	for _, x := range []*[]F{&c.Keys, &c.Queries} {
		if *x != nil {
			*x = portable.Cleaned(*x)
		}
	}
	return &c
}

// atDistance returns the vectors of query t's distance to key j, and their gradients, which may be nil in the forward
// pass. The vectors key and query are nil if there are no such products.
func (a *Attention[F]) atDistance(b, h, t, j int) (key, query, dkey, dquery []F) {
	d := a.Distances
	r := d.row(a.Mask.position(b, t) - j)
	if d.Keys != nil {
		key = a.distanceKeys(d.Keys).from(0, h/a.perGroup(), r)[:a.Width]
	}
	if d.Queries != nil {
		query = a.distanceQueries(d.Queries).from(0, h, r)[:a.Width]
	}
	if d.DKeys != nil {
		dkey = a.distanceKeys(d.DKeys).from(0, h/a.perGroup(), r)[:a.Width]
	}
	if d.DQueries != nil {
		dquery = a.distanceQueries(d.DQueries).from(0, h, r)[:a.Width]
	}
	return key, query, dkey, dquery
}

// distanceScore returns what the distance of query t to key j adds to their score.
func (a *Attention[F]) distanceScore(b, h, t, j int) (score F) {
	key, query, _, _ := a.atDistance(b, h, t, j)
	if key != nil {
		score = portable.Dot(a.q.from(b, h, t)[:a.Width], key)
	}
	if query != nil {
		score += portable.Dot(a.k.from(b, h/a.perGroup(), j)[:a.Width], query)
	}
	return a.Scale * score
}

// distanceGrad adds the contributions of one score to the gradients, where g is the gradient of the score.
func (a *Attention[F]) distanceGrad(b, h, t, j int, g F) {
	key, query, dkey, dquery := a.atDistance(b, h, t, j)
	group := h / a.perGroup()
	if g *= a.Scale; key != nil {
		portable.SkipAxpy(a.dq.from(b, h, t)[:a.Width], g, key)
		portable.SkipAxpy(dkey, g, a.q.from(b, h, t))
	}
	if query != nil {
		portable.SkipAxpy(a.dk.from(b, group, j)[:a.Width], g, query)
		portable.SkipAxpy(dquery, g, a.k.from(b, group, j))
	}
}

// badDistance reports whether a vector of query t's distance to key j holds NaN or infinity.
func (a *Attention[F]) badDistance(b, h, t, j int) bool {
	if a.Distances == nil {
		return false
	}
	key, query, _, _ := a.atDistance(b, h, t, j)
	return !portable.AllFinite(key) || !portable.AllFinite(query)
}

// DistanceScores sets scores, of shape (B, H, T, S), to the sum of their products with the distances. A caller that
// composes attention from separate ops adds them to the other scores.
func (a *Attention[F]) DistanceScores(cores int, q, k Rows[F], scores []F) {
	a.attentionOperands = attentionOperands[F]{q: q, k: k}
	keys := a.Mask.Shape[3]
	runRanges(cores, len(scores)/keys, rowsPerTask(keys, 4*a.Width), 4*a.Width*len(scores), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			b, h, t := a.Mask.query(r)
			for j := range keys {
				scores[r*keys+j] = a.distanceScore(b, h, t, j)
			}
		}
	})
	a.attentionOperands = attentionOperands[F]{}
}

// DistanceScoresGrad sets dq, dk, Distances.DKeys and Distances.DQueries to the gradients of DistanceScores, given g,
// the gradient of the scores. Where g is 0, products with NaN are 0.
func (a *Attention[F]) DistanceScoresGrad(cores int, q, k Rows[F], g []F, dq, dk Rows[F]) {
	a.attentionOperands = attentionOperands[F]{q: q, k: k, dq: dq, dk: dk}
	for _, x := range [][]F{dq.Data, dk.Data, a.Distances.DKeys, a.Distances.DQueries} {
		clear(x)
	}
	shape, perGroup := a.Mask.Shape, a.perGroup()
	runRanges(cores, shape[1]/perGroup, 1, 8*a.Width*len(g), func(lo, hi int) { // a group's gradients belong to one task
		for h := lo * perGroup; h < hi*perGroup; h++ {
			for b := range shape[0] {
				for t := range shape[2] {
					for j, g := range g[a.row(b, h, t)*shape[3]:][:shape[3]] {
						if g != 0 {
							a.distanceGrad(b, h, t, j, g)
						}
					}
				}
			}
		}
	})
	a.attentionOperands = attentionOperands[F]{}
}
