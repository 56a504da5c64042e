package layers

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// AttentionOptions holds the options of ScaledDotProduct. The zero value means plain attention. All options can be
// combined.
type AttentionOptions struct {
	Mask    Mask
	Scale   float64 // factor for the scores; 1/√K if 0
	Softcap float64 // a score s becomes Softcap·tanh(s/Softcap) before the mask (Gemma 2, 2024); 0 for none
	Dropout float64 // probability of dropping an attention weight, in training

	// Score changes each score after the softcap and before the mask; nil for none.
	Score ScoreFunc

	// Heads is the number of query heads, H, if heads lie side by side on the last axis. 0 means that heads have an
	// axis of their own, or that there is only one head. KeyValueHeads is the number of heads of keys and values, G, on
	// the last axis; Heads if 0.
	Heads, KeyValueHeads int

	// PastKey and PastValue are earlier keys and values, in front of the others. They have the shapes of keys and
	// values, but with length P instead of S. Each query then has P+S scores.
	PastKey, PastValue *G.Node

	// Sinks is a node of shape (H) with a further score for all queries of a head, which no key has; nil for none. It
	// takes part in the softmax, so that the weights of the keys sum to less than 1 (Xiao et al., 2023; gpt-oss, 2025).
	// It isn't multiplied by Scale, and it isn't capped or masked. It has a gradient.
	Sinks *G.Node

	layer string // the layer's name in errors
}

// A ScoreFunc returns a changed score, and the derivative of the change with respect to the score, for a query head and
// for the positions of a query and a key: see Mask. A value of −Inf masks the key. The function may be called from
// several goroutines at once, and must return the same for the same arguments.
type ScoreFunc func(score float64, head, query, key int) (value, derivative float64)

// ScaledDotProduct computes attention without parameters (Vaswani et al., 2017, section 3.2.1),
//
//	softmax(score(softcap(Q·Kᵀ·scale)) + M)·V
//
// for queries (…, T, K), keys (…, S, K) and values (…, S, V). The output has shape (…, T, V). The leading axes are
// none, (B) or (B, H). Keys and values may have fewer heads, G, if H is a multiple of G. Query head h then uses head
// ⌊h·G/H⌋ of the keys and values (Shazeer, 2019, with G = 1; Ainslie et al., GQA, 2023).
//
// If Heads is set, the heads lie side by side: queries (B, T, H·K), keys (B, S, G·K) and values (B, S, G·V) give (B, T,
// H·V). The mask applies to scores of shape (B, H, T, S). The batch axis may be omitted, and B is then 1.
//
// ScaledDotProduct is one tiled op (Dao et al., FlashAttention, 2022). Neither pass, forward or backward, stores
// anything of size T×S, so the memory is linear in T and S. Keys outside a window cost no time. If the Build is
// Composed, ScaledDotProduct consists of the separate ops of ScaledDotProductStages instead. Results are the same up to
// rounding.
func ScaledDotProduct(b *Build, q, k, v *G.Node, o AttentionOptions) (*G.Node, error) {
	if !b.Composed {
		return ops.Attention(b.Env(), q, k, v, o.ops())
	}
	st, _, err := composed(b, q, k, v, o)
	return st.Output, err
}

// Stages holds the intermediate nodes of attention. Use gorgonia.Read to get their values. Scores, Capped, Changed,
// Masked, Weights and Dropped have shape (…, T, S), or (B, H, T, S) if heads lie side by side; S includes past keys. In
// the ONNX operator Attention, Key and Value are called present_key and present_value. The operator's qk_matmul_output
// is Scores, Capped, Masked or Weights, for modes 0 to 3.
type Stages struct {
	Key, Value *G.Node // keys and values, with past ones in front

	Scores  *G.Node // scale·Q·Kᵀ, with the products of the mask's Distances
	Capped  *G.Node // after softcap; Scores without a softcap
	Changed *G.Node // after Score; Capped without a Score
	Masked  *G.Node // Changed plus the mask's biases; −Inf where masked
	Weights *G.Node // after softmax, without the sinks
	Dropped *G.Node // after dropout; Weights without dropout
	Output  *G.Node // (…, T, V), or (B, T, H·V) if heads lie side by side
}

// ScaledDotProductStages computes the same function as ScaledDotProduct with separate ops, and returns every stage.
func ScaledDotProductStages(b *Build, q, k, v *G.Node, o AttentionOptions) (st Stages, err error) {
	st, inputs, err := composed(b, q, k, v, o)
	if err != nil {
		return Stages{}, err
	}
	st.Masked, err = ops.MaskScores(b.Env(), inputs.Name, st.Changed, inputs.Mask)
	return st, err
}

// composed builds attention from separate ops, and returns its stages and operands.
//
// composed leaves Masked nil unless there are Sinks: ops.Softmax applies the mask itself, and a machine would compute
// the node although no other node reads it.
func composed(b *Build, q, k, v *G.Node, o AttentionOptions) (Stages, ops.AttentionInputs, error) {
	inputs, err := o.ops().Inputs(b.Env(), q, k, v)
	if err != nil {
		return Stages{}, inputs, err
	}
	st, err := compose(b, inputs, func(q, k *G.Node) (*G.Node, error) { // (…, T, K) x (…, S, K)ᵀ -> (…, T, S)
		scores, err := ops.MatMul(b.Env(), q, k, false, true, inputs.Scale, false)
		if err != nil || inputs.Distances == nil {
			return scores, err
		}
		distances, err := ops.DistanceScores(b.Env(), inputs)
		if err != nil || distances == nil {
			return scores, err
		}
		return ops.Add(b.Env(), scores, distances)
	})
	if err != nil {
		return Stages{}, inputs, fmt.Errorf("%s: %w", inputs.Name, err)
	}
	return st, inputs, nil
}

// compose builds attention from separate ops. It doesn't check the operands. The function score computes the scores,
// (…, T, S).
func compose(b *Build, inputs ops.AttentionInputs, score func(q, k *G.Node) (*G.Node, error)) (st Stages, err error) {
	q, k, v := inputs.Query, inputs.Key, inputs.Value
	st.Key, st.Value = k, v
	batch := q.Dims() == 3
	if inputs.Heads > 0 {
		for _, p := range []struct {
			x     **G.Node
			heads int
		}{{&q, inputs.Heads}, {&k, inputs.KeyValueHeads}, {&v, inputs.KeyValueHeads}} {
			if *p.x, err = ops.SplitHeads(b.Env(), *p.x, p.heads); err != nil { // (B, T, H·K) -> (B, H, T, K)
				return st, err
			}
		}
	}
	if q.Dims() == 4 {
		times := q.Shape()[1] / k.Shape()[1]
		for _, x := range []**G.Node{&k, &v} {
			if *x, err = ops.RepeatHeads(b.Env(), *x, times); err != nil { // (B, G, S, K) -> (B, H, S, K)
				return st, err
			}
		}
	}
	if st.Scores, err = score(q, k); err != nil {
		return st, err
	}
	st.Capped = st.Scores
	if inputs.Softcap > 0 {
		if st.Capped, err = ops.Softcap(b.Env(), st.Scores, inputs.Softcap); err != nil {
			return st, err
		}
	}
	st.Changed = st.Capped
	if inputs.Score != nil {
		if st.Changed, err = ops.ChangeScores(b.Env(), inputs.Name, st.Capped, inputs.Score, inputs.Mask); err != nil {
			return st, err
		}
	}
	if inputs.Sinks != nil {
		if st.Masked, err = ops.MaskScores(b.Env(), inputs.Name, st.Changed, inputs.Mask); err != nil {
			return st, err
		}
		st.Weights, err = ops.SinkSoftmax(b.Env(), inputs.Name, st.Masked, inputs.Sinks)
	} else {
		st.Weights, err = ops.Softmax(b.Env(), inputs.Name, st.Changed, inputs.Mask)
	}
	if err != nil {
		return st, err
	}
	if st.Dropped, err = ops.Dropout(b.Env(), st.Weights, inputs.Dropout); err != nil {
		return st, err
	}
	if st.Output, err = ops.MatMul(b.Env(), st.Dropped, v, false, false, 1, true); err != nil { // (…, T, S) x (…, S, V) -> (…, T, V)
		return st, err
	}
	if inputs.Heads > 0 {
		st.Output, err = ops.MergeHeads(b.Env(), st.Output, batch) // (B, H, T, V) -> (B, T, H·V)
	}
	return st, err
}

// ops returns the options in the form of package ops.
func (o AttentionOptions) ops() ops.AttentionConfig {
	return ops.AttentionConfig{
		Name: cmp.Or(o.layer, "scaled dot-product attention"), Mask: o.Mask.ops(), Scale: o.Scale, Softcap: o.Softcap, Score: ops.ScoreFunc(o.Score), Dropout: o.Dropout,
		Heads: o.Heads, KeyValueHeads: o.KeyValueHeads, PastKey: o.PastKey, PastValue: o.PastValue, Distances: o.Mask.Distances.ops(), Sinks: o.Sinks,
	}
}
