package kernel

import "sync/atomic"

// This file and its neighbours are attention without its weights: softmax(scale·Q·Kᵀ + M)·V, computed by tiles of some
// queries by some keys, so that nothing of size T×S is ever kept. Tiles that the mask hides are skipped.
//
// The softmax is online (Milakov and Gimelshein, 2018): a row's maximum and sum grow from tile to tile, and what has
// been summed up under an old maximum is scaled to the new one. Its output needs linear memory (Rabe and Staats, 2021).
// The gradients come from the tiles, computed again from each row's log-sum-exp (Dao et al., FlashAttention, 2022):
//
//	P = exp(scale·Q·Kᵀ + M − lse)     dV = Pᵀ·dO
//	dS = P∘(dO·Vᵀ − rowsum(dO∘O))     dQ = scale·dS·K     dK = scale·dSᵀ·Q
//
// With dropout P becomes P∘D in O and in dV, and dO·Vᵀ becomes D∘(dO·Vᵀ), where D is computed again for each tile. A
// cap c on the scores, s' = c·tanh(s/c) before M is added, gives dS a factor of 1 − (s'/c)² in dQ and dK.
//
// Zero times anything is zero here as in SkipGemm: attention_redo.go sees to that.

// The largest tile of scores: a part of the cache, with the queries, keys and values that it belongs to.
const (
	attentionQueries = 64
	attentionKeys    = 128
	attentionGap     = 16                   // between rows of a tile, lest they all fall into a few sets of the cache
	attentionRun     = 4 * attentionQueries // queries that share a packed tile of keys, going forward
)

// attentionTaskWork is the least number of multiplications worth a task.
const attentionTaskWork = 1 << 18

// Rows is a tensor of vectors, one for each batch element, head and position: vector (b, h, t) begins at element
// b·Batch + h·Head + t·Row. Tensors of shape (B, H, T, K) and of shape (B, T, H·K) are both read as they are.
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

// from returns the elements from vector (b, h, t) on.
func (r Rows[F]) from(b, h, t int) []F { return r.Data[b*r.Batch+h*r.Head+t*r.Row:] }

// Attention is attention of one shape, and the memory that it works in.
type Attention[F Float] struct {
	Mask  Mask[F] // with the shape, (B, H, T, S)
	Width int     // of a query and of a key, K
	Value int     // width of a value, V
	Scale F

	Softcap F                // c·tanh(s/c) is taken of the scores s; 0 for none
	Groups  int              // number of heads of keys and values, G: query head h has number h·G/H; H if 0
	Dropout AttentionDropout // of the weights

	attentionOperands[F]
	choice dropoutChoice[F]
	dead   []bool // queries that the backward pass leaves out, where redoBackward has found some
	parts  int    // in which the backward pass divides the keys
	shared int    // heads in a row that only one task may handle, as they share a gradient, of keys and values or of a bias
	less   []F    // per query, rowsum(dO∘O)
	shift  []F    // per query, the log-sum-exp: −Inf where the query has no part in the gradients
	spare  []F    // dQ from the keys of every part but the first
	nan    atomic.Bool
}

// AttentionDropout says which weights are dropped: those that DropoutMask drops of a tensor of shape (B, H, T, S).
type AttentionDropout struct {
	P                 float64 // probability; 0 for none
	Seed, Stream, Run uint64
}

// attentionOperands holds the operands of one call.
type attentionOperands[F Float] struct {
	cores                          int
	q, k, v, out, dout, dq, dk, dv Rows[F]
	lse, dbias                     []F
}

// heads returns the number of heads of the whole batch, B·H.
func (a *Attention[F]) heads() int { return a.Mask.Shape[0] * a.Mask.Shape[1] }

// split turns a number below B·H into a batch element and a head.
func (a *Attention[F]) split(head int) (b, h int) {
	return head / a.Mask.Shape[1], head % a.Mask.Shape[1]
}

// row returns the number of query (b, h, t) among all queries.
func (a *Attention[F]) row(b, h, t int) int { return (b*a.Mask.Shape[1]+h)*a.Mask.Shape[2] + t }

// perGroup returns the number of query heads that share a head of keys and values.
func (a *Attention[F]) perGroup() int {
	if a.Groups == 0 {
		return 1
	}
	return a.Mask.Shape[1] / a.Groups
}

// seen returns the range of the keys j0 to j1 that queries t0 to t1 of batch element b may see, its start rounded down
// to a whole number of panels of cols keys, and the first of all keys that they may see. The range may be empty.
func (a *Attention[F]) seen(b, t0, t1, j0, j1, cols int) (first, from, to int) {
	first, end := a.Mask.span(b, t0, t1)
	from, to = max(first, j0), min(end, j1)
	if from >= to {
		return first, j0, j0
	}
	return first, from - (from-j0)%cols, to
}

// tileQueries returns the number of queries in a tile. Where there are few keys it is half the largest: smaller tiles
// leave out more of what a causal mask hides.
func (a *Attention[F]) tileQueries() int {
	if a.short() {
		return attentionQueries / 2
	}
	return attentionQueries
}

// prepare readies the scratch for tiles of batch element b.
func (s *attentionScratch[F]) prepare(a *Attention[F], b int) {
	s.reach, s.changes = a.Mask.reach(b), a.Softcap > 0 || a.Mask.scored()
}

// maskRow caps and masks the scores of one query with the keys from j0 on, and returns the bounds of the part that the
// query may see, in which a masked score is −Inf. It leaves the rest alone. If capped isn't nil, it is set to the
// scores after the cap and before the mask.
func (a *Attention[F]) maskRow(scores, capped []F, b, h, t, j0 int) (from, to int) {
	from, to = a.Mask.reach(b).bounds(t, j0, len(scores))
	a.maskSeen(scores, capped, b, h, t, j0, from, to)
	return from, to
}

// maskSeen does what maskRow does for a row whose bounds are known. Tiles have so many rows that they call it only
// where scores change.
func (a *Attention[F]) maskSeen(scores, capped []F, b, h, t, j0, from, to int) {
	scores = scores[from:to]
	if a.Softcap > 0 {
		softcap(scores, scores, a.Softcap)
		if capped != nil {
			copy(capped[from:to], scores)
		}
	}
	if a.Mask.scored() {
		a.Mask.apply(scores, b, h, t, j0+from)
	}
}

// drops reports whether there is dropout.
func (a *Attention[F]) drops() bool { return a.Dropout.P > 0 }

// fillDropout writes the dropout factors of one query's weights, from key j0 on.
func (a *Attention[F]) fillDropout(body *body[F], keep []F, b, h, t, j0 int) {
	a.choice.fill(body, keep, uint64(a.row(b, h, t))*uint64(a.Mask.Shape[3])+uint64(j0))
}

// gemm sets C to alpha·A·B, or adds that to C. A is m×k, its rows rsA and its columns csA elements apart. B is k×n, its
// rows ldb elements apart or, where panel isn't 0, in packed panels that are panel elements apart.
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
	t.a, t.b, t.c = nil, nil, nil
}

// packed packs the transpose of n rows of k elements into panels, and returns these and how far apart they are.
func (s *attentionScratch[F]) packed(to, rows []F, ld, n, k int) (panels []F, panel int) {
	g := &s.body.tiles
	panel = k * g.cols
	to = grown(to, (n+g.cols-1)/g.cols*panel)
	for j := 0; j < n; j += g.cols {
		g.transpose(to[j/g.cols*panel:], rows[j*ld:], ld, min(g.cols, n-j), k)
	}
	return to, panel
}

// attentionScratch is the memory of one task.
type attentionScratch[F Float] struct {
	body         *body[F]
	tile         gemmTile[F]
	edge         []F // the last columns of a B, packed where they can't be read as they are
	scores       []F // a tile of scores, then of weights
	grads        []F // a tile of their gradients
	keep         []F // a tile of the factors of dropout
	capped       []F // a tile of scores after the cap and before the mask
	keys, values []F // packed
	most, sum    []F // of each query, so far

	reach   maskReach // of the queries of this batch element
	changes bool      // there is a cap, or the mask changes scores that are seen
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
