package ops

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Largest limits the absolute value of numbers in configurations, such as Scale. Its square, multiplied by the width of
// a vector, still fits in a float32.
const Largest = 1e15

// An AttentionConfig holds the options of attention. Its error messages use the names that package layers gives to the
// operands and fields.
type AttentionConfig struct {
	Name          string     // the layer's name in errors; "attention" if empty
	Heads         int        // H, number of heads side by side on the last axis of the queries; 0 if heads have their own axis
	KeyValueHeads int        // G, number of heads of the keys and values; 0 means H; it must be 0 if Heads is 0
	Scale         float64    // factor of the scores; 0 means 1/√K
	Softcap       float64    // c, which replaces each score s with c·tanh(s/c) before the mask; 0 means no cap
	Score         ScoreFunc  // changes each score after the cap and before the mask; nil means none
	Mask          Mask       // mask; its Offset doesn't include the number of past keys
	Dropout       float64    // probability of dropping a weight
	Distances     *Distances // products with vectors of distances, added to the scores; nil means none
	Sinks         *G.Node    // shape (H): a further score of each query, see SinkSoftmax; nil means none

	PastKey, PastValue *G.Node // shape (…, P, K) and (…, P, V), prepended to the keys and values; nil means none
}

// AttentionInputs holds the checked operands and the configuration. The past keys and values are already prepended, and
// the defaults are set.
type AttentionInputs struct {
	AttentionConfig
	Query, Key, Value *G.Node

	layout attentionLayout
}

// attentionLayout holds the sizes and shapes of the operands.
type attentionLayout struct {
	heads, groups, width, value int // H, G, K and V
	scores, out                 tensor.Shape
}

// Inputs checks the operands and the configuration.
//
// If Heads is 0, queries have shape (T, K), (B, T, K) or (B, H, T, K), keys (…, S, K), values (…, S, V) and the output
// (…, T, V). Keys and values may have fewer heads, G, if H is a multiple of G: query head h then reads head ⌊h·G/H⌋. If
// Heads is above 0, the heads lie side by side: queries have shape (B, T, H·K), keys (B, S, G·K), values (B, S, G·V)
// and the output (B, T, H·V). All four may lack the axis B. The mask applies to scores of shape (T, S), (B, T, S) or
// (B, H, T, S); if Heads is above 0, they have shape (B, H, T, S).
func (c AttentionConfig) Inputs(e *Env, q, k, v *G.Node) (a AttentionInputs, err error) {
	c.Name = cmp.Or(c.Name, "attention")
	if err := cmp.Or(c.checkNodes(q, k, v), c.Check(c.Name), c.checkNumbers(q.Dtype())); err != nil {
		return a, err
	}
	if c.Heads > 0 && c.KeyValueHeads == 0 {
		c.KeyValueHeads = c.Heads
	}
	if c.PastKey != nil {
		if k, v, err = c.join(e, k, v); err != nil {
			return a, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	a = AttentionInputs{AttentionConfig: c, Query: q, Key: k, Value: v}
	if a.layout, err = c.shapes(q.Shape(), k.Shape(), v.Shape()); err != nil {
		return a, err
	}
	if c.Scale == 0 {
		a.Scale = 1 / math.Sqrt(float64(a.layout.width))
	}
	if c.Sinks != nil {
		if err := checkSinks(c.Name, c.Sinks, q, a.layout.heads); err != nil {
			return a, err
		}
	}
	return a, cmp.Or(c.Mask.Check(c.Name, a.layout.scores, q), c.Distances.check(c.Name, a.layout, q))
}

// checkNodes checks that the operands belong to the same graph and have the same dtype.
func (c AttentionConfig) checkNodes(q, k, v *G.Node) error {
	if (c.PastKey == nil) != (c.PastValue == nil) {
		return fmt.Errorf("%s: PastKey and PastValue must be given together", c.Name)
	}
	for _, input := range []struct {
		what string
		n    *G.Node
	}{{"the key", k}, {"the value", v}, {"PastKey", c.PastKey}, {"PastValue", c.PastValue}} {
		if input.n == nil { // no past
			continue
		}
		if err := sameDtype(c.Name, input.what, input.n, "the query", q); err != nil {
			return err
		}
		if input.n.Graph() != q.Graph() {
			return fmt.Errorf("%s: %s belongs to another graph, not the query's", c.Name, input.what)
		}
	}
	return nil
}

// Check checks the fields that don't depend on the operands. Its errors begin with name.
func (c AttentionConfig) Check(name string) error {
	if err := CheckRate(name, c.Dropout); err != nil {
		return err
	}
	switch {
	case !(math.Abs(c.Scale) <= Largest):
		return fmt.Errorf("%s: Scale must be finite and from −%[2]v to %[2]v (0 means 1/√K), got %[3]v", name, Largest, c.Scale)
	case !(c.Softcap >= 0 && c.Softcap <= Largest):
		return fmt.Errorf("%s: Softcap must be above 0 and at most %v, or 0 for no cap, got %v", name, Largest, c.Softcap)
	case c.Heads < 0 || c.KeyValueHeads < 0 || c.Heads == 0 && c.KeyValueHeads > 0:
		return fmt.Errorf("%s: Heads and KeyValueHeads must be at least 0, and KeyValueHeads must be 0 if Heads is 0, got %d and %d", name, c.Heads, c.KeyValueHeads)
	case c.KeyValueHeads > 0 && c.Heads%c.KeyValueHeads != 0:
		return fmt.Errorf("%s: Heads must be a multiple of KeyValueHeads, got %d and %d", name, c.Heads, c.KeyValueHeads)
	}
	return nil
}

// checkNumbers checks that the mask's offset, the scale and the cap are in range. It must run before join, which
// increases the offset.
func (c AttentionConfig) checkNumbers(dt tensor.Dtype) error {
	if x := c.Mask.Offset; x != 0 && c.Mask.Offsets != nil {
		return fmt.Errorf("%s: Mask.Offset must be 0 if Mask.Offsets is set, got %d", c.Name, x)
	} else if x > math.MaxInt/8 || x < -math.MaxInt/8 {
		return fmt.Errorf("%s: Mask.Offset is out of range: %d", c.Name, x)
	}
	if dt != tensor.Float32 {
		return nil
	}
	for _, x := range []struct { // the kernels use these numbers in the operands' dtype
		what  string
		value float64
	}{{"Scale", c.Scale}, {"Softcap", c.Softcap}} {
		if f := float32(x.value); math.IsInf(float64(f), 0) || f == 0 && x.value != 0 {
			return fmt.Errorf("%s: %s must fit in the query's dtype, float32, got %v", c.Name, x.what, x.value)
		}
	}
	return nil
}

// join prepends the past keys and values, and adds the number of past keys to the mask's offset.
func (c *AttentionConfig) join(e *Env, k, v *G.Node) (key, value *G.Node, err error) {
	pk, pv := c.PastKey.Shape(), c.PastValue.Shape()
	if len(pk) < 2 || len(pv) != len(pk) || pk[len(pk)-2] != pv[len(pv)-2] {
		return nil, nil, fmt.Errorf("PastKey (…, P, K) and PastValue (…, P, V) must agree in P, got %v and %v", pk, pv)
	}
	if key, err = Append(e, c.PastKey, k); err != nil {
		return nil, nil, fmt.Errorf("PastKey: %w", err)
	}
	if value, err = Append(e, c.PastValue, v); err != nil {
		return nil, nil, fmt.Errorf("PastValue: %w", err)
	}
	if c.Mask.Offset += pk[len(pk)-2]; c.Mask.Offsets != nil {
		if c.Mask.Offsets, err = AddInt(e, c.Mask.Offsets, c.Mask.Offset); err != nil {
			return nil, nil, fmt.Errorf("Mask.Offsets: %w", err)
		}
		c.Mask.Offset = 0
	}
	return key, value, nil
}

// shapes checks the operands' shapes. The keys and values must already include the past ones.
func (c AttentionConfig) shapes(q, k, v tensor.Shape) (l attentionLayout, err error) {
	r := len(q)
	bad := func(format string, args ...any) (attentionLayout, error) {
		return l, fmt.Errorf("%s: %s, got %v, %v and %v", c.Name, fmt.Sprintf(format, args...), q, k, v)
	}
	switch {
	case c.Heads > 0 && (r < 2 || r > 3 || len(k) != r || len(v) != r):
		return bad("with Heads, query, key and value must have shape (B, T, H·K), (B, S, G·K) and (B, S, G·V), or all must lack B")
	case r < 2 || r > 4 || len(k) != r || len(v) != r:
		return bad("query, key and value must all have shape (T, K), (B, T, K) or (B, H, T, K)")
	case r > 2 && (q[0] != k[0] || q[0] != v[0]):
		return bad("query, key and value must have the same batch axis")
	}
	l = attentionLayout{heads: 1, groups: 1, width: q[r-1], value: v[r-1], scores: append(q[:r-1].Clone(), k[r-2])}
	keyWidth := k[r-1]
	switch {
	case c.Heads > 0:
		l.heads, l.groups = c.Heads, c.KeyValueHeads
		if l.width%l.heads != 0 || keyWidth%l.groups != 0 || l.value%l.groups != 0 {
			return bad("the width of the query must be a multiple of H = %d, and the widths of key and value multiples of G = %d", l.heads, l.groups)
		}
		l.width, keyWidth, l.value = l.width/l.heads, keyWidth/l.groups, l.value/l.groups
		l.scores = tensor.Shape{1, l.heads, q[r-2], k[r-2]}
		if r == 3 {
			l.scores[0] = q[0]
		}
	case r == 4:
		l.heads, l.groups = q[1], k[1]
		if k[1] != v[1] || k[1] == 0 || q[1]%k[1] != 0 {
			return bad("key and value must have the same number of heads, and the query's number of heads must be a multiple of it")
		}
	}
	if l.width != keyWidth || k[r-2] != v[r-2] {
		return bad("query (…, T, K), key (…, S, K) and value (…, S, V) must agree in K and S, where K is the width of a head")
	}
	l.out = append(q[:r-1].Clone(), l.value)
	if c.Heads > 0 {
		l.out[r-1] *= l.heads
	}
	return l, nil
}
