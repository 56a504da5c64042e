package layers

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// AttentionOptions change what attention does; the zero value is plain attention. All combine.
type AttentionOptions struct {
	Mask    Mask
	Scale   float64 // of the scores; 1/√K if 0
	Softcap float64 // c·tanh(s/c) is taken of the scores s, before the mask (Gemma 2, 2024); 0 for none
	Dropout float64 // probability of dropping a weight, in a training graph

	// Heads is the number of heads, H, that lie side by side on the last axis of the queries; 0 if they have an axis of
	// their own. KeyValueHeads is that of the keys and values, G; H if 0.
	Heads, KeyValueHeads int

	// PastKey and PastValue come before the keys and values: of the same shapes but for a length of P. The weights are
	// then for P+S keys. Append is what joins them.
	PastKey, PastValue *G.Node

	layer string // what errors call it when the graph runs
}

// ScaledDotProduct is attention without parameters (Vaswani et al., 2017, section 3.2.1),
//
//	softmax(softcap(Q·Kᵀ·scale) + M)·V
//
// for queries of shape (T, K), keys (S, K) and values (S, V), each with the same batch axis or batch and head axes in
// front: (B, T, K) or (B, H, T, K). The output has shape (…, T, V). There may be fewer heads of keys and values, G, if H
// is a multiple: query head h reads head ⌊h·G/H⌋ of them (Shazeer, 2019, with G = 1; Ainslie et al., GQA, 2023). With
// Heads set, the heads lie side by side: (B, T, H·K), (B, S, G·K) and (B, S, G·V) give (B, T, H·V), or all without B,
// which then counts as a batch of 1; the mask meets scores of shape (B, H, T, S).
//
// It is one op, tiled, that keeps nothing of size T×S, forward or backward (Dao et al., FlashAttention, 2022): memory is
// linear in T and S, and keys outside a window cost nothing. Where the Build says Composed, it is built as
// ScaledDotProductStages builds it. The two have one meaning.
func ScaledDotProduct(b *Build, q, k, v *G.Node, o AttentionOptions) (*G.Node, error) {
	c, k, v, err := o.prepare(b, q, k, v)
	if err != nil {
		return nil, err
	}
	if b.Composed {
		st, err := composed(b, q, k, v, c, o.Dropout)
		return st.Output, coreError(err)
	}
	c.Dropout = b.rate(o.Dropout)
	out, err := ops.Attention(b.env(), q, k, v, c)
	return out, coreError(err)
}

const coreName = "scaled dot-product attention"

func coreError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", coreName, err)
}

// ScaledDotProductWeights is the output and the weights of ScaledDotProductStages, of shape (…, T, S) or (B, H, T, S): read
// them with gorgonia.Read. With dropout they are what dropout left.
func ScaledDotProductWeights(b *Build, q, k, v *G.Node, o AttentionOptions) (out, weights *G.Node, err error) {
	c, k, v, err := o.prepare(b, q, k, v)
	if err != nil {
		return nil, nil, err
	}
	st, err := composed(b, q, k, v, c, o.Dropout)
	return st.Output, st.Dropped, coreError(err)
}

// Stages are the nodes that attention is composed of, for a look at any of them. Scores have shape (…, T, S), or
// (B, H, T, S) where heads lie side by side, S counting past keys. They are the ONNX operator's present_key,
// present_value and, for its qk_matmul_output_mode 0 to 3, Scores, Capped, Masked and Weights.
type Stages struct {
	Key, Value *G.Node // as given, past ones included

	Scores  *G.Node // scale·Q·Kᵀ
	Capped  *G.Node // after softcap; Scores if there is none
	Masked  *G.Node // with what the mask adds; −Inf where it forbids
	Weights *G.Node // after softmax
	Dropped *G.Node // after dropout; Weights if there is none
	Output  *G.Node // (…, T, V), or (B, T, H·V) where heads lie side by side
}

// ScaledDotProductStages is ScaledDotProduct by separate ops, every stage a node of the graph.
func ScaledDotProductStages(b *Build, q, k, v *G.Node, o AttentionOptions) (st Stages, err error) {
	c, k, v, err := o.prepare(b, q, k, v)
	if err != nil {
		return st, err
	}
	if st, err = composed(b, q, k, v, c, o.Dropout); err != nil {
		return Stages{}, coreError(err)
	}
	st.Masked, err = ops.MaskScores(b.env(), st.Capped, c.Mask)
	return st, coreError(err)
}

// Append joins keys or values to those before them: (…, P, K) and (…, S, K) give (…, P+S, K), float32 or float64. With
// what it returns as the keys, and P as the mask's Offset, attention does what it does with PastKey.
func Append(b *Build, past, x *G.Node) (*G.Node, error) { return ops.Append(b.env(), past, x) }

// composed builds attention by separate ops, from operands that have been checked.
//
// Masked isn't among them: softmax masks by itself, and a node that nothing reads would be computed all the same.
func composed(b *Build, q, k, v *G.Node, c ops.AttentionConfig, dropout float64) (st Stages, err error) {
	st.Key, st.Value = k, v
	batch := q.Dims() == 3
	if c.Heads > 0 {
		for _, p := range []struct {
			x     **G.Node
			heads int
		}{{&q, c.Heads}, {&k, c.Groups}, {&v, c.Groups}} {
			if *p.x, err = ops.SplitHeads(b.env(), *p.x, p.heads); err != nil { // (B, T, H·K) -> (B, H, T, K)
				return st, err
			}
		}
	}
	if q.Dims() == 4 {
		times := q.Shape()[1] / k.Shape()[1]
		if k, err = ops.RepeatHeads(b.env(), k, times); err != nil { // (B, G, S, K) -> (B, H, S, K)
			return st, err
		}
		if v, err = ops.RepeatHeads(b.env(), v, times); err != nil {
			return st, err
		}
	}
	if st.Scores, err = ops.MatMul(b.env(), q, k, false, true, c.Scale, false); err != nil { // (…, T, K) x (…, S, K)ᵀ -> (…, T, S)
		return st, err
	}
	st.Capped = st.Scores
	if c.Softcap > 0 {
		if st.Capped, err = ops.Softcap(b.env(), st.Scores, c.Softcap); err != nil {
			return st, err
		}
	}
	if st.Weights, err = ops.Softmax(b.env(), st.Capped, c.Mask); err != nil {
		return st, err
	}
	if st.Dropped, err = b.dropout(st.Weights, dropout); err != nil {
		return st, err
	}
	if st.Output, err = ops.MatMul(b.env(), st.Dropped, v, false, false, 1, true); err != nil { // (…, T, S) x (…, S, V) -> (…, T, V)
		return st, err
	}
	if c.Heads > 0 {
		st.Output, err = ops.MergeHeads(b.env(), st.Output, batch) // (B, H, T, V) -> (B, T, H·V)
	}
	return st, err
}

// prepare checks the operands of attention, and returns what ops need to know, and the keys and values with those of the
// past.
func (o AttentionOptions) prepare(b *Build, q, k, v *G.Node) (c ops.AttentionConfig, key, value *G.Node, err error) {
	const name = coreName
	fail := func(format string, args ...any) (ops.AttentionConfig, *G.Node, *G.Node, error) {
		return c, nil, nil, fmt.Errorf("%s: "+format, append([]any{name}, args...)...)
	}
	if b == nil {
		return fail("%w", errNoBuild)
	}
	if err := checkFloat(name, "the query", q); err != nil {
		return c, nil, nil, err
	}
	operands := []struct {
		what string
		n    *G.Node
	}{{"the key", k}, {"the value", v}, {"PastKey", o.PastKey}, {"PastValue", o.PastValue}}
	if (o.PastKey == nil) != (o.PastValue == nil) {
		return fail("PastKey and PastValue must be given together")
	}
	if o.PastKey == nil {
		operands = operands[:2]
	}
	for _, in := range operands {
		if err := checkFloat(name, in.what, in.n); err != nil {
			return c, nil, nil, err
		}
		if in.n.Graph() != q.Graph() {
			return fail("%s belongs to another graph than the query", in.what)
		}
		if in.n.Dtype() != q.Dtype() {
			return fail("query, key and value must have one dtype, but the query has %v and %s %v", q.Dtype(), in.what, in.n.Dtype())
		}
	}
	if err := o.checkNumbers(name); err != nil {
		return c, nil, nil, err
	}
	c = ops.AttentionConfig{Heads: o.Heads, Groups: o.KeyValueHeads, Scale: o.Scale, Softcap: o.Softcap, Mask: o.Mask.ops()}
	c.Mask.Layer = cmp.Or(o.layer, coreName)
	if c.Heads < 0 || c.Groups < 0 || c.Heads == 0 && c.Groups > 0 {
		return fail("Heads must be at least 0, and KeyValueHeads 0 unless there are Heads, got %d and %d", c.Heads, c.Groups)
	}
	if c.Heads > 0 {
		if c.Groups == 0 {
			c.Groups = c.Heads
		}
		if c.Heads%c.Groups != 0 {
			return fail("Heads must be a multiple of KeyValueHeads, got %d and %d", c.Heads, c.Groups)
		}
	}
	if x := o.Mask.Offset; x != 0 && o.Mask.Offsets != nil { // before that of the past is added
		return fail("Mask.Offset must be 0 where there are Offsets, got %d", x)
	} else if x > math.MaxInt/8 || x < -math.MaxInt/8 {
		return fail("Mask.Offset is out of range: %d", x)
	}
	if q.Dtype() == tensor.Float32 { // the ops compute with these numbers in the dtype
		for _, x := range []struct {
			what  string
			value float64
		}{{"Scale", o.Scale}, {"Softcap", o.Softcap}} {
			if f := float32(x.value); math.IsInf(float64(f), 0) || f == 0 && x.value != 0 {
				return fail("%s must be a float32, as the query is, got %v", x.what, x.value)
			}
		}
	}
	if o.PastKey != nil {
		pk, pv := o.PastKey.Shape(), o.PastValue.Shape()
		if len(pk) < 2 || len(pv) != len(pk) || pk[len(pk)-2] != pv[len(pv)-2] {
			return fail("PastKey (…, P, K) and PastValue (…, P, V) must agree in P, got %v and %v", pk, pv)
		}
		if k, err = Append(b, o.PastKey, k); err != nil {
			return fail("PastKey: %w", err)
		}
		if v, err = Append(b, o.PastValue, v); err != nil {
			return fail("PastValue: %w", err)
		}
		past := o.PastKey.Shape()
		if c.Mask.Offset += past[len(past)-2]; c.Mask.Offsets != nil {
			if c.Mask.Offsets, err = ops.AddInt(b.env(), c.Mask.Offsets, c.Mask.Offset); err != nil {
				return fail("Mask.Offsets: %w", err)
			}
			c.Mask.Offset = 0
		}
	}
	scores, err := o.checkShapes(&c, q.Shape(), k.Shape(), v.Shape())
	if err != nil {
		return c, nil, nil, err
	}
	return c, k, v, c.Mask.Check(name, scores, q)
}

// checkNumbers checks what isn't a node.
func (o AttentionOptions) checkNumbers(name string) error {
	if err := checkRate(name, o.Dropout); err != nil {
		return err
	}
	if math.IsNaN(o.Scale) || math.IsInf(o.Scale, 0) {
		return fmt.Errorf("%s: Scale must be finite, or 0 for 1/√K, got %v", name, o.Scale)
	}
	if !(o.Softcap >= 0) || math.IsInf(o.Softcap, 1) {
		return fmt.Errorf("%s: Softcap must be above 0 and finite, or 0 for none, got %v", name, o.Softcap)
	}
	return nil
}

// checkShapes checks the shapes of the operands, past keys and values included, completes the scale, and returns the shape
// of the scores.
func (o AttentionOptions) checkShapes(c *ops.AttentionConfig, q, k, v tensor.Shape) (scores tensor.Shape, err error) {
	bad := func(format string, args ...any) (tensor.Shape, error) {
		return nil, fmt.Errorf("%s: %s, got %v, %v and %v", coreName, fmt.Sprintf(format, args...), q, k, v)
	}
	r := len(q)
	width, keyWidth := 0, 0 // of a head
	switch {
	case c.Heads > 0:
		if r < 2 || r > 3 || len(k) != r || len(v) != r {
			return bad("with Heads, query, key and value must have shape (B, T, H·K), (B, S, G·K) and (B, S, G·V), or all without B")
		}
		if q[r-1]%c.Heads != 0 || k[r-1]%c.Groups != 0 || v[r-1]%c.Groups != 0 {
			return bad("the widths of query, key and value must be multiples of H = %d, G = %d and G heads", c.Heads, c.Groups)
		}
		width, keyWidth = q[r-1]/c.Heads, k[r-1]/c.Groups
	case r < 2 || r > 4 || len(k) != r || len(v) != r:
		return bad("query, key and value must all have shape (T, K), (B, T, K) or (B, H, T, K)")
	default:
		width, keyWidth = q[r-1], k[r-1]
	}
	if r > 2 && (q[0] != k[0] || q[0] != v[0]) {
		return bad("query, key and value must have the same batch axis")
	}
	if r == 4 && (k[1] != v[1] || k[1] == 0 || q[1]%k[1] != 0) {
		return bad("key and value must have one number of heads, and the query a multiple of it")
	}
	if width != keyWidth || k[r-2] != v[r-2] {
		return bad("query (…, T, K), key (…, S, K) and value (…, S, V) must agree in K and S, K being the width of a head")
	}
	if c.Scale == 0 {
		c.Scale = 1 / math.Sqrt(float64(width))
	}
	scores = append(q[:r-1].Clone(), k[r-2])
	if c.Heads > 0 {
		scores = tensor.Shape{batchOf(q, 2), c.Heads, q[r-2], k[r-2]}
	}
	return scores, nil
}
