package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// AdditiveAttention scores keys by a small network in place of a product (Bahdanau, Cho and Bengio, 2014, appendix A.1.2):
//
//	e_ij = vᵀ·tanh(W_q·q_i + W_k·k_j)
//	output_i = Σ_j softmax(e_i + M)_j·v_j
//
// It has one head, and neither the values nor the output are projected. With NoProjections, e_ij = vᵀ·tanh(q_i + k_j) as
// in Keras's AdditiveAttention, whose use_scale=False NoScale is.
//
// The scores are one op that keeps nothing of size T×S×K: backward, it takes each tanh again. Scores and weights, of size
// T×S, are kept.
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
	KeyInput int `json:"key_input,omitzero"` // width of the keys; that of the queries if 0
	Hidden   int `json:"hidden,omitzero"`    // width K that queries and keys are projected to; that of the queries if 0

	NoProjections bool `json:"no_projections,omitzero"` // leave out W_q and W_k: KeyInput and Hidden must then be the queries' width
	NoScale       bool `json:"no_scale,omitzero"`       // leave out v, which then counts as ones

	Dropout float64 `json:"dropout,omitzero"` // probability of dropping an attention weight, in training
	Init    Init    `json:"init,omitzero"`    // of W_q, W_k and v; see Init
}

// NewAdditiveAttention makes an AdditiveAttention for queries of width dim, with the parameters query.weight, key.weight
// and scale.weight, but for those that the configuration leaves out. There are no biases, as in the paper.
func NewAdditiveAttention(p *Params, dim int, c AdditiveConfig) (*AdditiveAttention, error) {
	a := &AdditiveAttention{dtype: p.Dtype(), dropout: c.Dropout, name: p.scopeName("additive attention"), scope: p.scope()}
	if c.KeyInput == 0 {
		c.KeyInput = dim
	}
	if c.Hidden == 0 {
		c.Hidden = dim
	}
	if err := positive(a.name, size{"Dim", dim}, size{"KeyInput", c.KeyInput}, size{"Hidden", c.Hidden}); err != nil {
		return nil, err
	}
	if c.NoProjections && (c.KeyInput != dim || c.Hidden != dim) {
		return nil, fmt.Errorf("%s: NoProjections needs keys and a Hidden of the queries' width, %d, got a KeyInput of %d and a Hidden of %d", a.name, dim, c.KeyInput, c.Hidden)
	}
	if err := ops.CheckRate(a.name, c.Dropout); err != nil {
		return nil, err
	}
	a.dim, a.keyInput = dim, c.KeyInput
	var err error
	if !c.NoProjections {
		if a.Query, err = NewLinear(p.Scope("query"), dim, c.Hidden, LinearConfig{NoBias: true, Init: c.Init}); err != nil {
			return nil, err
		}
		if a.Key, err = NewLinear(p.Scope("key"), c.KeyInput, c.Hidden, LinearConfig{NoBias: true, Init: c.Init}); err != nil {
			return nil, err
		}
	}
	if !c.NoScale {
		a.Scale, err = p.Scope("scale").New("weight", c.Init, c.Hidden)
	}
	return a, err
}

// Forward attends from query, of shape (B, T, Dim), to key, (B, S, KeyInput), and value, (B, S, V) of any width, and
// returns (B, T, V). Without a batch axis, (T, Dim) gives (T, V), and counts as a batch of 1 to the mask. All have the
// dtype of the parameters, float32 or float64. The mask meets scores of shape (B, 1, T, S), as that of a
// MultiHeadAttention with one head does, and means the same.
func (a *AdditiveAttention) Forward(b *Build, query, key, value *G.Node, m Mask) (*G.Node, error) {
	if err := a.check(b, query, key, value, m); err != nil {
		return nil, err
	}
	out, weights, err := a.attend(b, query, key, value, m.ops())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	if b.CaptureWeights {
		b.captured = append(b.captured, Captured{Layer: a.scope, Weights: weights})
	}
	return out, nil
}

// check checks what Forward is given.
func (a *AdditiveAttention) check(b *Build, query, key, value *G.Node, m Mask) error {
	if b == nil {
		return fmt.Errorf("%s: %w", a.name, errNoBuild)
	}
	if err := checkSequence(a.name, "the query", query, a.dtype, a.dim); err != nil {
		return err
	}
	if err := checkSequence(a.name, "the key", key, a.dtype, a.keyInput); err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("%s: the value is nil", a.name)
	}
	if dt := value.Dtype(); dt != a.dtype {
		return fmt.Errorf("%s: the value must be %v, as the parameters are, got %v", a.name, a.dtype, dt)
	}
	if key.Graph() != query.Graph() || value.Graph() != query.Graph() {
		return fmt.Errorf("%s: the key or the value belongs to another graph than the query", a.name)
	}
	qs, ks, vs := query.Shape(), key.Shape(), value.Shape()
	r := len(qs)
	if len(ks) != r || len(vs) != r || r == 3 && (qs[0] != ks[0] || ks[0] != vs[0]) || ks[r-2] != vs[r-2] {
		return fmt.Errorf("%s: query (B, T, D), key (B, S, D) and value (B, S, V) must agree in B and S, got %v, %v and %v", a.name, qs, ks, vs)
	}
	return m.ops().Check(a.name, tensor.Shape{batchOf(qs, 2), 1, qs[r-2], ks[r-2]}, query)
}

// attend is Forward after its checks; it returns the weights, (B, 1, T, S), too.
func (a *AdditiveAttention) attend(b *Build, query, key, value *G.Node, m ops.Mask) (out, weights *G.Node, err error) {
	q, k, v := query, key, value
	if a.Query != nil {
		if q, err = a.Query.Forward(b, q); err != nil { // (B, T, Dim) -> (B, T, K)
			return nil, nil, err
		}
		if k, err = a.Key.Forward(b, k); err != nil { // (B, S, KeyInput) -> (B, S, K)
			return nil, nil, err
		}
	}
	for _, x := range []**G.Node{&q, &k, &v} {
		if *x, err = ops.SplitHeads(b.env(), *x, 1); err != nil { // (B, T, K) -> (B, 1, T, K)
			return nil, nil, err
		}
	}
	var scale *G.Node
	if a.Scale != nil {
		if scale, err = b.Bind(query.Graph(), a.Scale); err != nil {
			return nil, nil, err
		}
	}
	scores, err := ops.AdditiveScores(b.env(), q, k, scale) // (B, 1, T, K) and (B, 1, S, K) -> (B, 1, T, S)
	if err != nil {
		return nil, nil, err
	}
	if weights, err = ops.Softmax(b.env(), scores, m); err != nil {
		return nil, nil, err
	}
	if weights, err = ops.Dropout(b.env(), weights, a.dropout); err != nil {
		return nil, nil, err
	}
	if out, err = ops.MatMul(b.env(), weights, v, false, false, 1, true); err != nil { // (B, 1, T, S) x (B, 1, S, V) -> (B, 1, T, V)
		return nil, nil, err
	}
	out, err = ops.MergeHeads(b.env(), out, query.Dims() == 3) // (B, 1, T, V) -> (B, T, V)
	return out, weights, err
}
