package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// MultiHeadAttention projects queries, keys and values with learned weights, lets every head attend on its own, and
// projects what the heads found (Vaswani et al., 2017, section 3.2.2):
//
//	head_h = softmax(Q_h·K_hᵀ/√K + M)·V_h,  Q = x·W_qᵀ + b_q, K = y·W_kᵀ + b_k, V = z·W_vᵀ + b_v
//	output = concat(head_1, …, head_H)·W_oᵀ + b_o
//
// Given one sequence three times it is self-attention; with keys and values from another one, cross-attention. The four
// weights are parameters of their own, so that each has its gradient; two of them can be made one by assigning a Param,
// as in a.Key.Weight = a.Query.Weight.
type MultiHeadAttention struct {
	Query, Key, Value *Linear // W_q (H·K, Dim), W_k (H·K, KeyInput), W_v (H·V, ValueInput)
	Output            *Linear // W_o (Dim, H·V); nil with NoOutput

	heads   int
	dropout float64
	name    string
	scope   string
}

// MultiHeadConfig describes a MultiHeadAttention.
type MultiHeadConfig struct {
	Dim   int // width of the queries and of the output
	Heads int // number of heads, H; 1 if 0

	HeadDim    int // width of a head's queries and keys, K; Dim/Heads if 0, which Heads must divide
	ValueDim   int // width of a head's values, V; HeadDim if 0
	KeyInput   int // width of the keys that Forward is given; Dim if 0
	ValueInput int // width of the values that Forward is given; KeyInput if 0

	NoBias   bool    // leave out b_q, b_k, b_v and b_o
	NoOutput bool    // leave out W_o: the output is the heads side by side, of width H·V
	Dropout  float64 // probability of dropping an attention weight, in training
	Init     Init    // of the four weights; XavierUniform if nil
}

// NewMultiHeadAttention makes a MultiHeadAttention with the parameters query.weight, key.weight, value.weight,
// output.weight and the biases beside them.
func NewMultiHeadAttention(p *Params, c MultiHeadConfig) (*MultiHeadAttention, error) {
	a := &MultiHeadAttention{name: p.scopeName("attention"), scope: p.scope(), dropout: c.Dropout}
	if c.Heads == 0 {
		c.Heads = 1
	}
	if err := positive(a.name, size{"Dim", c.Dim}, size{"Heads", c.Heads}); err != nil {
		return nil, err
	}
	if err := checkRate(a.name, c.Dropout); err != nil {
		return nil, err
	}
	if c.HeadDim == 0 {
		if c.Dim%c.Heads != 0 {
			return nil, fmt.Errorf("%s: Dim must be a multiple of Heads unless HeadDim is set, got a Dim of %d for %d heads", a.name, c.Dim, c.Heads)
		}
		c.HeadDim = c.Dim / c.Heads
	}
	if c.ValueDim == 0 {
		c.ValueDim = c.HeadDim
	}
	if c.KeyInput == 0 {
		c.KeyInput = c.Dim
	}
	if c.ValueInput == 0 {
		c.ValueInput = c.KeyInput
	}
	if err := positive(a.name, size{"HeadDim", c.HeadDim}, size{"ValueDim", c.ValueDim}, size{"KeyInput", c.KeyInput}, size{"ValueInput", c.ValueInput}); err != nil {
		return nil, err
	}
	a.heads = c.Heads

	parts := []struct {
		to      **Linear
		name    string
		in, out int
	}{
		{&a.Query, "query", c.Dim, c.Heads * c.HeadDim},
		{&a.Key, "key", c.KeyInput, c.Heads * c.HeadDim},
		{&a.Value, "value", c.ValueInput, c.Heads * c.ValueDim},
		{&a.Output, "output", c.Heads * c.ValueDim, c.Dim},
	}
	if c.NoOutput {
		parts = parts[:3]
	}
	for _, part := range parts {
		l, err := NewLinear(p.Scope(part.name), LinearConfig{In: part.in, Out: part.out, NoBias: c.NoBias, WeightInit: c.Init})
		if err != nil {
			return nil, err
		}
		*part.to = l
	}
	return a, nil
}

// Forward attends from query, of shape (B, T, Dim), to key, (B, S, KeyInput), and value, (B, S, ValueInput), and returns
// (B, T, Dim), or (B, T, H·V) with NoOutput. Without a batch axis, (T, Dim) gives (T, Dim), and counts as a batch of 1
// to the mask. The mask meets scores of shape (B, H, T, S).
func (a *MultiHeadAttention) Forward(b *Build, query, key, value *G.Node, m Mask) (*G.Node, error) {
	out, _, err := a.ForwardWeights(b, query, key, value, m)
	return out, err
}

// ForwardWeights is Forward, and returns the attention weights, of shape (B, H, T, S), as well.
func (a *MultiHeadAttention) ForwardWeights(b *Build, query, key, value *G.Node, m Mask) (out, weights *G.Node, err error) {
	q, err := a.project(b, a.Query, "the query", query)
	if err != nil {
		return nil, nil, err
	}
	k, err := a.project(b, a.Key, "the key", key)
	if err != nil {
		return nil, nil, err
	}
	v, err := a.project(b, a.Value, "the value", value)
	if err != nil {
		return nil, nil, err
	}
	if query.Dims() != key.Dims() || query.Dims() != value.Dims() || q.Shape()[0] != k.Shape()[0] ||
		k.Shape()[0] != v.Shape()[0] || k.Shape()[2] != v.Shape()[2] {
		return nil, nil, fmt.Errorf("%s: query (B, T, D), key (B, S, D) and value (B, S, D) must agree in B and S, got %v, %v and %v", a.name, query.Shape(), key.Shape(), value.Shape())
	}
	out, weights, err = ScaledDotProduct(b, q, k, v, AttentionOptions{Mask: m, Dropout: a.dropout}) // (B, H, T, V)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", a.name, err)
	}
	if b.CaptureWeights {
		b.captured = append(b.captured, Captured{Layer: a.scope, Weights: weights})
	}
	if out, err = ops.MergeHeads(out, query.Dims() == 3); err != nil { // (B, H, T, V) -> (B, T, H·V)
		return nil, nil, err
	}
	if a.Output != nil {
		out, err = a.Output.Forward(b, out) // -> (B, T, Dim)
	}
	return out, weights, err
}

// project applies one of the input projections and splits it: (B, T, D) -> (B, H, T, K).
func (a *MultiHeadAttention) project(b *Build, l *Linear, what string, x *G.Node) (*G.Node, error) {
	if err := checkSequence(a.name, what, x, l.Weight.Value.Dtype(), l.Weight.Value.Shape()[1]); err != nil {
		return nil, err
	}
	y, err := l.Forward(b, x)
	if err != nil {
		return nil, err
	}
	return ops.SplitHeads(y, a.heads)
}
