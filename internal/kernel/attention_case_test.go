package kernel

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// attentionCase holds operands and results of attention.
type attentionCase[F Float] struct {
	cores                          int
	a                              *Attention[F]
	q, k, v, out, dout, dq, dk, dv Rows[F]
	lse, dbias, dsinks             []F
}

// newAttentionCase makes random operands.
func newAttentionCase[F Float](seed uint64, shape [4]int, width, value int, side bool) *attentionCase[F] {
	return newGroupedCase[F](seed, shape, 0, width, value, side)
}

// newGroupedCase makes random operands. The argument groups is the number of heads of keys and values.
func newGroupedCase[F Float](seed uint64, shape [4]int, groups, width, value int, side bool) *attentionCase[F] {
	b, h, t, s := shape[0], shape[1], shape[2], shape[3]
	g := groups
	if g == 0 {
		g = h
	}
	rows := func(i uint64, heads, length, width int) Rows[F] {
		data := normals[F](seed+i, b*heads*length*width)
		if side {
			return SideRows(data, heads, length, width)
		}
		return HeadRows(data, heads, length, width)
	}
	return &attentionCase[F]{
		a: &Attention[F]{Mask: Mask[F]{Shape: shape}, Groups: groups, Width: width, Value: value, Scale: F(1 / math.Sqrt(float64(width)))},
		q: rows(1, h, t, width), k: rows(2, g, s, width), v: rows(3, g, s, value), out: rows(4, h, t, value), dout: rows(5, h, t, value),
		dq: rows(6, h, t, width), dk: rows(7, g, s, width), dv: rows(8, g, s, value), lse: make([]F, b*h*t),
	}
}

func (c *attentionCase[F]) run() {
	c.a.Forward(c.cores, c.q, c.k, c.v, c.out, c.lse)
	c.a.Backward(c.cores, c.q, c.k, c.v, c.out, c.dout, c.lse, c.dq, c.dk, c.dv, c.dbias)
}

func (c *attentionCase[F]) results() [][]F {
	results := [][]F{c.out.Data, c.dq.Data, c.dk.Data, c.dv.Data, c.dbias, c.dsinks}
	if d := c.a.Distances; d != nil {
		results = append(results, d.DKeys, d.DQueries)
	}
	return results
}

// naive computes the results from the formulas, query by query. Zero times NaN or infinity is zero.
func (c *attentionCase[F]) naive() [][]F {
	n := *c
	for _, r := range []*Rows[F]{&n.out, &n.dq, &n.dk, &n.dv} {
		r.Data = make([]F, len(r.Data))
	}
	n.dbias, n.dsinks = make([]F, len(c.dbias)), make([]F, len(c.dsinks))
	if d := c.a.Distances; d != nil {
		keys, queries := d.DKeys, d.DQueries
		d.DKeys, d.DQueries = make([]F, len(keys)), make([]F, len(queries))
		defer func() { d.DKeys, d.DQueries = keys, queries }()
	}
	shape, d := c.a.Mask.Shape, c.a.Dropout
	keep := make([]F, product4(shape))
	for i := range keep {
		keep[i] = 1
	}
	if d.P > 0 {
		DropoutMask(0, keep, d.P, d.Seed, d.Stream, d.Run)
	}
	for b := range shape[0] {
		for h := range shape[1] {
			for t := range shape[2] {
				n.naiveQuery(b, h, t, keep[((b*shape[1]+h)*shape[2]+t)*shape[3]:][:shape[3]])
			}
		}
	}
	return n.results()
}

// naiveQuery sets the output of one query and adds its contributions to the gradients.
func (c *attentionCase[F]) naiveQuery(b, h, t int, keep []F) {
	a, m := c.a, &c.a.Mask
	group := h
	if a.Groups > 0 {
		group = h * a.Groups / m.Shape[1]
	}
	q, dout := c.q.from(b, h, t)[:a.Width], c.dout.from(b, h, t)[:a.Value]
	slope, scores, w, g := make([]F, len(keep)), make([]F, len(keep)), make([]F, len(keep)), make([]F, len(keep))
	inf := F(math.Inf(1))
	largest, sum := -inf, F(0)
	for j := range scores {
		s := portable.Dot(q, c.k.from(b, group, j)[:a.Width])
		key, query, _, _ := c.atDistance(b, h, t, j)
		s += portable.Dot(q[:len(key)], key) + portable.Dot(c.k.from(b, group, j)[:len(query)], query)
		s *= a.Scale
		slope[j] = 1
		if a.Softcap > 0 {
			s = F(math.Tanh(float64(s / a.Softcap)))
			slope[j] = 1 - s*s
			s *= a.Softcap
		}
		if a.Score != nil {
			value, d := a.Score(float64(s), h, m.position(b, t), j)
			s, slope[j] = F(value), slope[j]*F(d)
		}
		scores[j] = m.naive(s, b, h, t, j)
		if scores[j] > largest || scores[j] != scores[j] { // NaN replaces the maximum and stays
			largest = scores[j]
		}
	}
	if a.Sinks != nil && largest != -inf {
		if s := a.Sinks[h]; s > largest || s != s {
			largest = s
		}
		sum = F(math.Exp(float64(a.Sinks[h] - largest)))
	}
	sink := sum
	for j, s := range scores {
		if s != -inf {
			w[j] = F(math.Exp(float64(s - largest)))
			sum += w[j]
		}
	}
	var less F
	for j := range w {
		if w[j] != 0 {
			w[j] /= sum
		}
		g[j] = portable.SkipProduct(portable.SkipDot(dout, c.v.from(b, group, j)), keep[j])
		portable.SkipAxpy(c.out.from(b, h, t)[:a.Value], portable.SkipProduct(w[j], keep[j]), c.v.from(b, group, j))
		portable.SkipAxpy(c.dv.from(b, group, j)[:a.Value], portable.SkipProduct(w[j], keep[j]), dout)
		less += portable.SkipProduct(w[j], g[j])
	}
	if len(c.dsinks) > 0 && largest != -inf && !portable.AllZero(dout) {
		c.dsinks[h] -= portable.SkipProduct(sink/sum, less)
	}
	for j, p := range w {
		d := portable.SkipProduct(p, g[j]-less)
		if d == 0 {
			continue
		}
		if len(c.dbias) > 0 {
			c.dbias[broadcastRow(m.BiasShape, b, h, t)+j] += d
		}
		d *= slope[j]
		portable.SkipAxpy(c.dq.from(b, h, t)[:a.Width], d*a.Scale, c.k.from(b, group, j))
		portable.SkipAxpy(c.dk.from(b, group, j)[:a.Width], d*a.Scale, q)
		key, query, dkey, dquery := c.atDistance(b, h, t, j)
		portable.SkipAxpy(c.dq.from(b, h, t)[:len(key)], d*a.Scale, key)
		portable.SkipAxpy(dkey, d*a.Scale, q[:len(dkey)])
		portable.SkipAxpy(c.dk.from(b, group, j)[:len(query)], d*a.Scale, query)
		portable.SkipAxpy(dquery, d*a.Scale, c.k.from(b, group, j)[:len(dquery)])
	}
}

var attentionResults = []string{"output", "dQ", "dK", "dV", "dbias", "dsinks", "the gradient of the distances' keys", "the gradient of the distances' queries"}

// atDistance returns the vectors of a query's distance to a key, and their gradients; empty ones if there are none.
func (c *attentionCase[F]) atDistance(b, h, t, j int) (key, query, dkey, dquery []F) {
	d, m, width := c.a.Distances, &c.a.Mask, c.a.Width
	if d == nil {
		return nil, nil, nil, nil
	}
	n := len(d.Rows) / 2
	r := d.Rows[n+min(max(m.position(b, t)-j, -n), n)]
	groups := cmp.Or(c.a.Groups, m.Shape[1])
	row := func(x []F, heads, h int) []F {
		if len(x) == 0 {
			return nil
		}
		return x[(r*heads+h)*width:][:width]
	}
	group := h * groups / m.Shape[1]
	return row(d.Keys, groups, group), row(d.Queries, m.Shape[1], h), row(d.DKeys, groups, group), row(d.DQueries, m.Shape[1], h)
}

// distances adds random products with distances. The argument kinds is 1 for Keys, 2 for Queries, and 3 for both. The
// argument far is the largest distance with a row of its own.
func (c *attentionCase[F]) distances(r *rand.Rand, kinds, far int) {
	d, shape, row := &Distances[F]{}, c.a.Mask.Shape, 0
	for range 2*far + 1 {
		d.Rows = append(d.Rows, row)
		row += []int{0, 1, 1, 1, 3}[r.IntN(5)]
	}
	if rows := row + 1; kinds&1 > 0 {
		d.Keys = normals[F](r.Uint64(), rows*cmp.Or(c.a.Groups, shape[1])*c.a.Width)
		d.DKeys = normals[F](1, len(d.Keys))
	}
	if rows := row + 1; kinds&2 > 0 {
		d.Queries = normals[F](r.Uint64(), rows*shape[1]*c.a.Width)
		d.DQueries = normals[F](1, len(d.Queries))
	}
	c.a.Distances = d
}

// check compares the results with naive's results. NaN and infinities must be equal. Other elements may differ by tol
// times the largest element.
func (c *attentionCase[F]) check(t *testing.T, tol float64) {
	t.Helper()
	want := c.naive()
	for i, got := range c.results() {
		largest := 1.0
		for _, x := range want[i] {
			if portable.Finite(x) {
				largest = max(largest, math.Abs(float64(x)))
			}
		}
		for j, x := range got {
			w := want[i][j]
			if x == w || x != x && w != w {
				continue
			}
			if d := math.Abs(float64(x - w)); !(d <= tol*largest) {
				t.Errorf("%s: element %d is %v, want %v", attentionResults[i], j, x, w)
				return
			}
		}
	}
}

// wavy is a ScoreFunc that depends on all of its arguments.
func wavy(score float64, head, query, key int) (value, derivative float64) {
	x := float64(query-key) / 100
	return score + 0.3*math.Sin(score+float64(head)) - x*x/(1+x*x), 1 + 0.3*math.Cos(score+float64(head))
}

// options sets random options of a case, and returns their description.
func (c *attentionCase[F]) options(r *rand.Rand) string {
	m := &c.a.Mask
	m.random(r)
	if m.Bias != nil && r.IntN(4) > 0 {
		c.dbias = make([]F, len(m.Bias))
	}
	if r.IntN(3) == 0 {
		c.a.Softcap = F(0.5 + 3*r.Float64())
	}
	if r.IntN(4) == 0 {
		c.a.Score = wavy
	}
	if r.IntN(3) == 0 {
		c.a.Dropout = AttentionDropout{P: []float64{0.1, 0.5, 0.9}[r.IntN(3)], Seed: r.Uint64(), Stream: 2, Run: 3}
	}
	if r.IntN(3) == 0 {
		c.a.Sinks = normals[F](r.Uint64(), m.Shape[1])
		if r.IntN(2) == 0 {
			c.a.Sinks[0] = F([]float64{math.Inf(-1), math.Inf(1), math.NaN(), 1000, -1000}[r.IntN(5)])
		}
		if r.IntN(4) > 0 {
			c.dsinks = make([]F, m.Shape[1])
			c.a.SinkGrads = c.dsinks
		}
	}
	kinds := 0
	if r.IntN(3) == 0 {
		kinds = 1 + r.IntN(3)
		c.distances(r, kinds, r.IntN(1+2*max(c.a.Mask.Shape[2], c.a.Mask.Shape[3])))
	}
	return fmt.Sprintf("distances %d, groups %d, softcap %v, score %t, dropout %v, sinks %v, %s (gradient %t)", kinds, c.a.Groups, c.a.Softcap, c.a.Score != nil, c.a.Dropout.P, c.a.Sinks, m, c.dbias != nil)
}
