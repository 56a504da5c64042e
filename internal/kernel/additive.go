package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// AdditiveShape holds the sizes of the axes. Scores have shape (Batch, Queries, Keys), queries (Batch, Queries, Width)
// and keys (Batch, Keys, Width).
type AdditiveShape struct {
	Batch, Queries, Keys, Width int
}

// cost returns the cost of all scores, where an addition costs 1.
func (s AdditiveShape) cost() int { return s.Batch * s.Queries * s.Keys * s.Width * softcapCost }

// additiveTile is roughly the number of tanh results that a task computes at once. They fit into the cache.
const additiveTile = 4096

// AdditiveScores sets the score of each query and each key of its batch element to Σ v[f]·tanh(q[f] + k[f]), summed
// over the features f. If v is nil, all its elements are 1.
func AdditiveScores[F Float](cores int, scores, q, k, v []F, s AdditiveShape) {
	keys, width := s.Keys, s.Width
	runRanges(cores, s.Batch*s.Queries, rowsPerTask(keys*width, softcapCost), s.cost(), func(lo, hi int) {
		body := bodyOf[F]()
		scratch := take[additiveScratch[F]](&body.additive)
		defer body.additive.Put(scratch)
		tile := max(1, additiveTile/width) // number of keys
		scratch.fit(min(tile, keys)*width, width)
		v := v
		if v == nil {
			v = scratch.ones[:width]
		}
		for r := lo; r < hi; r++ {
			q, k := q[r*width:][:width], k[r/s.Queries*keys*width:][:keys*width]
			scores := scores[r*keys:][:keys]
			for len(scores) > 0 {
				n := min(tile, len(scores))
				t := scratch.tanh[:n*width]
				copy(t, k)
				body.addRow(t, q, n)
				body.softcap(t, t, 1) // tanh
				for j := range n {
					scores[j] = body.dot(t[j*width:][:width], v)
				}
				scores, k = scores[n:], k[n*width:]
			}
		}
	})
}

// AdditiveWork returns the length that AdditiveScoresGrad's argument work must have if v isn't nil.
func AdditiveWork(s AdditiveShape) int { return s.Batch * s.Width }

// AdditiveScoresGrad sets dq, dk and dv to the gradients of AdditiveScores, where g is the gradient of the scores. If v
// is nil, dv and work may be nil. If the gradient of a score is 0, the score adds nothing, even if its query or key
// holds NaN.
//
// Each task handles some of the features. A feature needs only its own columns of q and k. So every sum is added up by
// one task, always in the same order.
func AdditiveScoresGrad[F Float](cores int, dq, dk, dv, q, k, v, g []F, s AdditiveShape, work []F) {
	blocks := parts(s.Width, additiveFeatures) // number of blocks of features per batch element
	step := max(1, grain/max(s.Queries*s.Keys*additiveFeatures*softcapCost, 1))
	runRanges(cores, s.Batch*blocks, step, 2*s.cost(), func(lo, hi int) {
		body := bodyOf[F]()
		scratch := take[additiveScratch[F]](&body.additive)
		defer body.additive.Put(scratch)
		for i := lo; i < hi; i++ {
			b, f := i/blocks, i%blocks*additiveFeatures
			scratch.features = min(additiveFeatures, s.Width-f)
			queries, keys := b*s.Queries*s.Width+f, b*s.Keys*s.Width+f // where the features' columns begin
			var vf, dvf []F
			if v != nil {
				vf, dvf = v[f:], work[b*s.Width+f:]
			}
			scratch.gradient(dq[queries:], dk[keys:], dvf, q[queries:], k[keys:], vf, g[b*s.Queries*s.Keys:], s)
		}
	})
	if v != nil {
		SumRows(cores, dv[:s.Width], work[:AdditiveWork(s)])
	}
}

// additiveFeatures is the number of adjacent features in a block, which are read and written together.
const additiveFeatures = 8

// additiveScratch is the memory of one task.
type additiveScratch[F Float] struct {
	tanh, grad []F // one tile each
	ones       []F
	features   int
	key, dkey  []F // shape (features, keys)
	sum        []F // shape (keys)
}

// fit gives c.tanh the length tile, and c.ones at least the length ones.
func (c *additiveScratch[F]) fit(tile, ones int) {
	c.tanh = grown(c.tanh, tile)
	for len(c.ones) < ones {
		c.ones = append(c.ones, 1)
	}
}

// gradient computes the gradients of c.features adjacent features of one batch element. Each slice begins at the first
// of these features. If v is nil, all its elements are 1 and dv is unused.
func (c *additiveScratch[F]) gradient(dq, dk, dv, q, k, v, g []F, s AdditiveShape) {
	c.key, c.dkey = grown(c.key, c.features*s.Keys), grown(c.dkey, c.features*s.Keys)
	for j := range s.Keys {
		for f, x := range k[j*s.Width:][:c.features] {
			c.key[f*s.Keys+j] = x
		}
	}
	for f := range c.features {
		key, dkey := c.key[f*s.Keys:][:s.Keys], c.dkey[f*s.Keys:][:s.Keys]
		if v == nil {
			c.feature(dq[f:], dkey, q[f:], key, 1, g, s, false)
		} else {
			dv[f] = c.feature(dq[f:], dkey, q[f:], key, v[f], g, s, true)
		}
	}
	for j := range s.Keys {
		row := dk[j*s.Width:][:c.features]
		for f := range row {
			row[f] = c.dkey[f*s.Keys+j]
		}
	}
}

// feature computes the gradients of one feature. If wantV is true, it returns the gradient of v. The feature's elements
// of dq and q are s.Width apart. With t = tanh(q + k) and d = g·(1 − t²): dq = v·Σ d over the keys, dk = v·Σ d over the
// queries and dv = Σ g·t over both.
func (c *additiveScratch[F]) feature(dq, dkey, q, key []F, v F, g []F, s AdditiveShape, wantV bool) (dv F) {
	body, keys := bodyOf[F](), s.Keys
	tile := min(max(1, additiveTile/keys), s.Queries) // number of queries
	c.fit(tile*keys, tile*keys)
	c.grad, c.sum = grown(c.grad, tile*keys), grown(c.sum, keys)
	clear(dkey)
	for i := 0; i < s.Queries; i += tile {
		n := min(tile, s.Queries-i)
		g, t, d, ones := g[i*keys:][:n*keys], c.tanh[:n*keys], c.grad[:n*keys], c.ones[:n*keys]
		for r := range n {
			row := t[r*keys:][:keys]
			copy(row, key)
			body.axpy(row, ones[:keys], q[(i+r)*s.Width])
		}
		body.softcap(t, t, 1) // tanh
		if wantV {
			body.skipMul(d, t, g)
			dv += body.dot(d, ones)
		}
		body.softcapGrad(d, t, g, 1)
		for r := range n {
			row := d[r*keys:][:keys]
			dq[(i+r)*s.Width] = portable.SkipProduct(v, body.dot(row, ones[:keys]))
		}
		body.sumRows(c.sum, d, n, keys)
		body.add(dkey, dkey, c.sum)
	}
	for j, x := range dkey {
		dkey[j] = portable.SkipProduct(v, x)
	}
	return dv
}
