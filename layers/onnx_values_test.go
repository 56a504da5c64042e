package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

var ln3 = math.Log(3)

// scaled sets the attribute scale. capped sets the attribute softcap, with a scale of 1. sloped sets slopes, which the
// operator doesn't have.
func scaled(scale float64) layers.AttentionOptions { return layers.AttentionOptions{Scale: scale} }
func capped(c float64) layers.AttentionOptions     { return layers.AttentionOptions{Scale: 1, Softcap: c} }

func sloped(slopes ...float64) layers.AttentionOptions {
	return layers.AttentionOptions{Mask: layers.Mask{Slopes: slopes}}
}

// An onnxValue is a call whose output can be computed by hand.
type onnxValue struct {
	rule string
	call onnxCall
	want []float64 // (B, H, T, V)
}

// onnxValues returns the calls. Most have scores of ln 3 and 0, so the weights are ¾ and ¼. tanh(½·ln 3) is ½.
func onnxValues() []onnxValue {
	type n = onnxSizes
	type f = []float64
	return []onnxValue{
		{"scale: 1/√K", onnxCall{onnxSizes: n{S: 2, K: 4}, q: f{1, 1, 1, 1}, k: f{ln3 / 2, ln3 / 2, ln3 / 2, ln3 / 2, 0, 0, 0, 0}, v: f{4, 0}}, f{3}},
		{"scale: by the width of one head", onnxCall{onnxSizes: n{H: 4, S: 2}, q: f{1, 1, 1, 1}, k: f{ln3, 0, ln3, 0, ln3, 0, ln3, 0}, v: f{4, 0, 8, 0, 0, 4, 0, 8}}, f{3, 6, 1, 2}},
		{"scale: set in the call", onnxCall{onnxSizes: n{S: 2}, options: scaled(0.5), q: f{2}, k: f{ln3, 0}, v: f{4, 0}}, f{3}},
		{"scale: below 0", onnxCall{onnxSizes: n{S: 2}, options: scaled(-1), q: f{1}, k: f{ln3, 0}, v: f{4, 0}}, f{1}},

		// 2·tanh(ln 3 / 2) = 1, so the weights are proportional to e and 1.
		{"softcap: c·tanh(s/c)", onnxCall{onnxSizes: n{S: 2}, options: capped(2), q: f{1}, k: f{ln3, 0}, v: f{1 + math.E, 0}}, f{math.E}},
		{"softcap: after the scale", onnxCall{onnxSizes: n{S: 2}, options: layers.AttentionOptions{Scale: 3, Softcap: 2}, q: f{1}, k: f{ln3 / 3, 0}, v: f{1 + math.E, 0}}, f{math.E}},
		{"softcap: bounds huge scores", onnxCall{onnxSizes: n{S: 2}, options: capped(ln3 / 2), q: f{1}, k: f{1e6, -1e6}, v: f{4, 0}}, f{3}},
		{"softcap: bounds scores of infinite keys", onnxCall{onnxSizes: n{S: 2}, options: capped(ln3 / 2), q: f{1}, k: f{inf, -inf}, v: f{4, 0}}, f{3}},
		{"softcap: 0 is off", onnxCall{onnxSizes: n{S: 2}, options: capped(0), q: f{1}, k: f{ln3, 0}, v: f{4, 0}}, f{3}},
		{"softcap: a masked key stays masked", onnxCall{onnxSizes: n{S: 3}, options: capped(2), allow: bools("x.x", 3), q: f{1}, k: f{ln3, 5, 0}, v: f{1 + math.E, 99, 0}}, f{math.E}},
		{"softcap: a key masked by a float mask stays masked", onnxCall{onnxSizes: n{S: 3}, options: capped(2), bias: holes("x.x", 3), q: f{1}, k: f{ln3, 5, 0}, v: f{1 + math.E, 99, 0}}, f{math.E}},
		{"softcap: before a float mask, which it doesn't bound", onnxCall{onnxSizes: n{S: 2}, options: capped(2), bias: dense(f{ln3 - 1, 0}, 2), q: f{1}, k: f{ln3, 0}, v: f{4, 0}}, f{3}},

		{"float mask: added to scaled scores", onnxCall{onnxSizes: n{S: 2}, options: scaled(0.5), bias: dense(f{-ln3, 0}, 1, 1, 1, 2), q: f{2}, k: f{ln3, 0}, v: f{4, 0}}, f{2}},
		{"float mask: it is the whole score if queries are zeros", onnxCall{onnxSizes: n{T: 2, S: 2}, bias: dense(f{ln3, 0, 0, ln3}, 2, 2), q: f{0, 0}, k: f{7, 8}, v: f{4, 0}}, f{3, 1}},
		{"float mask: equal finite numbers mask no key, however low", onnxCall{onnxSizes: n{S: 2}, bias: dense(f{-1e30, -1e30}, 2), q: f{0}, k: f{0, 0}, v: f{4, 0}}, f{2}},
		{"float mask: a very low number beside a higher one gives weight 0", onnxCall{onnxSizes: n{S: 2}, bias: dense(f{-1e30, 0}, 2), q: f{0}, k: f{0, 0}, v: f{4, 0}}, f{0}},
		{"float mask: the head axis broadcasts", onnxCall{onnxSizes: n{H: 2, S: 2}, bias: dense(f{ln3, 0}, 1, 1, 2), q: f{0, 0}, k: f{0, 0, 0, 0}, v: f{4, 0, 0, 4}}, f{3, 1}},

		// With one key, the output is its value.
		{"grouped heads: three neighbours share a key head", onnxCall{onnxSizes: n{H: 9, G: 3}, q: make([]float64, 9), k: make([]float64, 3), v: f{1, 2, 3}}, f{1, 1, 1, 2, 2, 2, 3, 3, 3}},
		{"grouped heads: all share one key head", onnxCall{onnxSizes: n{H: 4, G: 1}, q: make([]float64, 4), k: make([]float64, 1), v: f{5}}, f{5, 5, 5, 5}},
		{"grouped heads: in each batch element", onnxCall{onnxSizes: n{B: 2, H: 4, G: 2}, q: make([]float64, 8), k: make([]float64, 4), v: f{1, 2, 3, 4}}, f{1, 1, 2, 2, 3, 3, 4, 4}},
		{"grouped heads: keys are grouped like values", onnxCall{onnxSizes: n{H: 4, G: 2, S: 2}, q: f{1, 1, 1, -1}, k: f{0, 0, ln3, 0}, v: f{4, 0, 4, 0}}, f{2, 2, 3, 1}},
		{"grouped heads: one query head per key head", onnxCall{onnxSizes: n{H: 2, T: 2}, q: make([]float64, 4), k: make([]float64, 2), v: f{1, 2}}, f{1, 1, 2, 2}},

		{"value width: more than the keys'", onnxCall{onnxSizes: n{S: 2, V: 3}, q: f{1}, k: f{ln3, 0}, v: f{4, 8, 0, 0, 4, 12}}, f{3, 7, 3}},
		{"value width: less than the keys'", onnxCall{onnxSizes: n{S: 2, K: 4, V: 1}, q: f{0, 2, 0, 0}, k: f{9, ln3, 9, 9, 9, 0, 9, 9}, v: f{4, 0}}, f{3}},
		{"past: before the new keys", onnxCall{onnxSizes: n{S: 1, P: 1}, options: scaled(1), q: f{1}, pastKey: f{ln3}, k: f{0}, pastValue: f{4}, v: f{0}}, f{3}},
		{"past: in each batch element and head", onnxCall{onnxSizes: n{B: 2, H: 2, S: 1, P: 1}, q: make([]float64, 4), pastKey: make([]float64, 4), k: make([]float64, 4), pastValue: f{1, 2, 3, 4}, v: f{5, 6, 7, 8}},
			f{3, 4, 5, 6}},

		// Options that the operator doesn't have.
		{"slopes: lower scores by distance, on both sides", onnxCall{onnxSizes: n{H: 2, S: 2}, options: sloped(ln3, -ln3), q: f{0, 0}, k: make([]float64, 4), v: f{4, 0, 4, 0}}, f{3, 1}},
		{"slopes: from the query's position", onnxCall{onnxSizes: n{S: 1, P: 1}, options: sloped(ln3), q: f{0}, pastKey: f{0}, k: f{0}, pastValue: f{0}, v: f{4}}, f{3}},
	}
}

// TestOnnxValues compares the library, and the operator in onnx_test.go, with numbers computed by hand.
func TestOnnxValues(t *testing.T) {
	tolerance := map[tensor.Dtype]float64{tensor.Float64: 2e-15, tensor.Float32: 1e-6}
	for i, r := range onnxValues() {
		if testing.Short() && testseed.LeftOut(r.rule) {
			continue
		}
		t.Run(r.rule, func(t *testing.T) {
			c := r.call
			c.onnxSizes = c.whole()
			want := c.expect(c.gradient())
			near(t, "the operator in onnx_test.go", want.output, r.want, 1e-15)
			for dt := range tolerance {
				for _, l := range []onnxLayout{onnxHeads, onnxSide} {
					for _, composed := range []bool{false, true} {
						got := c.run(t, l, dt, layers.Build{Composed: composed}, c.gradient())
						what := fmt.Sprintf("%v of %v, composed %t", l, dt, composed)
						near(t, what, got.output, r.want, tolerance[dt])
						want.agree(t, what, got, formTolerance(dt))
					}
				}
			}
			c.fill(uint64(i))
			c.check(t, "drawn", onnxHeads, tensor.Float64, onnxFills[i%3])
			c.check(t, "drawn", onnxSide, tensor.Float32)
		})
	}
}

// TestOnnxStages compares the stages with known values. They are the operator's outputs present_key, present_value, and
// qk_matmul_output in the modes 0 to 3.
func TestOnnxStages(t *testing.T) {
	type n = onnxSizes
	type f = []float64
	for _, tc := range []struct {
		rule                            string
		call                            onnxCall
		scores, capped, masked, weights []float64
	}{
		{"only scores", onnxCall{onnxSizes: n{S: 2}, options: scaled(2), q: f{1}, k: f{ln3 / 2, 0}},
			f{ln3, 0}, f{ln3, 0}, f{ln3, 0}, f{0.75, 0.25}},
		{"softcap appears in mode 1, not in mode 0", onnxCall{onnxSizes: n{S: 2}, options: capped(2), q: f{1}, k: f{ln3, -ln3}},
			f{ln3, -ln3}, f{1, -1}, f{1, -1}, f{1 / (1 + math.Exp(-2)), 1 / (1 + math.Exp(2))}},
		{"a float mask appears in mode 2, not in modes 0 and 1", onnxCall{onnxSizes: n{S: 3}, options: capped(2), bias: dense(f{0, 1, -inf}, 3), q: f{1}, k: f{ln3, 0, ln3}},
			f{ln3, 0, ln3}, f{1, 0, 1}, f{1, 1, -inf}, f{0.5, 0.5, 0}},
		{"a boolean mask appears in mode 2 as −Inf", onnxCall{onnxSizes: n{S: 2}, options: capped(2), allow: bools(".x", 2), q: f{1}, k: f{0, ln3}},
			f{0, ln3}, f{0, 1}, f{-inf, 1}, f{0, 1}},
		{"causal and lengths appear in mode 2, also for past keys", onnxCall{onnxSizes: n{B: 2, T: 1, S: 2, P: 1}, options: causal(), lengths: []int{3, 1}, q: f{1, 1}, pastKey: f{0, 1}, k: f{0, 5, 2, 3}},
			f{0, 0, 5, 1, 2, 3}, f{0, 0, 5, 1, 2, 3}, f{0, 0, -inf, 1, -inf, -inf}, f{0.5, 0.5, 0, 1, 0, 0}},
		{"a row without visible keys is −Inf, with weights of 0", onnxCall{onnxSizes: n{T: 2, S: 2}, options: offset(3, within(1, -1)), q: f{1, 1}, k: f{1, 2}},
			f{1, 2, 1, 2}, f{1, 2, 1, 2}, f{-inf, -inf, -inf, -inf}, f{0, 0, 0, 0}},
		{"scores have query heads", onnxCall{onnxSizes: n{H: 4, G: 2}, q: f{1, 2, 3, 4}, k: f{1, 10}},
			f{1, 2, 30, 40}, f{1, 2, 30, 40}, f{1, 2, 30, 40}, f{1, 1, 1, 1}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := tc.call
			c.onnxSizes = c.whole()
			c.v, c.pastValue = random(1, len(c.k)).Float64s(), random(2, max(1, len(c.pastKey))).Float64s()
			want := onnxResults{output: c.expect(c.gradient()).output, stages: map[string][]float64{
				"key": c.join(c.pastKey, c.k, 1), "value": c.join(c.pastValue, c.v, 1),
				"scores": tc.scores, "capped": tc.capped, "masked": tc.masked, "weights": tc.weights, "dropped": tc.weights,
			}}
			naive := c.expect(c.gradient())
			naive.grads = nil
			want.agree(t, "the operator in onnx_test.go", naive, 1e-15)
			for _, l := range []onnxLayout{onnxHeads, onnxSide} {
				got := c.run(t, l, tensor.Float64, layers.Build{Composed: true}, c.gradient())
				got.grads = nil
				want.agree(t, l.String(), got, 1e-15)
			}
		})
	}
}

// TestOnnxMaskedPassesNothingBack uses Masked (qk_matmul_output in mode 2) in the cost. Where Masked is −Inf, the bias
// has a gradient of 0.
func TestOnnxMaskedPassesNothingBack(t *testing.T) {
	c := onnxCall{onnxSizes: onnxSizes{H: 2, T: 2, S: 3, K: 2}, options: causal(), bias: holes("x.x .xx", 2, 3)}
	c.onnxSizes = c.whole()
	c.fill(1)
	g := G.NewGraph()
	q, k, v, o, _ := c.build(g, onnxHeads, tensor.Float64)
	st := must.Get(layers.ScaledDotProductStages(&layers.Build{}, q, k, v, o))(t)
	w := random(2, 1, 2, 2, 3)
	got := read(t, gradients(t, weigh(t, st.Masked, input(g, "w", w)), o.Mask.Bias)...)[0]
	x := w.Float64s()
	near(t, "gradient of the bias", got, []float64{x[0] + x[6], 0, 0, 0, x[4] + x[10], 0}, 1e-15)
}
