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

// AttentionOptions change what ScaledDotProduct does; the zero value is plain attention.
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
// front: (B, T, K) or (B, H, T, K). The output has shape (…, T, V). The attention weights, of shape (…, T, S), are a
// node of the graph too: read it with gorgonia.Read. With dropout they are what dropout left.
func ScaledDotProduct(b *Build, q, k, v *G.Node, o AttentionOptions) (out, weights *G.Node, err error) {
	const name = "scaled dot-product attention"
	if err := checkFloat(name, "the query", q); err != nil {
		return nil, nil, err
	}
	for _, in := range []struct {
		what string
		n    *G.Node
	}{{"the key", k}, {"the value", v}} {
		if err := checkFloat(name, in.what, in.n); err != nil {
			return nil, nil, err
		}
		if in.n.Dtype() != q.Dtype() {
			return nil, nil, fmt.Errorf("%s: query, key and value must have one dtype, got %v and %v", name, q.Dtype(), in.n.Dtype())
		}
	}
	if err := checkRate(name, o.Dropout); err != nil {
		return nil, nil, err
	}
	qs, ks, vs := q.Shape(), k.Shape(), v.Shape()
	r := len(qs)
	if r < 2 || r > 4 || len(ks) != r || len(vs) != r {
		return nil, nil, fmt.Errorf("%s: query, key and value must all have shape (T, K), (B, T, K) or (B, H, T, K), got %v, %v and %v", name, qs, ks, vs)
	}
	for i := range r - 2 {
		if qs[i] != ks[i] || qs[i] != vs[i] {
			return nil, nil, fmt.Errorf("%s: query, key and value must have the same batch and head axes, got %v, %v and %v", name, qs, ks, vs)
		}
	}
	if qs[r-1] != ks[r-1] || ks[r-2] != vs[r-2] {
		return nil, nil, fmt.Errorf("%s: query (…, T, K), key (…, S, K) and value (…, S, V) must agree in K and S, got %v, %v and %v", name, qs, ks, vs)
	}
	scale := o.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(qs[r-1]))
	}
	if err := o.Mask.check(name, q); err != nil {
		return nil, nil, err
	}

	fail := func(err error) (*G.Node, *G.Node, error) { return nil, nil, fmt.Errorf("%s: %w", name, err) }
	scores, err := ops.MatMul(q, k, false, true, scale, false) // (…, T, K) x (…, S, K)ᵀ -> (…, T, S)
	if err != nil {
		return fail(err)
	}
	m := o.Mask
	if weights, err = ops.Softmax(scores, ops.Mask{Causal: m.Causal, Lengths: m.KeyLengths, Allow: m.Allow, Bias: m.Bias}); err != nil {
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
