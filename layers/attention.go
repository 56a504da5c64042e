package layers

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// A Mask says which keys each query may attend to. Its parts combine by intersection, and the zero Mask allows every
// key. True means attend, everywhere. A masked key has a weight of exactly zero: whatever its key and value hold, NaN
// included, reaches neither the output nor a gradient. A query with no key to attend to gets an output of zero and
// passes back gradients of zero.
//
// Allow and Bias broadcast, right-aligned, to the shape of the scores: (B, H, T, S), or (B, T, S) and (T, S) where the
// queries have no head or batch axis. Where their last axis is shorter than S, the keys past it are masked.
type Mask struct {
	// Causal lets query i see key j only where j ≤ i, counted from the first of each, also where T ≠ S.
	Causal bool

	// KeyLengths, of shape (B) and dtype tensor.Int, is how many keys of each batch element are valid: the rest is
	// padding. A length outside [0, S] is an error when the graph runs.
	KeyLengths *G.Node

	// Allow, of dtype tensor.Bool, is true where a query may attend to a key.
	Allow *G.Node

	// Bias, of the queries' dtype, is added to the scores; −Inf masks. Gradients flow into it.
	Bias *G.Node
}

// AttentionOptions change what attention does; the zero value is plain attention.
type AttentionOptions struct {
	Mask    Mask
	Scale   float64 // 1/√K if 0
	Dropout float64 // probability of dropping a weight, in a training graph
}

// ScaledDotProduct is attention without parameters (Vaswani et al., 2017, section 3.2.1),
//
//	softmax(Q·Kᵀ·scale + M)·V
//
// for queries of shape (T, K), keys (S, K) and values (S, V), each with the same batch axis or batch and head axes in
// front: (B, T, K) or (B, H, T, K). The output has shape (…, T, V).
//
// It is one op, tiled, that keeps nothing of size T×S, forward or backward (Dao et al., FlashAttention, 2022): memory is
// linear in T and S. With dropout in a training graph, or where the Build says Composed, it is built as
// ScaledDotProductWeights builds it. The two have one meaning.
func ScaledDotProduct(b *Build, q, k, v *G.Node, o AttentionOptions) (out *G.Node, err error) {
	scale, err := o.check(b, q, k, v)
	if err != nil {
		return nil, err
	}
	if !b.fuses(o.Dropout) {
		out, _, err = composed(b, q, k, v, scale, o)
		return out, err
	}
	if out, err = ops.Attention(q, k, v, 0, scale, o.Mask.ops()); err != nil {
		return nil, fmt.Errorf("%s: %w", coreName, err)
	}
	return out, nil
}

// ScaledDotProductWeights is ScaledDotProduct by separate ops, every stage a node of the graph, and returns the attention
// weights, of shape (…, T, S), as well: read them with gorgonia.Read. With dropout they are what dropout left.
func ScaledDotProductWeights(b *Build, q, k, v *G.Node, o AttentionOptions) (out, weights *G.Node, err error) {
	scale, err := o.check(b, q, k, v)
	if err != nil {
		return nil, nil, err
	}
	return composed(b, q, k, v, scale, o)
}

const coreName = "scaled dot-product attention"

// fuses says whether attention with that much dropout is built as one op.
func (b *Build) fuses(dropout float64) bool {
	return !b.Composed && (b.Mode != Training || dropout == 0)
}

// composed builds attention by separate ops, from operands that have been checked.
func composed(b *Build, q, k, v *G.Node, scale float64, o AttentionOptions) (out, weights *G.Node, err error) {
	fail := func(err error) (*G.Node, *G.Node, error) { return nil, nil, fmt.Errorf("%s: %w", coreName, err) }
	scores, err := ops.MatMul(q, k, false, true, scale, false) // (…, T, K) x (…, S, K)ᵀ -> (…, T, S)
	if err != nil {
		return fail(err)
	}
	if weights, err = ops.Softmax(scores, o.Mask.ops()); err != nil {
		return fail(err)
	}
	if weights, err = b.dropout(weights, o.Dropout); err != nil {
		return fail(err)
	}
	if out, err = ops.MatMul(weights, v, false, false, 1, true); err != nil { // (…, T, S) x (…, S, V) -> (…, T, V)
		return fail(err)
	}
	return out, weights, nil
}

// check checks the operands of attention, and returns the scale.
func (o AttentionOptions) check(b *Build, q, k, v *G.Node) (scale float64, err error) {
	const name = coreName
	if b == nil {
		return 0, fmt.Errorf("%s: %w", name, errNoBuild)
	}
	if err := checkFloat(name, "the query", q); err != nil {
		return 0, err
	}
	for _, in := range []struct {
		what string
		n    *G.Node
	}{{"the key", k}, {"the value", v}} {
		if err := checkFloat(name, in.what, in.n); err != nil {
			return 0, err
		}
		if in.n.Dtype() != q.Dtype() {
			return 0, fmt.Errorf("%s: query, key and value must have one dtype, got %v and %v", name, q.Dtype(), in.n.Dtype())
		}
	}
	if err := checkRate(name, o.Dropout); err != nil {
		return 0, err
	}
	qs, ks, vs := q.Shape(), k.Shape(), v.Shape()
	r := len(qs)
	if r < 2 || r > 4 || len(ks) != r || len(vs) != r {
		return 0, fmt.Errorf("%s: query, key and value must all have shape (T, K), (B, T, K) or (B, H, T, K), got %v, %v and %v", name, qs, ks, vs)
	}
	for i := range r - 2 {
		if qs[i] != ks[i] || qs[i] != vs[i] {
			return 0, fmt.Errorf("%s: query, key and value must have the same batch and head axes, got %v, %v and %v", name, qs, ks, vs)
		}
	}
	if qs[r-1] != ks[r-1] || ks[r-2] != vs[r-2] {
		return 0, fmt.Errorf("%s: query (…, T, K), key (…, S, K) and value (…, S, V) must agree in K and S, got %v, %v and %v", name, qs, ks, vs)
	}
	if scale = o.Scale; scale == 0 {
		scale = 1 / math.Sqrt(float64(qs[r-1]))
	}
	return scale, o.Mask.check(name, q)
}

// ops is the mask as the ops take it.
func (m Mask) ops() ops.Mask {
	return ops.Mask{Causal: m.Causal, Lengths: m.KeyLengths, Allow: m.Allow, Bias: m.Bias}
}

// check checks the dtypes of a mask's nodes; that they broadcast is checked where they meet the scores.
func (m Mask) check(layer string, q *G.Node) error {
	for _, p := range []struct {
		what string
		n    *G.Node
		want tensor.Dtype
	}{
		{"Mask.KeyLengths", m.KeyLengths, tensor.Int},
		{"Mask.Allow (true means attend)", m.Allow, tensor.Bool},
		{"Mask.Bias", m.Bias, q.Dtype()},
	} {
		if p.n == nil {
			continue
		}
		if p.n.Dtype() != p.want {
			return fmt.Errorf("%s: %s must be %v, got %v", layer, p.what, p.want, p.n.Dtype())
		}
		if p.n.Graph() != q.Graph() {
			return fmt.Errorf("%s: %s belongs to another graph than the query", layer, p.what)
		}
	}
	return nil
}
