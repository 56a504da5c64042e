package kernel

import (
	"math"
	"sync"
	"sync/atomic"
)

// This file and its neighbours are attention without its weights: softmax(scale·Q·Kᵀ + M)·V, computed by tiles of some
// queries by some keys, so that nothing of size T×S is ever kept.
//
// The softmax is online (Milakov and Gimelshein, 2018): a row's maximum and sum grow from tile to tile, and what has been
// summed up under an old maximum is scaled to the new one. Its output needs linear memory (Rabe and Staats, 2021). The
// gradients come from the tiles, computed again from each row's log-sum-exp (Dao et al., FlashAttention, 2022):
//
//	P = exp(scale·Q·Kᵀ + M − lse)     dV = Pᵀ·dO
//	dS = P∘(dO·Vᵀ − rowsum(dO∘O))     dQ = scale·dS·K     dK = scale·dSᵀ·Q
//
// Zero times anything is zero here as in SkipGemm: attention_redo.go sees to that.

// The largest tile of scores: a part of the cache, with the queries, keys and values that it belongs to.
const (
	attentionQueries = 32
	attentionKeys    = 128
	attentionGap     = 16                   // between rows of a tile, lest they all fall into a few sets of the cache
	attentionRun     = 8 * attentionQueries // queries that share a packed tile of keys, going forward
)

// attentionTaskWork is the fewest products of a query and a key's elements worth a task of their own.
const attentionTaskWork = 1 << 18

// Rows is a tensor of vectors, one for each batch element, head and position: vector (b, h, t) begins at element
// b·Batch + h·Head + t·Row. So both (B, H, T, K) and (B, T, H·K) are read as they are.
type Rows[F Float] struct {
	Data             []F
	Batch, Head, Row int
}

// HeadRows is (B, H, T, width).
func HeadRows[F Float](data []F, heads, length, width int) Rows[F] {
	return Rows[F]{data, heads * length * width, length * width, width}
}

// SideRows is (B, T, H·width): heads side by side.
func SideRows[F Float](data []F, heads, length, width int) Rows[F] {
	return Rows[F]{data, heads * length * width, width, heads * width}
}

// from is the elements from vector (b, h, t) on.
func (r Rows[F]) from(b, h, t int) []F { return r.Data[b*r.Batch+h*r.Head+t*r.Row:] }

// Attention is attention of one shape, and the memory that it works in.
type Attention[F Float] struct {
	Mask  Mask[F] // with the shape, (B, H, T, S)
	Width int     // of a query and of a key, K
	Value int     // width of a value, V
	Scale F

	attentionOperands[F]
	dead   []bool // queries that the backward pass passes over, if it has been found out
	parts  int    // in which the backward pass divides the keys
	shared int    // heads in a row that only one task may handle, as they share the gradient of a bias
	less   []F    // per query, rowsum(dO∘O)
	shift  []F    // per query, the log-sum-exp: −Inf where the query has no part in the gradients
	spare  []F    // dQ from the keys of every part but the first
	nan    atomic.Bool
}

// attentionOperands is what one call is given.
type attentionOperands[F Float] struct {
	q, k, v, out, dout, dq, dk, dv Rows[F]
	lse, dbias                     []F
}

// heads is B·H.
func (a *Attention[F]) heads() int { return a.Mask.Shape[0] * a.Mask.Shape[1] }

// split turns a number below B·H into a batch element and a head.
func (a *Attention[F]) split(head int) (b, h int) {
	return head / a.Mask.Shape[1], head % a.Mask.Shape[1]
}

// row is the number of query (b, h, t) among all.
func (a *Attention[F]) row(b, h, t int) int { return (b*a.Mask.Shape[1]+h)*a.Mask.Shape[2] + t }

// end is the first key that no query of batch element b before t sees, nor any key after it.
func (a *Attention[F]) end(b, t int) int {
	end := a.Mask.Shape[3]
	if a.Mask.Causal {
		end = min(end, t)
	}
	if a.Mask.Lengths != nil {
		end = min(end, a.Mask.Lengths[b])
	}
	if a.Mask.Allow != nil {
		end = min(end, a.Mask.AllowShape[3])
	}
	if a.Mask.Bias != nil {
		end = min(end, a.Mask.BiasShape[3])
	}
	return end
}

// live masks a row of a tile, of the scores of one query with the keys from j0 on, and returns the part that it sees, in
// which a masked score is −Inf.
func (a *Attention[F]) live(scores []F, b, h, t, j0 int) []F {
	end, allow, bias := a.Mask.row(b, h, t)
	scores = scores[:max(0, min(end-j0, len(scores)))]
	if len(scores) == 0 {
		return scores
	}
	inf := F(math.Inf(-1))
	if bias != nil {
		for j, x := range bias[j0:][:len(scores)] {
			if x == inf {
				scores[j] = inf
			} else {
				scores[j] += x
			}
		}
	}
	if allow != nil {
		for j, ok := range allow[j0:][:len(scores)] {
			if !ok {
				scores[j] = inf
			}
		}
	}
	return scores
}

// gemm sets C, or adds to it, alpha·A·B for an A of m×k elements, each rsA from the row before and csA from the column
// before. B is k×n, of rows ldb apart or, where panel isn't 0, of packed panels, panel apart.
func (s *attentionScratch[F]) gemm(m, n, k int, alpha F, a []F, rsA, csA int, b []F, ldb, panel int, c []F, ldc int, add bool) {
	t, body := &s.tile, s.work.body
	t.rsA, t.csA, t.ldc, t.k, t.alpha, t.beta, t.keep = rsA, csA, ldc, k, alpha, 1, 0
	if add {
		t.keep = 1
	}
	for j := 0; j < n; j += body.cols {
		t.cols = min(body.cols, n-j)
		switch {
		case panel > 0:
			t.b, t.rsB = b[j/body.cols*panel:], body.cols
		case t.cols%body.lanes != 0:
			s.edge = grown(s.edge, k*body.cols)
			body.pack(s.edge, b[j:], ldb, t.cols, k)
			t.b, t.rsB = s.edge, body.cols
		default:
			t.b, t.rsB = b[j:], ldb
		}
		s.work.column(t, a, c[j:], m)
	}
	t.a, t.b, t.c = nil, nil, nil
}

// packed packs the transpose of n rows of k elements into panels, and returns these and how far apart they are.
func (s *attentionScratch[F]) packed(to, rows []F, ld, n, k int) (panels []F, panel int) {
	body := s.work.body
	panel = k * body.cols
	to = grown(to, (n+body.cols-1)/body.cols*panel)
	for j := 0; j < n; j += body.cols {
		body.packTransposed(to[j/body.cols*panel:], rows[j*ld:], ld, min(body.cols, n-j), k)
	}
	return to, panel
}

// attentionScratch is what a task needs of its own.
type attentionScratch[F Float] struct {
	vector       *vectorBody[F]
	work         gemmWork[F]
	tile         gemmTile[F]
	edge         []F // a packed panel of a B whose last columns can't be read as they are
	scores       []F // a tile of scores, then of weights
	grads        []F // a tile of their gradients
	keys, values []F // packed
	most, sum    []F // of each query, so far
}

// grown is x, or as much new memory as is needed.
func grown[F Float](x []F, size int) []F {
	if cap(x) < size {
		return make([]F, size)
	}
	return x[:size]
}

var (
	attentionPool32 = sync.Pool{New: func() any { return new(attentionScratch[float32]) }}
	attentionPool64 = sync.Pool{New: func() any { return new(attentionScratch[float64]) }}
)

// attentionGet returns a task's scratch, for the products' body in use.
func attentionGet[F Float](pitch int) *attentionScratch[F] {
	var s *attentionScratch[F]
	if is32[F]() {
		s = any(attentionPool32.Get()).(*attentionScratch[F])
		any(s).(*attentionScratch[float32]).work.body = gemmBody32
	} else {
		s = any(attentionPool64.Get()).(*attentionScratch[F])
		any(s).(*attentionScratch[float64]).work.body = gemmBody64
	}
	s.vector = vectorOf[F]()
	s.scores = grown(s.scores, attentionQueries*pitch)
	return s
}

func attentionPut[F Float](s *attentionScratch[F]) {
	if is32[F]() {
		attentionPool32.Put(s)
	} else {
		attentionPool64.Put(s)
	}
}
