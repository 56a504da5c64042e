package layers

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// MultiHeadAttention projects queries, keys and values with learned weights, computes attention in each head, and
// projects the heads' outputs (Vaswani et al., 2017, section 3.2.2):
//
//	head_h = softmax(Q_h·K_hᵀ/√K + M)·V_h,  Q = x·W_qᵀ + b_q, K = y·W_kᵀ + b_k, V = z·W_vᵀ + b_v
//	output = concat(head_1, …, head_H)·W_oᵀ + b_o
//
// In self-attention, query, key and value are the same sequence. In cross-attention, keys and values come from another
// sequence. Each of the four weights is a parameter with its own gradient. Several query heads may share one key and
// value head (Shazeer, 2019; Ainslie et al., GQA, 2023). With G key and value heads, the projected keys have width G·K,
// and the projected values have width G·V.
//
// Make one with NewMultiHeadAttention.
type MultiHeadAttention struct {
	Query, Key, Value *Linear // W_q (H·K, Dim), W_k (G·K, KeyInput), W_v (G·V, ValueInput); other inputs with a Latent
	Output            *Linear // W_o (Dim, H·V); nil with NoOutput

	QueryNorm, KeyNorm *Norm // (K), or (H·K) and (G·K) with JointNorm; nil without QKNorm

	Sinks *Param  // a score for each head, (H); nil for none
	Gate  *Linear // (H·V, Dim); nil without OutputGate

	// Latent has the parts of latent attention; nil for none. The input of Key and Value is then C wide, and the input
	// of Query is Q wide if there is a QueryRank.
	Latent *Latent

	DistanceKeys, DistanceQueries *Linear // for Disentangled positions, in place of Key and Query; nil for none

	// Positions is the position scheme for queries, keys and scores; nil for none. With a scheme, queries and keys must
	// be tokens of the same sequence. The Build's Positions, if not nil, are the positions of these tokens. Encoders
	// and Decoders set this field in their blocks.
	Positions Positions

	Score ScoreFunc // changes the scores; nil for none: see AttentionOptions

	heads, groups int
	jointNorm     bool
	options       AttentionOptions // its mask has only a Window; attend adds the rest
	name          string
	scope         string
}

// AttentionConfig describes a MultiHeadAttention.
type AttentionConfig struct {
	Heads int `json:"heads,omitzero"` // number of heads, H; 1 if 0

	// KeyValueHeads is the number of key and value heads, G; Heads if 0. Heads must be a multiple of KeyValueHeads.
	KeyValueHeads int `json:"key_value_heads,omitzero"`

	HeadDim    int `json:"head_dim,omitzero"`    // width of a head's queries and keys, K; 0 means D/H, and H must then divide D
	ValueDim   int `json:"value_dim,omitzero"`   // width of a head's values, V; HeadDim if 0
	KeyInput   int `json:"key_input,omitzero"`   // width of Forward's argument key; D if 0
	ValueInput int `json:"value_input,omitzero"` // width of Forward's argument value; KeyInput if 0

	// QKNorm applies one Norm of kind rms to the queries of all heads and a second one to the keys, before any rotation
	// (Henry et al., 2020; Dehghani et al., 2023). It adds the parameters querynorm.weight and keynorm.weight.
	QKNorm  bool    `json:"qk_norm,omitzero"`
	NormEps float64 `json:"norm_eps,omitzero"` // Eps of these Norms, or of the Norms of Latent; 1e-6 if 0

	// JointNorm lets these Norms normalise all heads of a token together, with weights (H·K) and (G·K), as in OLMo 2
	// (2024). It needs QKNorm.
	JointNorm bool `json:"joint_norm,omitzero"`

	// Sinks adds the parameter sinks, a learned score for each head, to the softmax of every query. A head whose sink
	// is large attends to little: see AttentionOptions.Sinks.
	Sinks bool `json:"sinks,omitzero"`

	// OutputGate multiplies the heads' outputs by σ(query·Wᵀ + b), element by element, before the output projection
	// (Qiu et al., Gated Attention, 2025; Qwen3-Next). It adds the parameters gate.weight and, unless NoBias,
	// gate.bias.
	OutputGate bool `json:"output_gate,omitzero"`

	Latent *LatentConfig `json:"latent,omitzero"` // keys and values from latent vectors; nil for none

	TieQueryKey bool `json:"tie_query_key,omitzero"` // use one layer for Query and Key: W_k is W_q and b_k is b_q

	// Window lets each query attend only to nearby keys; nil for no limit. If the mask has a Window too, a query
	// attends to the keys in both. In a block, only self-attention has the Window.
	Window *Window `json:"window,omitzero"`

	Scale   float64 `json:"scale,omitzero"`   // factor for the scores; 1/√K if 0, except with Disentangled positions
	Softcap float64 `json:"softcap,omitzero"` // limits the scores to ±Softcap, see AttentionOptions; 0 for none

	NoBias     bool  `json:"no_bias,omitzero"`     // leave out b_q, b_k, b_v and b_o
	OutputBias *bool `json:"output_bias,omitzero"` // whether there is b_o; nil means that NoBias decides
	NoKeyBias  bool  `json:"no_key_bias,omitzero"` // leave out b_k

	NoOutput bool    `json:"no_output,omitzero"` // leave out W_o: the output is the heads side by side, with width H·V
	Dropout  float64 `json:"dropout,omitzero"`   // probability of dropping an attention weight, in training
	Init     Init    `json:"init,omitzero"`      // for the four weights; see Init

	// DistanceKeys and DistanceQueries add weights with which the layer projects the vectors of Disentangled positions,
	// in place of W_k and W_q. Their scopes are distancekeys and distancequeries.
	DistanceKeys    bool `json:"distance_keys,omitzero"`
	DistanceQueries bool `json:"distance_queries,omitzero"`

	// OutputInit is the Init of W_o; the zero Init means the field Init. GPT-2 multiplies the standard deviation by
	// 1/√(2·Layers) for W_o and for the weight of down in a FeedForward.
	OutputInit Init `json:"output_init,omitzero"`
}

// HeadWidth returns the width of a head's queries and keys, for queries of width dim. It is HeadDim or, if that is 0,
// dim/Heads. If this isn't a whole number, HeadWidth returns false.
func (c AttentionConfig) HeadWidth(dim int) (width int, whole bool) {
	if c.HeadDim != 0 {
		return c.HeadDim, true
	}
	heads := cmp.Or(c.Heads, 1)
	return dim / heads, dim%heads == 0
}

// PositionWidth returns the width of the part of a head's queries and keys that positions change: HeadWidth or, with
// Latent, RotaryDim.
func (c AttentionConfig) PositionWidth(dim int) (width int, whole bool) {
	if c.Latent != nil {
		return c.Latent.RotaryDim, true
	}
	return c.HeadWidth(dim)
}

// withDefaults replaces sizes of 0 by their defaults, for queries of width dim. It returns an error if the sizes don't
// fit together.
func (c AttentionConfig) withDefaults(layer string, dim int) (AttentionConfig, error) {
	c.Heads = cmp.Or(c.Heads, 1)
	c.KeyValueHeads = cmp.Or(c.KeyValueHeads, c.Heads)
	if err := positive(layer, size{"Dim", dim}, size{"Heads", c.Heads}); err != nil {
		return c, err
	}
	var whole bool
	if c.HeadDim, whole = c.HeadWidth(dim); !whole {
		return c, fmt.Errorf("%s: Dim must be a multiple of Heads unless HeadDim is set, got a Dim of %d for %d heads", layer, dim, c.Heads)
	}
	c.ValueDim = cmp.Or(c.ValueDim, c.HeadDim)
	c.KeyInput = cmp.Or(c.KeyInput, dim)
	c.ValueInput = cmp.Or(c.ValueInput, c.KeyInput)
	err := positive(layer, size{"HeadDim", c.HeadDim}, size{"ValueDim", c.ValueDim}, size{"KeyInput", c.KeyInput}, size{"ValueInput", c.ValueInput})
	return c, err
}

// NewMultiHeadAttention makes a MultiHeadAttention for queries of width dim, D. Its parameters are query.weight,
// key.weight, value.weight and output.weight and, unless NoBias, a bias for each, such as query.bias. OutputBias
// overrides NoBias for output.bias. A setting such as QKNorm adds others.
func NewMultiHeadAttention(p *Params, dim int, c AttentionConfig) (*MultiHeadAttention, error) {
	a := &MultiHeadAttention{name: p.scopeName("attention"), scope: p.scope()}
	c, err := c.withDefaults(a.name, dim)
	switch {
	case err != nil:
		return nil, err
	case c.NormEps != 0 && !c.QKNorm && c.Latent == nil:
		return nil, fmt.Errorf("%s: NormEps needs QKNorm: set QKNorm or leave NormEps at 0, got %v", a.name, c.NormEps)
	case c.JointNorm && !c.QKNorm:
		return nil, fmt.Errorf("%s: JointNorm needs QKNorm: set QKNorm or leave out JointNorm", a.name)
	case c.TieQueryKey && c.KeyInput != dim:
		return nil, fmt.Errorf("%s: TieQueryKey needs keys of the queries' width, %d, got a KeyInput of %d", a.name, dim, c.KeyInput)
	case c.TieQueryKey && c.KeyValueHeads != c.Heads:
		return nil, fmt.Errorf("%s: TieQueryKey needs one key head per query head: KeyValueHeads must be %d, got %d", a.name, c.Heads, c.KeyValueHeads)
	case c.Window != nil && !c.Window.valid():
		return nil, fmt.Errorf("%s: the sides of Window must be at least 0, or −1 for no limit, got %+v", a.name, *c.Window)
	case c.TieQueryKey && c.NoKeyBias:
		return nil, fmt.Errorf("%s: TieQueryKey and NoKeyBias can't be combined, because b_k is then b_q: choose one", a.name)
	case c.OutputBias != nil && c.NoOutput:
		return nil, fmt.Errorf("%s: OutputBias needs an output projection: leave OutputBias nil, or leave out NoOutput", a.name)
	}
	a.heads, a.groups, a.jointNorm = c.Heads, c.KeyValueHeads, c.JointNorm
	a.options = AttentionOptions{Scale: c.Scale, Softcap: c.Softcap, Dropout: c.Dropout, Heads: c.Heads, KeyValueHeads: c.KeyValueHeads, Mask: Mask{Window: c.Window}, layer: a.name}
	if err := a.options.ops().Check(a.name); err != nil {
		return nil, err
	}

	queryInput, keyInput, valueInput := dim, c.KeyInput, c.ValueInput
	if l := c.Latent; l != nil {
		if a.Latent, err = newLatent(p, a.name, dim, c); err != nil {
			return nil, err
		}
		queryInput, keyInput, valueInput = cmp.Or(l.QueryRank, dim), l.Rank, l.Rank
		a.options.Scale = cmp.Or(c.Scale, 1/math.Sqrt(float64(c.HeadDim+l.RotaryDim))) // also for keys that aren't so wide
	}
	type part struct {
		layer   **Linear
		name    string
		in, out int
		init    Init
	}
	parts := []part{
		{&a.Query, "query", queryInput, memory.Product(c.Heads, c.HeadDim), c.Init},
		{&a.Key, "key", keyInput, memory.Product(c.KeyValueHeads, c.HeadDim), c.Init},
		{&a.Value, "value", valueInput, memory.Product(c.KeyValueHeads, c.ValueDim), c.Init},
		{&a.Output, "output", memory.Product(c.Heads, c.ValueDim), dim, c.OutputInit.or(c.Init)},
		{&a.Gate, "gate", dim, memory.Product(c.Heads, c.ValueDim), c.Init},
	}
	if c.DistanceKeys {
		parts = append(parts, part{&a.DistanceKeys, "distancekeys", dim, parts[1].out, c.Init})
	}
	if c.DistanceQueries {
		parts = append(parts, part{&a.DistanceQueries, "distancequeries", dim, parts[0].out, c.Init})
	}
	for _, part := range parts {
		switch {
		case part.name == "key" && c.TieQueryKey:
			a.Key = a.Query
			continue
		case part.name == "output" && c.NoOutput, part.name == "gate" && !c.OutputGate:
			continue
		}
		noBias := c.NoBias
		switch {
		case c.Latent != nil && (part.name == "query" || part.name == "key" || part.name == "value"):
			noBias = true
		case part.name == "output" && c.OutputBias != nil:
			noBias = !*c.OutputBias
		case part.name == "key" || part.name == "distancekeys":
			noBias = c.NoBias || c.NoKeyBias
		}
		if *part.layer, err = NewLinear(p.Scope(part.name), part.in, part.out, LinearConfig{NoBias: noBias, Init: part.init}); err != nil {
			return nil, err
		}
	}
	if c.Sinks {
		if a.Sinks, err = p.New("sinks", Zeros(), c.Heads); err != nil {
			return nil, err
		}
	}
	if !c.QKNorm {
		return a, nil
	}
	norm, queries, keys := NormConfig{Kind: "rms", Eps: c.NormEps}, c.HeadDim, c.HeadDim
	if c.JointNorm {
		queries, keys = c.Heads*c.HeadDim, c.KeyValueHeads*c.HeadDim
	}
	var err2 error
	a.QueryNorm, err = NewNorm(p.Scope("querynorm"), queries, norm)
	a.KeyNorm, err2 = NewNorm(p.Scope("keynorm"), keys, norm)
	return a, cmp.Or(err, err2)
}

// Forward computes the attention of queries (B, T, Dim) to keys (B, S, KeyInput) with values (B, S, ValueInput). It
// returns (B, T, Dim), or (B, T, H·V) with NoOutput. The batch axis may be omitted. The mask applies to scores of shape
// (B, H, T, S), where B is 1 without a batch axis.
//
// Between the projections, attention is one op that doesn't keep the weights, unless the Build has CaptureWeights or
// Composed set.
func (a *MultiHeadAttention) Forward(b *Build, query, key, value *G.Node, m Mask) (*G.Node, error) {
	q, projected, err := a.queries(b, query, b.Positions) // (B, T, Dim) -> (B, T, H·K)
	if err != nil {
		return nil, err
	}
	k, v, err := a.keysAndValues(b, key, value, b.Positions, projected) // (B, S, KeyInput), (B, S, ValueInput) -> (B, S, G·K), (B, S, G·V)
	if err != nil {
		return nil, err
	}
	if m, err = a.mask(b, q, k, b.Positions, m); err != nil { // for scores (B, H, T, S)
		return nil, err
	}
	return a.attend(b, query, q, k, v, m) // (B, T, Dim)
}

// attend computes attention in every head, and gates and projects the outputs. The argument query is the layer's input.
func (a *MultiHeadAttention) attend(b *Build, query, q, k, v *G.Node, m Mask) (*G.Node, error) {
	heads, err := a.weigh(b, q, k, v, m, a.groups)
	if err != nil {
		return nil, err
	}
	return a.finish(b, query, heads)
}

// weigh computes attention in every head, with the given number of heads of keys and values.
func (a *MultiHeadAttention) weigh(b *Build, q, k, v *G.Node, m Mask, groups int) (heads *G.Node, err error) {
	o := a.options
	o.KeyValueHeads = groups
	if o.Sinks, err = b.Bind(q.Graph(), a.Sinks); err != nil {
		return nil, err
	}
	m.Window = o.Mask.Window.and(m.Window)
	o.Mask, o.Score = m, a.Score
	if o.Scale == 0 && m.Distances != nil {
		o.Scale = 1 / math.Sqrt(float64(m.Distances.products()*q.Shape()[q.Dims()-1]/a.heads))
	}
	if b.CaptureWeights {
		st, _, err := composed(b, q, k, v, o)
		if err != nil {
			return nil, err
		}
		b.captured = append(b.captured, AttentionWeights{Layer: a.scope, Weights: st.Dropped})
		return st.Output, nil
	}
	return ScaledDotProduct(b, q, k, v, o) // (B, T, H·K), (B, S, G·K), (B, S, G·V) -> (B, T, H·V)
}

// finish gates and projects the outputs of the heads.
func (a *MultiHeadAttention) finish(b *Build, query, heads *G.Node) (*G.Node, error) {
	if a.Gate != nil {
		gate, err := a.Gate.Forward(b, query) // (B, T, Dim) -> (B, T, H·V)
		if err != nil {
			return nil, err
		}
		if heads, err = ops.Gate(b.Env(), gate, heads, ops.Sigmoid); err != nil {
			return nil, err
		}
	}
	if a.Output == nil {
		return heads, nil
	}
	return a.Output.Forward(b, heads) // (B, T, H·V) -> (B, T, Dim)
}

// queries projects queries, normalises each head and rotates them by their positions: (B, T, Dim) -> (B, T, H·K). It
// also returns the queries that are only projected, or nil with Latent.
func (a *MultiHeadAttention) queries(b *Build, x, positions *G.Node) (q, projected *G.Node, err error) {
	if a.Latent != nil {
		content, rotary, err := a.latentQueries(b, x, positions)
		if err != nil {
			return nil, nil, err
		}
		q, err = a.join(b, content, rotary, a.heads)
		return q, nil, err
	}
	if projected, err = a.project(b, a.Query, "the query", x, nil); err != nil {
		return nil, nil, err
	}
	q, err = a.place(b, projected, a.QueryNorm, a.heads, positions)
	return q, projected, err
}

// keysAndValues projects, normalises and rotates keys: (B, S, KeyInput) -> (B, S, G·K). It only projects values: (B, S,
// ValueInput) -> (B, S, G·V). The argument query is the projected query, or nil if its gradient isn't needed.
func (a *MultiHeadAttention) keysAndValues(b *Build, key, value, positions, query *G.Node) (k, v *G.Node, err error) {
	if a.Latent != nil {
		c, rotary, err := a.latents(b, key, value, positions)
		if err != nil {
			return nil, nil, err
		}
		return a.expand(b, c, rotary)
	}
	if a.Key == a.Query { // then it is the same node if its input is the same
		query = nil
	}
	projected, err := a.project(b, a.Key, "the key", key, query)
	if err != nil {
		return nil, nil, err
	}
	if k, err = a.place(b, projected, a.KeyNorm, a.groups, positions); err != nil {
		return nil, nil, err
	}
	v, err = a.project(b, a.Value, "the value", value, projected)
	return k, v, err
}

// project applies one input projection. Its output has the heads side by side. The argument earlier is the projection
// before, whose input may be x too, or nil.
func (a *MultiHeadAttention) project(b *Build, l *Linear, what string, x, earlier *G.Node) (*G.Node, error) {
	if err := checkSequence(a.name, what, x, l.Weight.Value.Dtype(), l.Weight.Value.Shape()[1]); err != nil {
		return nil, err
	}
	return ops.Following(b.Env(), x, earlier, func() (*G.Node, error) { return l.Forward(b, x) })
}

// place normalises the heads of queries or keys, of shape (B, T, heads·K), if norm isn't nil. It rotates them by their
// positions if there are Positions.
func (a *MultiHeadAttention) place(b *Build, x *G.Node, norm *Norm, heads int, positions *G.Node) (_ *G.Node, err error) {
	if norm != nil {
		groups := heads
		if a.jointNorm {
			groups = 1
		}
		if x, err = norm.forwardHeads(b, x, groups); err != nil {
			return nil, err
		}
	}
	if a.Positions != nil {
		return a.Positions.Rotate(b, x, heads, positions)
	}
	return x, nil
}

// mask returns m with the additions of the Positions, if any. The queries q have shape (B, T, H·K), and the keys k have
// shape (B, S, G·K).
func (a *MultiHeadAttention) mask(b *Build, q, k, positions *G.Node, m Mask) (Mask, error) {
	if a.Positions == nil {
		return m, nil
	}
	m, err := a.Positions.Score(b, q, k, positions, m)
	if err != nil {
		return m, fmt.Errorf("%s: %w", a.name, err)
	}
	m.Distances, err = a.distances(b, m.Distances)
	return m, err
}

// distances projects the vectors of d, unless they are projected already.
func (a *MultiHeadAttention) distances(b *Build, d *Distances) (_ *Distances, err error) {
	if d == nil || !d.bare {
		return d, nil
	}
	projected := *d
	projected.bare = false
	if d.Keys != nil {
		projected.Keys, err = cmp.Or(a.DistanceKeys, a.Key).Forward(b, d.Keys) // (R, D) -> (R, G·K)
	}
	if d.Queries != nil && err == nil {
		projected.Queries, err = cmp.Or(a.DistanceQueries, a.Query).Forward(b, d.Queries) // (R, D) -> (R, H·K)
	}
	return &projected, err
}
