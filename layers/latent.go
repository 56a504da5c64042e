package layers

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// LatentConfig describes multi-head latent attention (DeepSeek-V2, 2024): keys and values are computed from a narrow
// latent vector for each token, c = norm(y·Wᵀ), and a Cache keeps only this vector and one rotated key. A head's
// queries and keys have two parts, which lie side by side. The first, of width HeadDim, has no positions. The second,
// of width RotaryDim, gets the positions; all heads have the same second part of the key.
//
// The widths of queries and keys are HeadDim + RotaryDim, and Scale is 1/√(HeadDim + RotaryDim) if it is 0. Unless
// NoBias, the layers latent, rotarykey, querylatent and output have biases; the others never have. There can be no
// QKNorm, TieQueryKey, KeyValueHeads, DistanceKeys, DistanceQueries and NoKeyBias, and no Disentangled positions.
type LatentConfig struct {
	Rank      int `json:"rank,omitzero"`       // width of the latent vectors of keys and values, C
	RotaryDim int `json:"rotary_dim,omitzero"` // width of the part with positions, R
	QueryRank int `json:"query_rank,omitzero"` // width of a latent vector of the queries, too, Q; 0 for none
}

// Sizes returns how many numbers the matrices of attention have, for inputs of width dim, and how many numbers a Cache
// keeps for each token.
func (c AttentionConfig) Sizes(dim int) (weights, perToken int) {
	heads := max(c.Heads, 1)
	groups := cmp.Or(c.KeyValueHeads, heads)
	width, _ := c.HeadWidth(dim)
	value := cmp.Or(c.ValueDim, width)
	queries, keys, values := memory.Product(heads, width), memory.Product(groups, width), memory.Product(groups, value)
	outputs := memory.Product(dim, heads, value)
	if c.DistanceKeys {
		outputs = sum(outputs, memory.Product(dim, keys))
	}
	if c.DistanceQueries {
		outputs = sum(outputs, memory.Product(dim, queries))
	}
	l := c.Latent
	if l == nil {
		return sum(memory.Product(dim, sum(queries, keys, values)), outputs), sum(keys, values)
	}
	perToken = sum(l.Rank, l.RotaryDim)
	queries = sum(queries, memory.Product(heads, l.RotaryDim))
	weights = sum(memory.Product(cmp.Or(l.QueryRank, dim), queries), memory.Product(dim, l.QueryRank), memory.Product(dim, perToken), memory.Product(l.Rank, sum(keys, values)), outputs)
	return weights, perToken
}

// sum adds numbers that aren't negative. It returns the largest int if the sum is larger.
func sum(numbers ...int) (total int) {
	for _, n := range numbers {
		total += min(max(n, 0), math.MaxInt-total)
	}
	return total
}

// Latent holds the parts that only a MultiHeadAttention with latent vectors has.
type Latent struct {
	KeyValue *Linear // (C, KeyInput)
	Norm     *Norm   // (C)

	Query     *Linear // (Q, Dim); nil without QueryRank
	QueryNorm *Norm   // (Q); nil without QueryRank

	RotaryQuery *Linear // (H·R, Q), or (H·R, Dim) without QueryRank
	RotaryKey   *Linear // (R, KeyInput)
}

// newLatent makes the Latent of a MultiHeadAttention. It has the scopes latent, latentnorm, rotaryquery and rotarykey
// and, with QueryRank, querylatent and querylatentnorm.
func newLatent(p *Params, name string, dim int, c AttentionConfig) (*Latent, error) {
	l := c.Latent
	if err := positive(name, size{"Latent.Rank", l.Rank}, size{"Latent.RotaryDim", l.RotaryDim}); err != nil {
		return nil, err
	}
	switch {
	case l.QueryRank < 0:
		return nil, fmt.Errorf("%s: Latent.QueryRank must be a width, or 0 for no latent vectors of queries, got %d", name, l.QueryRank)
	case c.QKNorm || c.TieQueryKey || c.KeyValueHeads != c.Heads || c.DistanceKeys || c.DistanceQueries || c.NoKeyBias:
		return nil, fmt.Errorf("%s: Latent can't have QKNorm, TieQueryKey, KeyValueHeads, DistanceKeys, DistanceQueries or NoKeyBias: leave them out", name)
	case c.KeyInput != c.ValueInput:
		return nil, fmt.Errorf("%s: with Latent, keys and values have the same input: leave out ValueInput, got %d and a KeyInput of %d", name, c.ValueInput, c.KeyInput)
	}
	a, norm := &Latent{}, NormConfig{Kind: "rms", Eps: c.NormEps}
	var errs [6]error
	a.KeyValue, errs[0] = NewLinear(p.Scope("latent"), c.KeyInput, l.Rank, LinearConfig{NoBias: c.NoBias, Init: c.Init})
	a.Norm, errs[1] = NewNorm(p.Scope("latentnorm"), l.Rank, norm)
	if l.QueryRank > 0 {
		a.Query, errs[2] = NewLinear(p.Scope("querylatent"), dim, l.QueryRank, LinearConfig{NoBias: c.NoBias, Init: c.Init})
		a.QueryNorm, errs[3] = NewNorm(p.Scope("querylatentnorm"), l.QueryRank, norm)
	}
	a.RotaryQuery, errs[4] = NewLinear(p.Scope("rotaryquery"), cmp.Or(l.QueryRank, dim), memory.Product(c.Heads, l.RotaryDim), LinearConfig{NoBias: true, Init: c.Init})
	a.RotaryKey, errs[5] = NewLinear(p.Scope("rotarykey"), c.KeyInput, l.RotaryDim, LinearConfig{NoBias: c.NoBias, Init: c.Init})
	return a, cmp.Or(errs[0], errs[1], errs[2], errs[3], errs[4], errs[5])
}

// rotated returns the width of the rotated part of a head.
func (l *Latent) rotated() int { return l.RotaryKey.Weight.Value.Shape()[0] }

// latentQueries computes the two parts of the queries: (B, T, Dim) -> (B, T, H·K), (B, T, H·R).
func (a *MultiHeadAttention) latentQueries(b *Build, x, positions *G.Node) (content, rotary *G.Node, err error) {
	l := a.Latent
	if err := checkSequence(a.name, "the query", x, a.Query.Weight.Value.Dtype(), a.inputWidth()); err != nil {
		return nil, nil, err
	}
	if l.Query != nil {
		if x, err = chain(b, x, l.Query, l.QueryNorm); err != nil { // (B, T, Dim) -> (B, T, Q)
			return nil, nil, err
		}
	}
	if content, err = a.Query.Forward(b, x); err != nil {
		return nil, nil, err
	}
	if rotary, err = l.RotaryQuery.Forward(b, x); err != nil {
		return nil, nil, err
	}
	rotary, err = a.place(b, rotary, nil, a.heads, positions)
	return content, rotary, err
}

// inputWidth returns the width of Forward's argument query.
func (a *MultiHeadAttention) inputWidth() int {
	first := a.Query
	if a.Latent != nil && a.Latent.Query != nil {
		first = a.Latent.Query
	}
	return first.Weight.Value.Shape()[1]
}

// latents computes latent vectors, and the rotated keys of all heads: (B, S, KeyInput) -> (B, S, C), (B, S, R).
func (a *MultiHeadAttention) latents(b *Build, key, value, positions *G.Node) (c, rotary *G.Node, err error) {
	if value != key {
		return nil, nil, fmt.Errorf("%s: with Latent, the value must be the same node as the key", a.name)
	}
	l := a.Latent
	if err := checkSequence(a.name, "the key", key, l.KeyValue.Weight.Value.Dtype(), l.KeyValue.Weight.Value.Shape()[1]); err != nil {
		return nil, nil, err
	}
	if c, err = chain(b, key, l.KeyValue, l.Norm); err != nil {
		return nil, nil, err
	}
	if rotary, err = l.RotaryKey.Forward(b, key); err != nil {
		return nil, nil, err
	}
	rotary, err = a.place(b, rotary, nil, 1, positions)
	return c, rotary, err
}

// expand computes keys and values: (B, S, C), (B, S, R) -> (B, S, H·(K+R)), (B, S, H·V).
func (a *MultiHeadAttention) expand(b *Build, c, rotary *G.Node) (k, v *G.Node, err error) {
	if k, err = a.Key.Forward(b, c); err != nil {
		return nil, nil, err
	}
	if k, err = a.join(b, k, rotary, a.heads); err != nil {
		return nil, nil, err
	}
	v, err = a.Value.Forward(b, c)
	return k, v, err
}

// join puts rotated parts behind the other parts of heads.
func (a *MultiHeadAttention) join(b *Build, content, rotary *G.Node, heads int) (*G.Node, error) {
	return ops.JoinHeads(b.Env(), content, rotary, heads, a.Latent.rotated())
}

// latentCached is attention of new tokens to all tokens in the Cache, like forwardCached. The Cache keeps latent
// vectors and rotated keys.
//
// For few new tokens, keys and values are never computed. A head's matrix W of keys goes to the queries instead:
// q·(W·c) = (Wᵀ·q)·c. Latent vectors then are the keys and the values of all heads, and a head's matrix of values goes
// to the head's output. For many new tokens, it takes less time to compute the keys and the values.
func (a *MultiHeadAttention) latentCached(b *Build, x, positions *G.Node, m Mask) (*G.Node, error) {
	fail := func(err error) (*G.Node, error) { return nil, fmt.Errorf("%s: %w", a.name, err) }
	content, rotary, err := a.latentQueries(b, x, positions)
	if err != nil {
		return nil, err
	}
	c, keys, err := a.latents(b, x, x, positions)
	if err != nil {
		return nil, err
	}
	if c, err = b.Cache.append(b, a.scope+".latents", a.Latent.KeyValue.Weight, c); err != nil { // (B, T, C) -> (B, Max, C)
		return fail(err)
	}
	if keys, err = b.Cache.append(b, a.scope+".rotarykeys", a.Latent.RotaryKey.Weight, keys); err != nil {
		return fail(err)
	}
	absorbed := a.absorbs(b, x.Shape()[x.Dims()-2])
	if absorbed {
		if content, err = a.headProducts(b, content, a.Key, false); err != nil { // (B, T, H·K) -> (B, T, H·C)
			return fail(err)
		}
	}
	q, err := a.join(b, content, rotary, a.heads)
	if err != nil {
		return fail(err)
	}
	k, v, groups := c, c, a.heads
	if absorbed {
		groups = 1
		k, err = a.join(b, c, keys, 1) // (B, Max, C+R)
	} else {
		k, v, err = a.expand(b, c, keys)
	}
	if err != nil {
		return fail(err)
	}
	if m, err = a.mask(b, q, k, positions, m); err != nil {
		return nil, err
	}
	heads, err := a.weigh(b, q, k, v, m, groups)
	if err != nil {
		return nil, err
	}
	if absorbed {
		if heads, err = a.headProducts(b, heads, a.Value, true); err != nil { // (B, T, H·C) -> (B, T, H·V)
			return fail(err)
		}
	}
	return a.finish(b, x, heads)
}

// absorbs reports whether attention of the given number of new tokens is computed without keys and values. Weights that
// aren't plain matrices, int8 weights and those with an Adapter, always need keys and values.
func (a *MultiHeadAttention) absorbs(b *Build, tokens int) bool {
	for _, l := range []*Linear{a.Key, a.Value} {
		if _, low := b.Adapter.pair(l.Weight); low != nil || b.own(l.Weight).int8 != nil {
			return false
		}
	}
	rank := a.Latent.Norm.Weight.Value.Shape()[0]
	widths := (a.Key.Weight.Value.Shape()[0] + a.Value.Weight.Value.Shape()[0]) / a.heads // K + V
	return tokens <= rank*widths/max(2*rank-widths, 1)                                    // per key and head, multiplications of both ways
}

// headProducts multiplies each head of x by the head's rows of a Linear's weight, or by their transpose.
func (a *MultiHeadAttention) headProducts(b *Build, x *G.Node, l *Linear, transposed bool) (*G.Node, error) {
	w, err := b.Bind(x.Graph(), l.Weight)
	if err != nil {
		return nil, err
	}
	return ops.HeadProducts(b.Env(), x, w, a.heads, transposed)
}
