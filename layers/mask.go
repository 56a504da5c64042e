package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// A Mask says which keys each query may attend to. A key is masked if any part of the Mask masks it; the zero Mask
// allows every key. True always means attend. A masked key has a weight of exactly zero: its key and value reach
// neither the output nor a gradient, even if they hold NaN. A query with no key to attend to gets a zero output, and
// its gradients are zero.
//
// Causal, Window and Slopes compare positions. Key j is at position j. Query i is at position p = P + Offset + i, where
// P is the number of past keys in the options. So without past keys and offsets, both queries and keys count from 0,
// also if T ≠ S.
//
// Allow and Bias broadcast, right-aligned, to the shape of the scores: (B, H, T, S), or (B, T, S) or (T, S) if the
// queries have no head or batch axis. S includes past keys. If their last axis is shorter than S, the remaining keys
// are masked; this axis doesn't broadcast, even if its size is 1. A row for each batch element, such as PyTorch's
// key_padding_mask of shape (B, S), needs shape (B, 1, 1, S) here. Masks mean the same as in the ONNX operator
// Attention (opsets 23 to 25).
type Mask struct {
	// Causal lets query i see key j only where j ≤ p.
	Causal bool

	// Window lets query i see only nearby keys; nil for no limit.
	Window *Window

	// Offset is added to the positions of the queries. It must be 0 if there are Offsets.
	Offset int

	// Offsets, of shape (B) and dtype tensor.Int, is an Offset for each batch element; nil for none.
	Offsets *G.Node

	// KeyLengths, of shape (B) and dtype tensor.Int, is the number of valid keys of each batch element, past keys
	// included. The rest is padding and masked. A length outside [0, S] is an error when the graph runs.
	KeyLengths *G.Node

	// Allow, of dtype tensor.Bool, is true where a query may attend to a key.
	Allow *G.Node

	// Bias, of the queries' dtype, is added to the scores; −Inf masks. Gradients flow into it.
	Bias *G.Node

	// Slopes has one number for each of the H heads: Slopes[h]·|p − j| is subtracted from the scores. See ALiBi.Slopes.
	// The bias takes no memory, because it is computed where it is used.
	Slopes []float64
}

// A Window limits a query at position p to the keys from p − Left to p + Right (Beltagy et al., Longformer, 2020). −1
// means no limit on that side.
type Window = ops.Window
