package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
)

// MultiHeadAttention projects queries, keys and values with learned weights, lets every head attend on its own, and
// projects what the heads found (Vaswani et al., 2017, section 3.2.2):
//
//	head_h = softmax(Q_h·K_hᵀ/√K + M)·V_h,  Q = x·W_qᵀ + b_q, K = y·W_kᵀ + b_k, V = z·W_vᵀ + b_v
//	output = concat(head_1, …, head_H)·W_oᵀ + b_o
//
// Given one sequence three times it is self-attention; with keys and values from another one, cross-attention. The four
// weights are parameters of their own, so that each has its gradient. Several heads of queries may share one of keys and
// values (Shazeer, 2019; Ainslie et al., GQA, 2023): there are then G heads of these, G·K and G·V wide.
type MultiHeadAttention struct {
	Query, Key, Value *Linear // W_q (H·K, Dim), W_k (G·K, KeyInput), W_v (G·V, ValueInput)
	Output            *Linear // W_o (Dim, H·V); nil with NoOutput

	QueryNorm, KeyNorm *RMSNorm // (K); nil without QKNorm

	heads, groups int
	options       AttentionOptions // but for the mask
	name          string
	scope         string
	rotary        *Rotary
}

// MultiHeadConfig describes a MultiHeadAttention.
type MultiHeadConfig struct {
	Dim   int // width of the queries and of the output
	Heads int // number of heads, H; 1 if 0

	KeyValueHeads int // number of heads of keys and values, G, which Heads must be a multiple of; Heads if 0

	HeadDim    int // width of a head's queries and keys, K; Dim/Heads if 0, which Heads must divide
	ValueDim   int // width of a head's values, V; HeadDim if 0
	KeyInput   int // width of the keys that Forward is given; Dim if 0
	ValueInput int // width of the values that Forward is given; KeyInput if 0

	// Rotary turns queries and keys by their positions, those of the Build if it has any; nil for none. It is copied.
	Rotary *Rotary

	// QKNorm normalises every head's queries and keys with RMSNorms of their own, before they are turned (Henry et al.,
	// 2020; Dehghani et al., 2023): the parameters querynorm.weight and keynorm.weight.
	QKNorm  bool
	NormEps float64 // of these RMSNorms; 1e-6 if 0

	TieQueryKey bool // W_k is W_q and b_k is b_q: Key is Query, one layer

	Scale   float64 // of the scores; 1/√K if 0
	Softcap float64 // bounds the scores: see AttentionOptions; 0 for none

	NoBias   bool    // leave out b_q, b_k, b_v and b_o
	NoOutput bool    // leave out W_o: the output is the heads side by side, of width H·V
	Dropout  float64 // probability of dropping an attention weight, in training
	Init     Init    // of the four weights; XavierUniform if nil
}

// NewMultiHeadAttention makes a MultiHeadAttention with the parameters query.weight, key.weight, value.weight,
// output.weight and the biases beside them.
func NewMultiHeadAttention(p *Params, c MultiHeadConfig) (*MultiHeadAttention, error) {
	a := &MultiHeadAttention{name: p.scopeName("attention"), scope: p.scope()}
	if c.Heads == 0 {
		c.Heads = 1
	}
	if c.KeyValueHeads == 0 {
		c.KeyValueHeads = c.Heads
	}
	if err := positive(a.name, size{"Dim", c.Dim}, size{"Heads", c.Heads}, size{"KeyValueHeads", c.KeyValueHeads}); err != nil {
		return nil, err
	}
	if c.Heads%c.KeyValueHeads != 0 {
		return nil, fmt.Errorf("%s: Heads must be a multiple of KeyValueHeads, got %d and %d", a.name, c.Heads, c.KeyValueHeads)
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
	if c.TieQueryKey && c.KeyValueHeads != c.Heads {
		return nil, fmt.Errorf("%s: TieQueryKey needs as many heads of keys as of queries, %d, got %d", a.name, c.Heads, c.KeyValueHeads)
	}
	a.heads, a.groups = c.Heads, c.KeyValueHeads
	a.options = AttentionOptions{Scale: c.Scale, Softcap: c.Softcap, Dropout: c.Dropout, Heads: c.Heads, KeyValueHeads: c.KeyValueHeads, layer: a.name}
	if err := a.options.ops().Check(a.name); err != nil {
		return nil, err
	}
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
		{&a.Key, "key", c.KeyInput, c.KeyValueHeads * c.HeadDim},
		{&a.Value, "value", c.ValueInput, c.KeyValueHeads * c.ValueDim},
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
	if a.QueryNorm, err = NewRMSNorm(p.Scope("querynorm"), RMSNormConfig{Dim: c.HeadDim, Eps: c.NormEps}); err != nil {
		return nil, err
	}
	a.KeyNorm, err = NewRMSNorm(p.Scope("keynorm"), RMSNormConfig{Dim: c.HeadDim, Eps: c.NormEps})
	return a, err
}

// Forward attends from query, of shape (B, T, Dim), to key, (B, S, KeyInput), and value, (B, S, ValueInput), and returns
// (B, T, Dim), or (B, T, H·V) with NoOutput. Without a batch axis, (T, Dim) gives (T, Dim), and counts as a batch of 1
// to the mask. The mask meets scores of shape (B, H, T, S).
//
// Attention is one op that keeps no weights, as in ScaledDotProduct, unless the Build captures them or says Composed.
func (a *MultiHeadAttention) Forward(b *Build, query, key, value *G.Node, m Mask) (*G.Node, error) {
	q, k, v, err := a.project(b, query, key, value, b.positions())
	if err != nil {
		return nil, err
	}
	return a.attend(b, q, k, v, m)
}

// ForwardWeights is Forward by separate ops, and returns the attention weights, of shape (B, H, T, S), as well: in a
// training graph with dropout, what dropout left of them, scaled. B is 1 without a batch axis.
func (a *MultiHeadAttention) ForwardWeights(b *Build, query, key, value *G.Node, m Mask) (out, weights *G.Node, err error) {
	q, k, v, err := a.project(b, query, key, value, b.positions())
	if err != nil {
		return nil, nil, err
	}
	st, err := a.stages(b, q, k, v, m)
	if err != nil {
		return nil, nil, err
	}
	out, err = a.output(b, st.Output)
	return out, st.Dropped, err
}

// attend is Forward after the input projections.
func (a *MultiHeadAttention) attend(b *Build, q, k, v *G.Node, m Mask) (*G.Node, error) {
	if b.CaptureWeights {
		st, err := a.stages(b, q, k, v, m)
		if err != nil {
			return nil, err
		}
		return a.output(b, st.Output)
	}
	o := a.options
	o.Mask = m
	out, err := ScaledDotProduct(b, q, k, v, o) // (B, T, H·K), (B, S, G·K), (B, S, G·V) -> (B, T, H·V)
	if err != nil {
		return nil, err
	}
	return a.output(b, out)
}

// stages attends by separate ops.
func (a *MultiHeadAttention) stages(b *Build, q, k, v *G.Node, m Mask) (Stages, error) {
	o := a.options
	o.Mask = m
	st, err := ScaledDotProductStages(b, q, k, v, o)
	if err != nil {
		return st, err
	}
	if b.CaptureWeights {
		b.captured = append(b.captured, Captured{Layer: a.scope, Weights: st.Dropped})
	}
	return st, nil
}

// output applies the output projection: (B, T, H·V) -> (B, T, Dim).
func (a *MultiHeadAttention) output(b *Build, heads *G.Node) (*G.Node, error) {
	if a.Output == nil {
		return heads, nil
	}
	return a.Output.Forward(b, heads)
}

// project applies the input projections, each giving the heads side by side: (B, T, D) -> (B, T, H·K). positions are those
// of queries and keys, as Rotary takes them.
func (a *MultiHeadAttention) project(b *Build, query, key, value, positions *G.Node) (q, k, v *G.Node, err error) {
	if q, err = a.projectQuery(b, query, positions); err != nil {
		return nil, nil, nil, err
	}
	k, v, err = a.projectKeys(b, key, value, positions)
	return q, k, v, err
}

// projectQuery is the queries: (B, T, Dim) -> (B, T, H·K).
func (a *MultiHeadAttention) projectQuery(b *Build, query, positions *G.Node) (*G.Node, error) {
	q, err := a.linear(b, a.Query, "the query", query)
	if err != nil {
		return nil, err
	}
	return a.place(b, q, a.QueryNorm, a.heads, positions)
}

// projectKeys is the keys and values: (B, S, KeyInput) -> (B, S, G·K) and (B, S, ValueInput) -> (B, S, G·V).
func (a *MultiHeadAttention) projectKeys(b *Build, key, value, positions *G.Node) (k, v *G.Node, err error) {
	if k, err = a.linear(b, a.Key, "the key", key); err != nil {
		return nil, nil, err
	}
	if k, err = a.place(b, k, a.KeyNorm, a.groups, positions); err != nil {
		return nil, nil, err
	}
	v, err = a.linear(b, a.Value, "the value", value)
	return k, v, err
}

// linear applies one input projection.
func (a *MultiHeadAttention) linear(b *Build, l *Linear, what string, x *G.Node) (*G.Node, error) {
	if err := checkSequence(a.name, what, x, l.Weight.Value.Dtype(), l.Weight.Value.Shape()[1]); err != nil {
		return nil, err
	}
	return l.Forward(b, x)
}

// place normalises queries or keys, of shape (B, T, heads·K), and turns them by their positions, as configured.
func (a *MultiHeadAttention) place(b *Build, x *G.Node, norm *RMSNorm, heads int, positions *G.Node) (*G.Node, error) {
	var err error
	if norm != nil {
		if x, err = norm.ForwardHeads(b, x, heads); err != nil {
			return nil, err
		}
	}
	if a.rotary != nil {
		return a.rotary.Forward(b, x, heads, positions)
	}
	return x, nil
}
