package layers

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// AdditiveAttention scores keys with a small network instead of a dot product (Bahdanau, Cho and Bengio, 2014, appendix
// A.1.2):
//
//	e_ij = vᵀ·tanh(W_q·q_i + W_k·k_j)
//	output_i = Σ_j softmax(e_i + M)_j·v_j
//
// There is one head, and neither the values nor the output are projected. With NoProjections, e_ij = vᵀ·tanh(q_i +
// k_j), as in Keras's AdditiveAttention. NoScale is Keras's use_scale=False.
//
// One op computes the scores. It stores nothing of size T×S×K, because the backward pass computes each tanh again.
// Scores and weights, of size T×S, are stored. Make one with NewAdditiveAttention.
type AdditiveAttention struct {
	Query, Key *Linear // W_q (K, Dim), W_k (K, KeyInput); nil with NoProjections
	Scale      *Param  // v (K); nil with NoScale

	dim, keyInput int
	dtype         tensor.Dtype
	dropout       float64
	name, scope   string
}

// AdditiveConfig describes an AdditiveAttention.
type AdditiveConfig struct {
	KeyInput int `json:"key_input,omitzero"` // width of the keys; the queries' width if 0
	Hidden   int `json:"hidden,omitzero"`    // width K of projected queries and keys; the queries' width if 0

	NoProjections bool `json:"no_projections,omitzero"` // leave out W_q and W_k; KeyInput and Hidden must then be 0 or the queries' width
	NoScale       bool `json:"no_scale,omitzero"`       // leave out v: each score is the sum of the K elements of the tanh

	Dropout float64 `json:"dropout,omitzero"` // probability of dropping an attention weight, in training
	Init    Init    `json:"init,omitzero"`    // for W_q, W_k and v; see Init
}

// NewAdditiveAttention makes an AdditiveAttention for queries of width dim. Its parameters are query.weight and
// key.weight, unless NoProjections, and scale.weight, unless NoScale. As in the paper, there are no biases.
func NewAdditiveAttention(p *Params, dim int, c AdditiveConfig) (*AdditiveAttention, error) {
	a := &AdditiveAttention{dtype: p.Dtype(), dropout: c.Dropout, name: p.scopeName("additive attention"), scope: p.scope()}
	c.KeyInput, c.Hidden = cmp.Or(c.KeyInput, dim), cmp.Or(c.Hidden, dim)
	if err := positive(a.name, size{"Dim", dim}, size{"KeyInput", c.KeyInput}, size{"Hidden", c.Hidden}); err != nil {
		return nil, err
	}
	if c.NoProjections && (c.KeyInput != dim || c.Hidden != dim) {
		return nil, fmt.Errorf("%s: with NoProjections, KeyInput and Hidden must be the queries' width, %d, got %d and %d", a.name, dim, c.KeyInput, c.Hidden)
	}
	if err := ops.CheckRate(a.name, c.Dropout); err != nil {
		return nil, err
	}
	a.dim, a.keyInput = dim, c.KeyInput
	var errs [3]error
	if !c.NoProjections {
		a.Query, errs[0] = NewLinear(p.Scope("query"), dim, c.Hidden, LinearConfig{NoBias: true, Init: c.Init})
		a.Key, errs[1] = NewLinear(p.Scope("key"), c.KeyInput, c.Hidden, LinearConfig{NoBias: true, Init: c.Init})
	}
	if !c.NoScale {
		a.Scale, errs[2] = p.Scope("scale").New("weight", c.Init, c.Hidden)
	}
	return a, cmp.Or(errs[0], errs[1], errs[2])
}

// Forward computes the attention of queries (B, T, Dim) to keys (B, S, KeyInput) with values (B, S, V), and returns (B,
// T, V). V may be any width. Without a batch axis, Forward returns (T, V). All inputs have the parameters' dtype. The
// mask applies to scores of shape (B, 1, T, S), where B is 1 without a batch axis.
func (a *AdditiveAttention) Forward(b *Build, query, key, value *G.Node, m Mask) (*G.Node, error) {
	if err := cmp.Or(checkSequence(a.name, "the query", query, a.dtype, a.dim), checkSequence(a.name, "the key", key, a.dtype, a.keyInput)); err != nil {
		return nil, err
	}
	q, k := query, key
	if a.Query != nil {
		var err error
		if q, err = a.Query.Forward(b, q); err != nil { // (B, T, Dim) -> (B, T, K)
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		if k, err = a.Key.Forward(b, k); err != nil { // (B, S, KeyInput) -> (B, S, K)
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
	}
	if m.Distances != nil {
		return nil, fmt.Errorf("%s: the mask can't have Distances, because scores aren't products of queries and keys", a.name)
	}
	inputs, err := ops.AttentionConfig{Name: a.name, Heads: 1, Mask: m.ops(), Dropout: a.dropout}.Inputs(b.Env(), q, k, value)
	if err != nil {
		return nil, err
	}
	st, err := compose(b, inputs, func(q, k *G.Node) (*G.Node, error) {
		scale, err := b.Bind(q.Graph(), a.Scale)
		if err != nil {
			return nil, err
		}
		return ops.AdditiveScores(b.Env(), q, k, scale) // (B, 1, T, K) and (B, 1, S, K) -> (B, 1, T, S)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	if b.CaptureWeights {
		b.captured = append(b.captured, AttentionWeights{Layer: a.scope, Weights: st.Dropped})
	}
	return st.Output, nil // (B, T, V)
}
