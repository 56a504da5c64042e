package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
)

// A Mask determines which keys each query may attend to. A key is masked if any part of the Mask masks it; the zero
// Mask masks no key. The weight of a masked key is exactly zero. The key and its value affect neither the output nor a
// gradient, even if they hold NaN. If all keys of a query are masked, the query's output and gradients are zero.
//
// Causal, Window, Documents, Blocks, Slopes and Distances use positions. Key j is at position j. Query i is at position
// p = P + Offset + i, where P is the number of past keys in the options. So without past keys and offsets, the
// positions of queries and of keys both count from 0, even if T ≠ S.
//
// Allow and Bias broadcast, right-aligned, to the shape of the scores: (B, H, T, S), or (B, T, S) or (T, S) if the
// queries have no head or batch axis. S includes past keys. If the last axis of Allow or Bias is shorter than S, the
// remaining keys are masked; this axis doesn't broadcast, even if its size is 1. If Allow has one row for each batch
// element, its shape must be (B, 1, 1, S). (In PyTorch, a key_padding_mask has shape (B, S), and true masks a key.)
// Masks have the same meaning as in the ONNX operator Attention, opsets 23 to 25.
type Mask struct {
	// Causal lets query i attend to key j only if j ≤ p.
	Causal bool

	// Window lets each query attend only to nearby keys; nil for no limit.
	Window *Window

	// Offset is added to the positions of the queries. It must be 0 if there are Offsets.
	Offset int

	// Offsets is a node with an Offset for each batch element, of shape (B) and dtype tensor.Int; nil for none.
	Offsets *G.Node

	// KeyLengths is a node with the number of valid keys of each batch element, past keys included. It has shape (B)
	// and dtype tensor.Int. Keys after the valid ones are masked. Running the graph returns an error for a length
	// outside [0, S].
	KeyLengths *G.Node

	// Documents is a node with the number of each key's document, past keys included, so that several documents can
	// share a row without seeing each other. It has shape (B, S), or (S) without a batch axis, and dtype tensor.Int.
	// Keys of a row with the same number are one document. A query at position p belongs to the document of key p, and
	// attends only to keys of this document; if there is no key p, it attends to none. The fused op skips other
	// documents, if the keys of each document adjoin. If the model's Positions depend on more than distances, let them
	// restart in each document: see Build.Positions.
	Documents *G.Node

	// Blocks lets a query at position p attend to key j if its function says so; nil for no limit. It must have at
	// least the positions of all queries and all S keys.
	Blocks *BlockMask

	// Allow is a node of dtype tensor.Bool: true where a query may attend to a key.
	Allow *G.Node

	// Bias is a node with numbers to add to the scores, of the queries' dtype; −Inf masks a key. It has a gradient.
	Bias *G.Node

	// Slopes has one number for each of the H heads. Attention subtracts Slopes[h]·|p − j| from each score of head h,
	// without a matrix of these numbers in memory. See ALiBi.Slopes.
	Slopes []float64

	// Distances are vectors of distances, whose products with queries and keys are added to the scores before the scale
	// and the softcap; nil for none. AdditiveAttention has none.
	Distances *Distances
}

// A Window limits a query at position p to the keys from p − Left to p + Right (Beltagy et al., Longformer, 2020). −1
// means no limit on that side. In published models, a sliding window of W keys includes the query's own position: it is
// a Left of W − 1.
type Window struct {
	Left  int `json:"left"`
	Right int `json:"right"`
}

// and returns the window of the keys that are in both windows. nil is a window without limits.
func (w *Window) and(v *Window) *Window {
	if w == nil || v != nil && !v.valid() { // the op returns an error for an invalid v
		return v
	}
	if v == nil {
		return w
	}
	nearer := func(a, b int) int { return int(min(uint(a), uint(b))) } // −1 is the largest uint
	return &Window{nearer(w.Left, v.Left), nearer(w.Right, v.Right)}
}

func (w *Window) valid() bool { return min(w.Left, w.Right) >= -1 }

// ops returns the mask in the form of package ops.
func (m Mask) ops() ops.Mask {
	return ops.Mask{
		Blocks: (*kernel.Blocks)(m.Blocks),
		Causal: m.Causal, Window: (*ops.Window)(m.Window), Offset: m.Offset, Offsets: m.Offsets,
		KeyLengths: m.KeyLengths, Allow: m.Allow, Bias: m.Bias, Slopes: m.Slopes, Documents: m.Documents,
	}
}
