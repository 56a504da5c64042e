package layers_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// An onnxRule is a rule of the operator about masks, with a call as an example.
type onnxRule struct {
	rule string
	call onnxCall

	// sees has one word per query, and in it one mark per key: x for visible, a dot for masked. The sign | separates
	// the patterns of batch elements, or of the heads of all batch elements. Without |, all have the same pattern.
	sees string
}

type window = layers.Window

// causal sets the attribute is_causal. within sets the two window sizes.
func causal() layers.AttentionOptions {
	return layers.AttentionOptions{Mask: layers.Mask{Causal: true}}
}
func within(left, right int) layers.AttentionOptions {
	return layers.AttentionOptions{Mask: layers.Mask{Window: &window{Left: left, Right: right}}}
}
func causalWithin(left, right int) layers.AttentionOptions {
	return layers.AttentionOptions{Mask: layers.Mask{Causal: true, Window: &window{Left: left, Right: right}}}
}

// bools returns a boolean mask: true for x, false for a dot.
func bools(marks string, shape ...int) *tensor.Dense {
	var values []bool
	for _, mark := range strings.ReplaceAll(marks, " ", "") {
		values = append(values, mark == 'x')
	}
	return dense(values, shape...)
}

// holes returns a float mask: 0 for x, −Inf for a dot.
func holes(marks string, shape ...int) *tensor.Dense {
	values := make([]float64, tensor.Shape(shape).TotalSize())
	for i, ok := range bools(marks, shape...).Bools() {
		if !ok {
			values[i] = -inf
		}
	}
	return dense(values, shape...)
}

// valid sets the operator's input nonpad_kv_seqlen: the number of valid keys of each batch element. The last query has
// the position of the last valid key. In this library, two options replace this input: KeyLengths and Offsets.
func (c onnxCall) valid(lengths ...int) onnxCall {
	c.lengths = lengths
	for _, n := range lengths {
		c.offsets = append(c.offsets, n-c.T)
	}
	return c
}

func onnxRules() []onnxRule {
	type n = onnxSizes
	return []onnxRule{
		{"no mask", onnxCall{onnxSizes: n{T: 2, S: 3}}, "xxx xxx"},
		{"causal: the same number of queries and keys", onnxCall{onnxSizes: n{T: 3, S: 3}, options: causal()}, "x.. xx. xxx"},
		{"causal: fewer queries than keys, at the first positions", onnxCall{onnxSizes: n{T: 2, S: 4}, options: causal()}, "x... xx.."},
		{"causal: more queries than keys", onnxCall{onnxSizes: n{T: 4, S: 2}, options: causal()}, "x. xx xx xx"},
		{"past: without causal, every key is visible", onnxCall{onnxSizes: n{T: 2, S: 1, P: 2}}, "xxx xxx"},
		{"past: causal counts from the first past key", onnxCall{onnxSizes: n{T: 2, S: 2, P: 2}, options: causal()}, "xxx. xxxx"},
		{"past: causal, one new token", onnxCall{onnxSizes: n{T: 1, S: 1, P: 3}, options: causal()}, "xxxx"},
		{"past: causal, fewer queries than new keys", onnxCall{onnxSizes: n{T: 2, S: 3, P: 1}, options: causal()}, "xx.. xxx."},
		{"past: causal, more queries than new keys", onnxCall{onnxSizes: n{T: 3, S: 1, P: 1}, options: causal()}, "xx xx xx"},

		{"valid keys: without causal, only padding is masked", onnxCall{onnxSizes: n{B: 2, T: 2, S: 4}}.valid(3, 1), "xxx. xxx.|x... x..."},
		{"valid keys: causal, the last query is at the last key", onnxCall{onnxSizes: n{B: 3, T: 2, S: 4}, options: causal()}.valid(4, 3, 2),
			"xxx. xxxx|xx.. xxx.|x... xx.."},
		{"valid keys: causal, one query sees them all", onnxCall{onnxSizes: n{B: 2, T: 1, S: 4}, options: causal()}.valid(1, 4), "x...|xxxx"},
		{"valid keys: fewer than queries, so the first queries see nothing", onnxCall{onnxSizes: n{B: 3, T: 3, S: 3}, options: causal()}.valid(2, 1, 0),
			"... x.. xx.|... ... x..|... ... ..."},
		{"valid keys: with a mask, both apply", onnxCall{onnxSizes: n{B: 2, T: 2, S: 3}, options: causal(), allow: bools(".xx xxx", 2, 3)}.valid(3, 2),
			".x. xxx|... xx."},
		{"valid keys: with a shorter mask, both apply", onnxCall{onnxSizes: n{B: 2, T: 2, S: 4}, options: causal(), allow: bools("xx", 2)}.valid(4, 2),
			"xx.. xx..|x... xx.."},
		{"valid keys: with a float mask, both apply", onnxCall{onnxSizes: n{B: 2, T: 1, S: 3}, bias: holes(".xx", 1, 1, 1, 3)}.valid(1, 2), "...|.x."},

		{"boolean mask: (T, S), true is visible", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 3}, allow: bools("x.x .x.", 2, 3)}, "x.x .x."},
		{"boolean mask: (S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 3}, allow: bools("x.x", 3)}, "x.x x.x"},
		{"boolean mask: (H, T, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, allow: bools("x. .x xx ..", 2, 2, 2)}, "x. .x|xx ..|x. .x|xx .."},
		{"boolean mask: (H, 1, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, allow: bools("x. .x", 2, 1, 2)}, "x. x.|.x .x|x. x.|.x .x"},
		{"boolean mask: (1, T, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, allow: bools("x. .x", 1, 2, 2)}, "x. .x"},
		{"boolean mask: (B, H, T, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 1, S: 2}, allow: bools("x. .x xx ..", 2, 2, 1, 2)}, "x.|.x|xx|.."},
		{"boolean mask: (B, 1, T, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, allow: bools("x. .x xx ..", 2, 1, 2, 2)}, "x. .x|x. .x|xx ..|xx .."},
		{"boolean mask: (B, 1, 1, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, allow: bools("x. .x", 2, 1, 1, 2)}, "x. x.|x. x.|.x .x|.x .x"},
		{"boolean mask: (1, H, 1, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, allow: bools("x. .x", 1, 2, 1, 2)}, "x. x.|.x .x|x. x.|.x .x"},
		{"boolean mask: (1, 1, 1, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, allow: bools(".x", 1, 1, 1, 2)}, ".x .x"},
		{"boolean mask: a row of false", onnxCall{onnxSizes: n{H: 2, T: 3, S: 2}, allow: bools("x. .. xx", 3, 2)}, "x. .. xx"},
		{"boolean mask: all false", onnxCall{onnxSizes: n{H: 2, T: 2, S: 2}, allow: bools("..", 2)}, ".. .."},
		{"short mask: the rest is masked", onnxCall{onnxSizes: n{H: 2, T: 2, S: 4}, allow: bools("x. xx", 2, 2)}, "x... xx.."},
		{"short mask: a last axis of 1 is short too", onnxCall{onnxSizes: n{B: 2, T: 2, S: 3}, allow: bools("x . . x", 2, 1, 2, 1)}, "x.. ...|... x.."},
		{"short mask: shape (1)", onnxCall{onnxSizes: n{T: 2, S: 3}, allow: bools("x", 1)}, "x.. x.."},
		{"short mask: float mask", onnxCall{onnxSizes: n{H: 2, T: 2, S: 4}, bias: holes("x. xx", 2, 2)}, "x... xx.."},
		{"short mask: float mask with a last axis of 1", onnxCall{onnxSizes: n{T: 2, S: 3}, bias: holes("x", 1, 1)}, "x.. x.."},
		{"short mask: past keys are the first", onnxCall{onnxSizes: n{T: 1, S: 2, P: 2}, allow: bools(".xx", 3)}, ".xx."},
		{"float mask: −Inf masks", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 3}, bias: holes("x.x .x.", 2, 3)}, "x.x .x."},
		{"float mask: (B, 1, 1, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, bias: holes("x. .x", 2, 1, 1, 2)}, "x. x.|x. x.|.x .x|.x .x"},
		{"float mask: (H, 1, S)", onnxCall{onnxSizes: n{B: 2, H: 2, T: 2, S: 2}, bias: holes("x. .x", 2, 1, 2)}, "x. x.|.x .x|x. x.|.x .x"},
		{"float mask: a row of −Inf", onnxCall{onnxSizes: n{H: 2, T: 3, S: 2}, bias: holes("x. .. xx", 3, 2)}, "x. .. xx"},
		{"causal: with a boolean mask, both apply", onnxCall{onnxSizes: n{T: 3, S: 3}, options: causal(), allow: bools(".xx xxx x..", 3, 3)}, "... xx. x.."},
		{"causal: with a float mask, both apply", onnxCall{onnxSizes: n{T: 3, S: 3}, options: causal(), bias: holes(".xx xxx x..", 3, 3)}, "... xx. x.."},
		{"causal: with a mask over past keys too", onnxCall{onnxSizes: n{T: 2, S: 2, P: 1}, options: causal(), allow: bools(".xx x.x", 2, 3)}, ".x. x.x"},

		{"window: left", onnxCall{onnxSizes: n{T: 4, S: 4}, options: within(1, -1)}, "xxxx xxxx .xxx ..xx"},
		{"window: right", onnxCall{onnxSizes: n{T: 4, S: 4}, options: within(-1, 1)}, "xx.. xxx. xxxx xxxx"},
		{"window: left and right", onnxCall{onnxSizes: n{T: 4, S: 4}, options: within(1, 1)}, "xx.. xxx. .xxx ..xx"},
		{"window: unequal sides", onnxCall{onnxSizes: n{T: 4, S: 4}, options: within(2, 0)}, "x... xx.. xxx. .xxx"},
		{"window: open on both sides", onnxCall{onnxSizes: n{T: 2, S: 3}, options: within(-1, -1)}, "xxx xxx"},
		{"window: 0 on both sides, only the same position", onnxCall{onnxSizes: n{T: 3, S: 3}, options: within(0, 0)}, "x.. .x. ..x"},
		{"window: 0 on the left", onnxCall{onnxSizes: n{T: 3, S: 3}, options: within(0, -1)}, "xxx .xx ..x"},
		{"window: 0 on the right is causal", onnxCall{onnxSizes: n{T: 3, S: 3}, options: within(-1, 0)}, "x.. xx. xxx"},
		{"window: with causal, left", onnxCall{onnxSizes: n{T: 4, S: 4}, options: causalWithin(1, -1)}, "x... xx.. .xx. ..xx"},
		{"window: with causal, the right side has no effect", onnxCall{onnxSizes: n{T: 4, S: 4}, options: causalWithin(2, 2)}, "x... xx.. xxx. .xxx"},
		{"window: more queries than keys, so the last queries see nothing", onnxCall{onnxSizes: n{H: 2, T: 4, S: 2}, options: within(1, 0)}, "x. xx .x .."},
		{"window: fewer queries than keys", onnxCall{onnxSizes: n{T: 2, S: 4}, options: within(0, 1)}, "xx.. .xx."},
		{"window: after past keys", onnxCall{onnxSizes: n{T: 2, S: 2, P: 2}, options: within(1, 0)}, ".xx. ..xx"},
		{"window: after past keys, both sides", onnxCall{onnxSizes: n{T: 2, S: 2, P: 2}, options: within(1, 1)}, ".xxx ..xx"},
		{"window: after past keys, causal", onnxCall{onnxSizes: n{T: 1, S: 1, P: 4}, options: causalWithin(2, -1)}, "..xxx"},
		{"window: with valid keys", onnxCall{onnxSizes: n{B: 2, T: 2, S: 4}, options: within(1, 0)}.valid(4, 2), ".xx. ..xx|x... xx.."},
		{"window: with valid keys, right", onnxCall{onnxSizes: n{B: 2, T: 1, S: 4}, options: within(1, 2)}.valid(2, 4), "xx..|..xx"},
		{"window: with fewer valid keys than queries", onnxCall{onnxSizes: n{T: 3, S: 3}, options: within(1, 1)}.valid(1), "... x.. x.."},
		{"window: with causal and valid keys", onnxCall{onnxSizes: n{B: 2, T: 2, S: 4}, options: causalWithin(1, 1)}.valid(4, 1), ".xx. ..xx|.... x..."},
		{"window: with a mask, both apply", onnxCall{onnxSizes: n{T: 3, S: 3}, options: within(1, 0), allow: bools("x.x", 3)}, "x.. x.. ..x"},
		{"window: largest possible sizes", onnxCall{onnxSizes: n{T: 3, S: 2}, options: within(math.MaxInt, math.MaxInt)}, "xx xx xx"},

		// KeyLengths without Offsets, or Offsets without KeyLengths. ONNX can't set them separately.
		{"lengths don't change the queries' positions", onnxCall{onnxSizes: n{B: 2, T: 3, S: 3}, options: causal(), lengths: []int{2, 0}}, "x.. xx. xx.|... ... ..."},
		{"lengths include past keys", onnxCall{onnxSizes: n{B: 2, T: 1, S: 2, P: 2}, lengths: []int{1, 3}}, "x...|xxx."},
		{"an offset", onnxCall{onnxSizes: n{T: 2, S: 4}, options: offset(2, causal())}, "xxx. xxxx"},
		{"an offset below 0", onnxCall{onnxSizes: n{T: 3, S: 2}, options: offset(-1, causal())}, ".. x. xx"},
		{"an offset far below 0, with a window open on the right", onnxCall{onnxSizes: n{T: 2, S: 2}, options: offset(-9, within(1, -1))}, "xx xx"},
		{"an offset far above all keys", onnxCall{onnxSizes: n{T: 2, S: 2}, options: offset(9, within(3, 3))}, ".. .."},
		{"a huge offset", onnxCall{onnxSizes: n{T: 2, S: 2}, options: offset(math.MaxInt/8, causal())}, "xx xx"},
		{"blocks", onnxCall{onnxSizes: n{T: 4, S: 4}, blocks: onnxPrefix}, "xx.. xx.. xxx. xxxx"},
		{"blocks: with a window and lengths", onnxCall{onnxSizes: n{T: 4, S: 4}, options: within(1, 0), blocks: onnxPrefix, lengths: []int{3}}, "x... xx.. .xx. ..x."},
		{"blocks: an offset moves the queries", onnxCall{onnxSizes: n{B: 2, T: 2, S: 4}, blocks: onnxPrefix, offsets: []int{1, -1}}, "xx.. ....|.... xx.."},
		{"blocks: after past keys", onnxCall{onnxSizes: n{T: 2, S: 2, P: 2}, blocks: onnxPrefix}, "xxx. xxxx"},
		{"documents", onnxCall{onnxSizes: n{B: 2, T: 4, S: 4}, documents: []int{5, 5, 5, 2, 0, 1, 1, 1}}, "xxx. xxx. xxx. ...x|x... .xxx .xxx .xxx"},
		{"documents: causal", onnxCall{onnxSizes: n{B: 2, T: 4, S: 4}, options: causal(), documents: []int{5, 5, 5, 2, 0, 1, 1, 1}}, "x... xx.. xxx. ...x|x... .x.. .xx. .xxx"},
		{"documents: keys that don't adjoin", onnxCall{onnxSizes: n{T: 4, S: 4}, documents: []int{5, 2, 5, 2}}, "x.x. .x.x x.x. .x.x"},
		{"documents: with a window, lengths and a mask", onnxCall{onnxSizes: n{T: 4, S: 4}, options: within(1, 1), documents: []int{5, 5, 5, 2}, lengths: []int{3}, allow: bools(".xxx", 4)}, ".x.. .xx. .xx. ...."},
		{"documents: an offset moves the queries", onnxCall{onnxSizes: n{T: 3, S: 4}, options: offset(2, layers.AttentionOptions{}), documents: []int{5, 5, 5, 2}}, "xxx. ...x ...."},
		{"documents: after past keys", onnxCall{onnxSizes: n{T: 2, S: 2, P: 2}, documents: []int{5, 5, 5, 2}}, "xxx. ...x"},
		{"an offset after past keys", onnxCall{onnxSizes: n{T: 2, S: 2, P: 2}, options: offset(-1, causal())}, "xx.. xxx."},
		{"an offset for each batch element", onnxCall{onnxSizes: n{B: 2, T: 2, S: 3}, options: causal(), offsets: []int{1, -1}}, "xx. xxx|... x.."},
		{"offsets after past keys", onnxCall{onnxSizes: n{B: 2, T: 2, S: 1, P: 2}, options: causal(), offsets: []int{0, -2}}, "xxx xxx|x.. xx."},
	}
}

// onnxPrefix is the function of a BlockMask: two keys that all queries see, and causal attention.
func onnxPrefix(query, key int) bool { return key < 2 || key <= query }

// offset returns the options with Offset n.
func offset(n int, o layers.AttentionOptions) layers.AttentionOptions {
	o.Mask.Offset = n
	return o
}

// weights returns the weights for queries of zeros: 1 divided by the number of visible keys, and 0 for masked keys.
func (r onnxRule) weights(t *testing.T, n onnxSizes) []float64 {
	t.Helper()
	parts := strings.Split(r.sees, "|")
	var out []float64
	for i := range n.B * n.H {
		switch len(parts) {
		case 1:
			i = 0
		case n.B:
			i /= n.H
		}
		rows := strings.Fields(parts[i])
		if len(rows) != n.T || len(rows[0]) != n.keys() {
			t.Fatalf("the pattern %q must have %d words of %d marks", parts[i], n.T, n.keys())
		}
		for _, row := range rows {
			for _, mark := range row {
				w := 0.0
				if mark == 'x' {
					w = 1 / float64(strings.Count(row, "x"))
				}
				out = append(out, w)
			}
		}
	}
	return out
}

// TestOnnxMasks checks which queries see which keys. Queries are zeros and values are the identity matrix, so the
// outputs are the weights.
func TestOnnxMasks(t *testing.T) {
	for _, r := range onnxRules() {
		if testing.Short() && testseed.LeftOut(r.rule) {
			continue
		}
		t.Run(r.rule, func(t *testing.T) {
			c := r.call
			c.onnxSizes = c.whole()
			c.V = c.keys()
			c.fill(1)
			clear(c.q)
			identity := make([]float64, c.B*c.G*c.V*c.V)
			for row := range c.B * c.G * c.V {
				identity[row*c.V+row%c.V] = 1
			}
			c.pastValue, c.v = c.part(identity, c.V)
			want := r.weights(t, c.onnxSizes)
			near(t, "the operator in onnx_test.go", c.expect(c.gradient()).output, want, 1e-15)
			for _, l := range []onnxLayout{onnxHeads, onnxSide} {
				for _, composed := range []bool{false, true} {
					got := c.run(t, l, tensor.Float64, layers.Build{Composed: composed}, c.gradient())
					near(t, fmt.Sprintf("%v, composed %t", l, composed), got.output, want, 1e-15)
				}
			}
		})
	}
}
