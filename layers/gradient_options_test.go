package layers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
)

// attend adds a call in float64 to the bench's graph. The bench's Build chooses the form.
func (c *bench) attend(call *onnxCall, l onnxLayout) *G.Node {
	c.Helper()
	q, k, v, o, wrt := call.build(c.g, l, tensor.Float64)
	c.wrt = append(c.wrt, wrt...)
	return c.node(layers.ScaledDotProduct(c.b, q, k, v, o))
}

// TestGradientsOfOptions compares gradients with finite differences, for every option and in both forms. It checks the
// gradients of queries, keys, values, past keys, past values and the bias. Further cases add the stages of the composed
// form to the cost.
func TestGradientsOfOptions(t *testing.T) {
	type mask = layers.Mask
	options := func(m mask) layers.AttentionOptions { return layers.AttentionOptions{Mask: m} }
	past := onnxSizes{P: 2}
	var cases []gradientCase
	for i, tc := range []struct {
		name string
		call onnxCall // by default a batch of 2, 2 heads, 3 queries and 4 keys
	}{
		{"none", onnxCall{}},
		{"scale", onnxCall{options: scaled(-0.8)}},
		{"softcap", onnxCall{options: capped(0.6)}},
		{"softcap, far beyond it", onnxCall{options: layers.AttentionOptions{Scale: 9, Softcap: 1.5}}},
		{"softcap and causal", onnxCall{options: layers.AttentionOptions{Softcap: 0.6, Mask: mask{Causal: true}}}},
		{"softcap and a boolean mask", onnxCall{options: capped(0.6), allow: bools("x.xx .... .xx.", 3, 4)}},
		{"softcap and bias", onnxCall{options: capped(0.6), bias: random(3, 2, 3, 4)}},
		{"score", onnxCall{options: layers.AttentionOptions{Score: wavy}}},
		{"score and softcap", onnxCall{options: layers.AttentionOptions{Score: wavy, Softcap: 0.6}, offsets: []int{1, -1}}},
		{"score, bias and causal", onnxCall{options: layers.AttentionOptions{Score: wavy, Mask: mask{Causal: true}}, bias: random(3, 2, 3, 4)}},
		{"score of grouped heads after past keys", onnxCall{onnxSizes: onnxSizes{P: 2, H: 4, G: 2}, options: layers.AttentionOptions{Score: wavy}}},
		{"window on the left", onnxCall{options: within(1, -1)}},
		{"window on the right", onnxCall{options: within(-1, 1)}},
		{"window on both sides", onnxCall{options: within(1, 1)}},
		{"window and causal", onnxCall{options: causalWithin(1, -1)}},
		{"window without keys for some queries", onnxCall{options: offset(2, within(0, 0))}},
		{"offset", onnxCall{options: offset(1, causal())}},
		{"offset below 0", onnxCall{options: offset(-2, causal())}},
		{"offsets", onnxCall{options: causal(), offsets: []int{1, -1}}},
		{"offsets and a window", onnxCall{options: within(1, 0), offsets: []int{1, -1}}},
		{"lengths", onnxCall{lengths: []int{3, 0}}},
		{"lengths of 0", onnxCall{lengths: []int{0, 0}}},
		{"valid keys", onnxCall{onnxSizes: onnxSizes{T: 3}, options: causal()}.valid(4, 2)},
		{"documents", onnxCall{documents: []int{3, 3, 8, 8, 1, 2, 2, 2}}},
		{"documents, causal", onnxCall{options: causal(), documents: []int{3, 3, 8, 8, 1, 2, 2, 2}}},
		{"documents whose keys don't adjoin", onnxCall{documents: []int{3, 8, 3, 8, 1, 2, 2, 1}}},
		{"documents, offsets and a softcap", onnxCall{options: capped(0.6), offsets: []int{1, -1}, documents: []int{3, 3, 8, 8, 1, 2, 2, 2}}},
		{"documents after past keys", onnxCall{onnxSizes: past, options: causal(), documents: []int{3, 3, 3, 8, 8, 8, 1, 2, 2, 2, 3, 3}}},
		{"blocks", onnxCall{blocks: onnxPrefix}},
		{"blocks, offsets and a bias", onnxCall{blocks: onnxPrefix, offsets: []int{1, -1}, bias: random(3, 2, 3, 4)}},
		{"blocks after past keys", onnxCall{onnxSizes: past, blocks: onnxPrefix}},
		{"boolean mask", onnxCall{allow: bools("x.xx ..x.", 2, 1, 1, 4)}},
		{"boolean mask with an empty row", onnxCall{allow: bools("x.xx .... ..x.", 3, 4)}},
		{"bias", onnxCall{bias: random(3, 2, 1, 3, 4)}},
		{"bias of a number", onnxCall{bias: random(3, 1)}},
		{"short bias", onnxCall{bias: random(3, 2, 3, 2)}},
		{"slopes", onnxCall{options: options(mask{Slopes: []float64{0.5, -0.2}})}},
		{"slopes and offsets", onnxCall{options: options(mask{Slopes: []float64{0.5, 0.1}}), offsets: []int{-3, 3}}},
		{"grouped heads", onnxCall{onnxSizes: onnxSizes{H: 4, G: 2}}},
		{"one head of keys and values", onnxCall{onnxSizes: onnxSizes{H: 3, G: 1}}},
		{"grouped heads and bias", onnxCall{onnxSizes: onnxSizes{H: 4, G: 2}, bias: random(3, 4, 1, 4)}},
		{"past", onnxCall{onnxSizes: past}},
		{"past and causal", onnxCall{onnxSizes: past, options: causal()}},
		{"past outside the window", onnxCall{onnxSizes: past, options: within(0, -1)}},
		{"past and a mask of its length", onnxCall{onnxSizes: past, bias: random(3, 1, 2)}},
		{"past and offsets", onnxCall{onnxSizes: past, options: causal(), offsets: []int{0, -2}}},
		{"past of grouped heads", onnxCall{onnxSizes: onnxSizes{P: 1, H: 4, G: 2}, options: causal()}},
		{"everything", onnxCall{onnxSizes: onnxSizes{P: 2, H: 4, G: 2}, offsets: []int{0, -1}, lengths: []int{6, 4}, documents: []int{1, 1, 1, 1, 1, 2, 1, 2, 2, 2, 2, 2}, allow: bools("xxx.xx", 6), bias: random(3, 4, 1, 5),
			options: layers.AttentionOptions{Scale: 1.3, Softcap: 0.9, Score: wavy, Mask: mask{Causal: true, Window: &window{Left: 4, Right: 2}, Slopes: []float64{0.1, 0.2, 0.3, 0.4}}}}},
	} {
		call := &tc.call
		n := call.onnxSizes
		if n.H == 0 {
			n.H = 2
		}
		n.B, n.T, n.S, n.K, n.V = 2, 3, 4, 2, 3
		call.onnxSizes = n.whole()
		call.fill(5)
		l := []onnxLayout{onnxHeads, onnxSide}[i%2]
		cases = append(cases, gradientCase{tc.name, func(c *bench) *G.Node { return c.attend(call, l) }})
		cases = append(cases, gradientCase{tc.name + ", stages", func(c *bench) *G.Node {
			return c.attendStages(call, onnxHeads+onnxSide-l)
		}})
	}
	cases = append(cases, gradientCase{"one node for all operands", func(c *bench) *G.Node {
		x := c.in("x", 2, 3, 4)
		return c.node(layers.ScaledDotProduct(c.b, x, x, x, layers.AttentionOptions{Heads: 2, PastKey: x, PastValue: x, Mask: layers.Mask{Causal: true}}))
	}})
	for _, l := range []onnxLayout{onnxBatch, onnxMatrix} {
		call := &onnxCall{onnxSizes: onnxSizes{B: 2, H: 1, G: 1, T: 3, S: 4, P: 1, K: 2, V: 3}, options: causal(), bias: random(3, 3, 5)}
		if l == onnxMatrix {
			call.B = 1
		}
		call.fill(5)
		cases = append(cases, gradientCase{l.String(), func(c *bench) *G.Node { return c.attend(call, l) }})
	}
	checkGradients(t, cases)
}

// attendStages returns a cost that includes every stage of the composed form. If keys are masked, the cost leaves out
// Masked, because masked scores are −Inf.
func (c *bench) attendStages(call *onnxCall, l onnxLayout) *G.Node {
	q, k, v, o, wrt := call.build(c.g, l, tensor.Float64)
	c.wrt = wrt
	st := must.Get(layers.ScaledDotProductStages(c.b, q, k, v, o))(c)
	stages := G.Nodes{st.Key, st.Value, st.Scores, st.Capped, st.Changed, st.Weights}
	if !slices.Contains(call.expect(call.gradient()).stages["masked"], -inf) {
		stages = append(stages, st.Masked)
	}
	cost := c.node(gradcheck.Project(st.Output, 1))
	for i, n := range stages {
		cost = c.node(G.Add(cost, c.node(gradcheck.Project(n, uint64(2+i)))))
	}
	return cost
}

// TestGradientsOfRandomOptions draws calls with random options. For each input, it checks the derivative along a random
// direction.
func TestGradientsOfRandomOptions(t *testing.T) {
	t.Parallel()
	drawRounds(t, 40, func(r *rand.Rand, what string) {
		call, l := drawCall(r, 40)
		if call.bias != nil {
			for i, x := range call.bias.Float64s() {
				call.bias.Float64s()[i] = max(x, -2) // finite differences need finite values
			}
		}
		for _, composed := range []bool{false, true} {
			c := newBench(t)
			c.b.Composed = composed
			cost := c.node(gradcheck.Project(c.attend(call, l), 3))
			if err := (gradcheck.Config{Directional: true, Seed: r.Uint64()}).Expr(cost, c.wrt...); err != nil {
				t.Errorf("%s, %v, %v, composed %t: %v", what, call, l, composed, err)
			}
		}
	})
}

// TestFormsDropTheSame runs training graphs of both forms several times. Dropout depends on the seed and the run's
// number, not on the form. TestOnnxDropout checks how dropout changes outputs and gradients.
func TestFormsDropTheSame(t *testing.T) {
	const runs = 3
	for _, name := range []string{"attention", "multi-head attention"} {
		results := func(composed bool) (out [][][]float64) {
			c := newBench(t)
			c.b.Seed, c.b.Composed = 9, composed
			var y *G.Node
			if name == "attention" {
				call := &onnxCall{onnxSizes: onnxSizes{B: 2, H: 4, G: 2, T: 5, S: 7, P: 3, K: 3, V: 2}, options: causal(), bias: random(3, 5, 10)}
				call.options.Dropout = 0.3
				call.fill(5)
				y = c.attend(call, onnxHeads)
			} else {
				a := c.multiHead(8, layers.AttentionConfig{Heads: 4, KeyValueHeads: 2, Dropout: 0.3, Softcap: 2})
				x := c.in("x", 2, 6, 8)
				x1 := c.node(a.Forward(c.b, x, x, x, layers.Mask{Causal: true}))
				y = c.node(a.Forward(c.b, x1, x1, x1, layers.Mask{})) // a second dropout with the same sizes
			}
			wrt := append(c.wrt, c.b.Learnables()...)
			nodes := append(G.Nodes{y}, gradients(t, weigh(t, y, input(c.g, "w", random(2, y.Shape()...))), wrt...)...)
			again := runner(t, nodes...)
			for range runs {
				out = append(out, must.Get(again())(t))
			}
			return out
		}
		fused, composed := results(false), results(true)
		for run := range runs {
			for i, want := range composed[run] {
				near(t, fmt.Sprintf("%s, run %d: output, or gradient %d", name, run, i), fused[run][i], want, 1e-12)
			}
			if run > 0 && slices.Equal(fused[run][0], fused[run-1][0]) {
				t.Errorf("%s: runs %d and %d drop the same elements", name, run-1, run)
			}
		}
	}
}
