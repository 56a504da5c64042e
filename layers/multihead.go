package layers

import (
	"fmt"
	"math"

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
// weights are parameters of their own, so that each has its gradient.
type MultiHeadAttention struct {
	Query, Key, Value *Linear // W_q (H·K, Dim), W_k (H·K, KeyInput), W_v (H·V, ValueInput)
	Output            *Linear // W_o (Dim, H·V); nil with NoOutput

	QueryNorm, KeyNorm *RMSNorm // (K); nil without QKNorm

	heads   int
	dropout float64
	name    string
	scope   string
	rotary  *Rotary
}

// MultiHeadConfig describes a MultiHeadAttention.
type MultiHeadConfig struct {
	Dim   int // width of the queries and of the output
	Heads int // number of heads, H; 1 if 0

	HeadDim    int // width of a head's queries and keys, K; Dim/Heads if 0, which Heads must divide
	ValueDim   int // width of a head's values, V; HeadDim if 0
	KeyInput   int // width of the keys that Forward is given; Dim if 0
	ValueInput int // width of the values that Forward is given; KeyInput if 0

	// Rotary turns queries and keys by their positions; nil for none. It is copied.
	Rotary *Rotary

	// QKNorm normalises every head's queries and keys with RMSNorms of their own, before they are turned (Henry et al.,
	// 2020; Dehghani et al., 2023): the parameters querynorm.weight and keynorm.weight.
	QKNorm bool

	TieQueryKey bool // W_k is W_q and b_k is b_q: Key is Query, one layer

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
	if c.TieQueryKey && c.KeyInput != c.Dim {
		return nil, fmt.Errorf("%s: TieQueryKey needs keys of the queries' width, %d, got a KeyInput of %d", a.name, c.Dim, c.KeyInput)
	}
	a.heads = c.Heads
	if c.Rotary != nil {
		if err := c.Rotary.check(a.name, c.HeadDim); err != nil {
			return nil, err
		}
		r := *c.Rotary
		a.rotary = &r
	}

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
		if part.name == "key" && c.TieQueryKey {
			a.Key = a.Query
			continue
		}
		l, err := NewLinear(p.Scope(part.name), LinearConfig{In: part.in, Out: part.out, NoBias: c.NoBias, WeightInit: c.Init})
		if err != nil {
			return nil, err
		}
		*part.to = l
	}
	if !c.QKNorm {
		return a, nil
	}
	var err error
	if a.QueryNorm, err = NewRMSNorm(p.Scope("querynorm"), RMSNormConfig{Dim: c.HeadDim}); err != nil {
		return nil, err
	}
	a.KeyNorm, err = NewRMSNorm(p.Scope("keynorm"), RMSNormConfig{Dim: c.HeadDim})
	return a, err
}

// Forward attends from query, of shape (B, T, Dim), to key, (B, S, KeyInput), and value, (B, S, ValueInput), and returns
// (B, T, Dim), or (B, T, H·V) with NoOutput. Without a batch axis, (T, Dim) gives (T, Dim), and counts as a batch of 1
// to the mask. The mask meets scores of shape (B, H, T, S).
//
// Attention is one op that keeps no weights, as in ScaledDotProduct, unless the Build captures them or says Composed, or
// there is dropout on them in a training graph.
func (a *MultiHeadAttention) Forward(b *Build, query, key, value *G.Node, m Mask) (*G.Node, error) {
	q, k, v, err := a.project(b, query, key, value, m)
	if err != nil {
		return nil, err
	}
	if b.CaptureWeights || !b.fuses(a.dropout) {
		out, _, err := a.composed(b, q, k, v, m)
		return out, err
	}
	scale := 1 / math.Sqrt(float64(q.Shape()[q.Dims()-1]/a.heads))
	out, err := ops.Attention(q, k, v, a.heads, scale, m.ops()) // (B, T, H·V)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	return a.output(b, out)
}

// ForwardWeights is Forward by separate ops, and returns the attention weights, of shape (B, H, T, S), as well.
func (a *MultiHeadAttention) ForwardWeights(b *Build, query, key, value *G.Node, m Mask) (out, weights *G.Node, err error) {
	q, k, v, err := a.project(b, query, key, value, m)
	if err != nil {
		return nil, nil, err
	}
	return a.composed(b, q, k, v, m)
}

// composed attends by separate ops.
func (a *MultiHeadAttention) composed(b *Build, q, k, v *G.Node, m Mask) (out, weights *G.Node, err error) {
	batch := q.Dims() == 3
	for _, n := range []**G.Node{&q, &k, &v} {
		if *n, err = ops.SplitHeads(*n, a.heads); err != nil { // (B, T, H·K) -> (B, H, T, K)
			return nil, nil, err
		}
	}
	out, weights, err = ScaledDotProductWeights(b, q, k, v, AttentionOptions{Mask: m, Dropout: a.dropout}) // (B, H, T, V)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", a.name, err)
	}
	if b.CaptureWeights {
		b.captured = append(b.captured, Captured{Layer: a.scope, Weights: weights})
	}
	if out, err = ops.MergeHeads(out, batch); err != nil { // (B, H, T, V) -> (B, T, H·V)
		return nil, nil, err
	}
	out, err = a.output(b, out)
	return out, weights, err
}

// output applies the output projection: (B, T, H·V) -> (B, T, Dim).
func (a *MultiHeadAttention) output(b *Build, heads *G.Node) (*G.Node, error) {
	if a.Output == nil {
		return heads, nil
	}
	return a.Output.Forward(b, heads)
}

// project applies the input projections, each giving the heads side by side: (B, T, D) -> (B, T, H·K).
func (a *MultiHeadAttention) project(b *Build, query, key, value *G.Node, m Mask) (q, k, v *G.Node, err error) {
	for _, p := range []struct {
		to   **G.Node
		l    *Linear
		what string
		x    *G.Node
	}{{&q, a.Query, "the query", query}, {&k, a.Key, "the key", key}, {&v, a.Value, "the value", value}} {
		if err = checkSequence(a.name, p.what, p.x, p.l.Weight.Value.Dtype(), p.l.Weight.Value.Shape()[1]); err != nil {
			return nil, nil, nil, err
		}
		if *p.to, err = p.l.Forward(b, p.x); err != nil {
			return nil, nil, nil, err
		}
	}
	qs, ks, vs := query.Shape(), key.Shape(), value.Shape()
	r := len(qs)
	if len(ks) != r || len(vs) != r || r == 3 && (qs[0] != ks[0] || ks[0] != vs[0]) || ks[r-2] != vs[r-2] {
		return nil, nil, nil, fmt.Errorf("%s: query (B, T, D), key (B, S, D) and value (B, S, D) must agree in B and S, got %v, %v and %v", a.name, qs, ks, vs)
	}
	if q, err = a.place(b, q, a.QueryNorm); err != nil {
		return nil, nil, nil, err
	}
	if k, err = a.place(b, k, a.KeyNorm); err != nil {
		return nil, nil, nil, err
	}
	return q, k, v, m.check(a.name, query)
}

// place normalises queries or keys, of shape (B, T, H·K), and turns them by their positions, as configured.
func (a *MultiHeadAttention) place(b *Build, x *G.Node, norm *RMSNorm) (*G.Node, error) {
	var err error
	if norm != nil {
		if x, err = norm.ForwardHeads(b, x, a.heads); err != nil {
			return nil, err
		}
	}
	if a.rotary != nil {
		return a.rotary.Forward(b, x, a.heads, nil)
	}
	return x, nil
}
