package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// A Mask says which keys each query may attend to. Its parts combine by intersection, and the zero Mask allows every
// key. True means attend, everywhere. A masked key has a weight of exactly zero: whatever its key and value hold, NaN
// included, reaches neither the output nor a gradient. A query with no key to attend to gets an output of zero and
// passes back gradients of zero.
//
// Causal, Window and Slopes compare positions: key j is at position j, and query i at p = P + Offset + i, where P is
// the number of past keys that the options give (0 if they give none). So queries and keys are counted from the first
// of each, also where T ≠ S, unless there are keys from before the queries.
//
// Allow and Bias broadcast, right-aligned, to the shape of the scores: (B, H, T, S), or (B, T, S) and (T, S) where the
// queries have no head or batch axis; S counts past keys too. Where their last axis is shorter than S, the keys past it
// are masked, also where it is 1: that axis doesn't broadcast. A row for each batch element, (B, S) as PyTorch's
// key_padding_mask has it, is (B, 1, 1, S) here. The meaning of all is that of the ONNX operator Attention (opsets 23
// to 25).
type Mask struct {
	// Causal lets query i see key j only where j ≤ p.
	Causal bool

	// Window lets query i see only keys near to it; nil for all.
	Window *Window

	// Offset moves the queries' positions, by any number. It must be 0 if there are Offsets.
	Offset int

	// Offsets, of shape (B) and dtype tensor.Int, is an Offset for each batch element; nil for none.
	Offsets *G.Node

	// KeyLengths, of shape (B) and dtype tensor.Int, is how many keys of each batch element are valid, past ones
	// counted: the rest is padding. A length outside [0, S] is an error when the graph runs.
	KeyLengths *G.Node

	// Allow, of dtype tensor.Bool, is true where a query may attend to a key.
	Allow *G.Node

	// Bias, of the queries' dtype, is added to the scores; −Inf masks. Gradients flow into it.
	Bias *G.Node

	// Slopes, one for each of the H heads, subtract Slopes[h]·|p − j| from the scores: see ALiBi, whose Slopes they may
	// be. The bias is made as it is needed, so that it takes no memory.
	Slopes []float64
}

// A Window is how far a query sees (Beltagy et al., Longformer, 2020): the keys from p − Left to p + Right, for one at
// position p. −1 leaves a side open, and 0 ends it at the query's own position.
type Window = ops.Window
