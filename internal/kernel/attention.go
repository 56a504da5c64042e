package kernel

import "sync/atomic"

// Attention computes softmax(scale·Q·Kᵀ + M)·V in tiles of some queries and some keys, so it stores nothing of size
// T×S. It skips tiles that the mask hides.
//
// The softmax is online (Milakov and Gimelshein, 2018): each tile updates the maximum and the sum of a row, and a new
// maximum rescales the earlier sums. So the output needs only linear memory (Rabe and Staats, 2021). The backward pass
// computes the tiles again from each row's log-sum-exp (Dao et al., FlashAttention, 2022):
//
//	P = exp(scale·Q·Kᵀ + M − lse)     dV = Pᵀ·dO
//	dS = P∘(dO·Vᵀ − rowsum(dO∘O))     dQ = scale·dS·K     dK = scale·dSᵀ·Q
//
// With dropout factors D, P becomes P∘D in O and dV, and dO·Vᵀ becomes D∘(dO·Vᵀ). The backward pass computes D again
// for each tile. A cap c replaces each score s with s' = c·tanh(s/c) before M is added. In dQ and dK, dS is then
// multiplied by 1 − (s'/c)².
//
// Zero times any number is zero, even zero times NaN, as in SkipGemm: see attention_redo.go.

// The largest tile of scores fits into the cache with its queries, keys and values.
const (
	attentionQueries = 64
	attentionKeys    = 128
	attentionGap     = 16                   // elements between rows of a tile, so that the rows use different sets of the cache
	attentionRun     = 4 * attentionQueries // queries that share a packed tile of keys in the forward pass
)

// Rows is a tensor with one vector per batch element, head and position. Vector (b, h, t) begins at element b·Batch +
// h·Head + t·Row. So Rows can describe both layouts, (B, H, T, K) and (B, T, H·K).
type Rows[F Float] struct {
	Data             []F
	Batch, Head, Row int
}

// HeadRows returns the vectors of a tensor of shape (B, H, T, width).
func HeadRows[F Float](data []F, heads, length, width int) Rows[F] {
	return Rows[F]{data, heads * length * width, length * width, width}
}

// SideRows returns the vectors of a tensor of shape (B, T, H·width), whose heads lie side by side.
func SideRows[F Float](data []F, heads, length, width int) Rows[F] {
	return Rows[F]{data, heads * length * width, width, heads * width}
}

// from returns the elements from the start of vector (b, h, t) on.
func (r Rows[F]) from(b, h, t int) []F { return r.Data[b*r.Batch+h*r.Head+t*r.Row:] }

// Attention holds the sizes and options of attention, and its working memory.
type Attention[F Float] struct {
	Mask  Mask[F] // includes the shape, (B, H, T, S)
	Width int     // K, the width of a query and of a key
	Value int     // V, the width of a value
	Scale F

	Softcap F                // c, which replaces each score s with c·tanh(s/c); 0 means no cap
	Score   ScoreFunc        // changes each score after the cap and before M; nil means none
	Groups  int              // G, the number of heads of keys and values: query head h reads head h·G/H; 0 means H
	Dropout AttentionDropout // dropout of the weights

	Sinks     []F           // a sink for each head, see sinks.go; nil means none
	SinkGrads []F           // if not nil, Backward sets it to the gradient of Sinks
	Distances *Distances[F] // products with vectors of distances, added to the scores before the cap; nil for none

	attentionOperands[F]
	choice dropoutChoice[F]
	dead   []bool // whether the backward pass skips a query; set by redoBackward
	parts  int    // number of parts into which the backward pass divides the keys
	shared int    // number of heads that share a gradient; one task handles them
	less   []F    // rowsum(dO∘O) per query
	shift  []F    // log-sum-exp per query, or −Inf if the query doesn't affect the gradients
	spare  []F    // one dQ for each part of the keys except the first

	batches                 int // with Distances, number of batch elements that share a gradient of Keys and Queries
	spareKeys, spareQueries []F // gradients of Keys and Queries for each set of batch elements except the first

	nan atomic.Bool
}

// AttentionDropout defines which weights are dropped: the elements that DropoutMask drops from a tensor of shape (B, H,
// T, S).
type AttentionDropout struct {
	P                 float64 // probability; 0 means no dropout
	Seed, Stream, Run uint64
}

// attentionOperands holds the operands of one call.
type attentionOperands[F Float] struct {
	cores                          int
	q, k, v, out, dout, dq, dk, dv Rows[F]
	lse, dbias                     []F
	runs, perTask                  int // runs of queries per head in the forward pass, and runs per task
}

// heads returns the number of heads in the whole batch, B·H.
func (a *Attention[F]) heads() int { return a.Mask.Shape[0] * a.Mask.Shape[1] }

// split converts an index below B·H to a batch element and a head.
func (a *Attention[F]) split(head int) (b, h int) {
	return head / a.Mask.Shape[1], head % a.Mask.Shape[1]
}

// row returns the index of query (b, h, t) among all queries.
func (a *Attention[F]) row(b, h, t int) int { return (b*a.Mask.Shape[1]+h)*a.Mask.Shape[2] + t }

// perGroup returns the number of query heads that share a head of keys and values.
func (a *Attention[F]) perGroup() int {
	if a.Groups == 0 {
		return 1
	}
	return a.Mask.Shape[1] / a.Groups
}

// seen returns the range of keys, start to stop, that the queries t0 to t1 of batch element b may see among the keys j0
// to j1. The range may be empty. start is rounded down, so that start − j0 is a multiple of cols, the width of a panel.
// The result first is the first of all keys that these queries may see.
func (a *Attention[F]) seen(b, t0, t1, j0, j1, cols int) (first, start, stop int) {
	first, end := a.Mask.span(b, t0, t1)
	start, stop = max(first, j0), min(end, j1)
	if start >= stop || a.Mask.hidden(b, t0, t1, start, stop) {
		return first, j0, j0
	}
	return first, start - (start-j0)%cols, stop
}

// short reports whether one tile holds all scores. If so, a tile's weights are final, and lse holds only the largest
// score.
func (a *Attention[F]) short() bool { return a.Mask.Shape[3] <= attentionKeys && a.Sinks == nil }

// tileQueries returns the number of queries in a tile. If one tile holds all keys, it is half the maximum, because
// smaller tiles skip more of the keys that a causal mask hides. With Distances, larger tiles share more products.
func (a *Attention[F]) tileQueries() int {
	if a.short() && a.Distances == nil {
		return attentionQueries / 2
	}
	return attentionQueries
}

// prepare sets the fields of the scratch that depend on batch element b.
func (s *attentionScratch[F]) prepare(a *Attention[F], b int) {
	s.reach, s.changes = a.Mask.reach(b), a.Softcap > 0 || a.Score != nil || a.Mask.scored() || a.Mask.Documents != nil
}

// maskRow caps, changes and masks the scores of one query for the keys from j0 on. It returns the bounds of the visible
// part, in which a masked score becomes −Inf, and leaves the rest unchanged. If capped isn't nil, it receives the
// scores after the cap, unless neither Softcap nor Score is set.
func (a *Attention[F]) maskRow(scores, capped []F, b, h, t, j0 int) (from, stop int) {
	from, stop = a.Mask.reach(b).bounds(t, j0, len(scores))
	return a.maskSeen(scores, capped, b, h, t, j0, from, stop)
}

// maskSeen does the same as maskRow, for bounds that don't consider documents yet. Tiles have many rows, so their code
// calls maskSeen only if scores or bounds change.
func (a *Attention[F]) maskSeen(scores, capped []F, b, h, t, j0, from, stop int) (int, int) {
	if d := a.Mask.Documents; d != nil {
		p := a.Mask.position(b, t)
		lo, hi := d.cover(b, p, p+1)
		from, stop = overlap(from, stop, lo-j0, hi-j0)
	}
	scores = scores[from:stop]
	if a.Softcap > 0 {
		bodyOf[F]().softcap(scores, scores, a.Softcap)
	}
	if capped != nil && (a.Softcap > 0 || a.Score != nil) {
		copy(capped[from:stop], scores)
	}
	if a.Score != nil {
		changeRow(a.Score, scores, scores, h, a.Mask.position(b, t), j0+from)
	}
	if a.Mask.scored() {
		a.Mask.apply(scores, b, h, t, j0+from)
	}
	return from, stop
}

// drops reports whether any weights can be dropped.
func (a *Attention[F]) drops() bool { return a.Dropout.P > 0 }

// fillDropout writes the dropout factors of one query's weights, from key j0 on.
func (a *Attention[F]) fillDropout(body *body[F], keep []F, b, h, t, j0 int) {
	a.choice.fill(body, keep, uint64(a.row(b, h, t))*uint64(a.Mask.Shape[3])+uint64(j0))
}

// gemm sets C to alpha·A·B, or adds it to C. A is m×k: its rows are rsA and its columns csA elements apart. B is k×n:
// its rows are ldb elements apart or, if panel isn't 0, it lies in packed panels that are panel elements apart.
func (s *attentionScratch[F]) gemm(m, n, k int, alpha F, a []F, rsA, csA int, b []F, ldb, panel int, c []F, ldc int, add bool) {
	t, g := &s.tile, &s.body.tiles
	t.rsA, t.csA, t.ldc, t.k, t.alpha, t.beta, t.keep = rsA, csA, ldc, k, alpha, 1, 0
	if add {
		t.keep = 1
	}
	for j := 0; j < n; j += g.cols {
		t.cols = min(g.cols, n-j)
		switch {
		case panel > 0:
			t.b, t.rsB = b[j/g.cols*panel:], g.cols
		case t.cols%g.lanes != 0:
			s.edge = grown(s.edge, k*g.cols)
			g.pack(s.edge, b[j:], ldb, t.cols, k)
			t.b, t.rsB = s.edge, g.cols
		default:
			t.b, t.rsB = b[j:], ldb
		}
		g.column(t, a, c[j:], m)
	}
	t.a, t.b, t.c, t.ahead = nil, nil, nil, nil
}

// packed packs the transpose of n rows of k elements into panels. It returns the panels and the distance between them.
func (s *attentionScratch[F]) packed(buffer, rows []F, ld, n, k int) (panels []F, panel int) {
	g := &s.body.tiles
	panel = k * g.cols
	buffer = grown(buffer, parts(n, g.cols)*panel)
	for j := 0; j < n; j += g.cols {
		g.transpose(buffer[j/g.cols*panel:], rows[j*ld:], ld, min(g.cols, n-j), k)
	}
	return buffer, panel
}

// attentionScratch is the memory of one task.
type attentionScratch[F Float] struct {
	body         *body[F]
	tile         gemmTile[F]
	edge         []F // packed copy of B's last columns, if the tile's function can't read them in place
	scores       []F // a tile of scores, replaced by weights
	grads        []F // a tile of gradients of the scores
	keep         []F // a tile of dropout factors
	capped       []F // a tile of scores after the cap and before the mask
	keys, values []F // packed keys and values
	largest, sum []F // largest score and sum of weights so far, per query

	distances distanceScratch[F]

	reach   maskReach // limits of the visible keys for this batch element
	changes bool      // whether a cap or the mask changes visible scores, or documents change their bounds
}

// attentionGet returns a task's scratch.
func attentionGet[F Float](pitch int) *attentionScratch[F] {
	body := bodyOf[F]()
	s := take[attentionScratch[F]](&body.attention)
	s.body = body
	s.scores = grown(s.scores, attentionQueries*pitch)
	s.keep = grown(s.keep, len(s.scores))
	return s
}

func attentionPut[F Float](s *attentionScratch[F]) { s.body.attention.Put(s) }
