package layers_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// TestMaskedKeysAndValues puts what isn't finite into masked keys alone and into masked values alone.
func TestMaskedKeysAndValues(t *testing.T) {
	var cases []hidingCase
	for _, what := range []string{"keys", "values"} {
		for name, m := range map[string]func(c *bench) layers.Mask{
			"lengths": func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(4, 0)} },
			"allow":   func(c *bench) layers.Mask { return layers.Mask{Allow: c.allowShort(4, 0)} },
			"bias":    func(c *bench) layers.Mask { return layers.Mask{Bias: c.biasShort(4, 0)} },
			"short":   func(c *bench) layers.Mask { return layers.Mask{Bias: c.in("bias", 4)} },
		} {
			hidden := past(4, 0)
			if name == "short" {
				hidden = past(4, 4)
			}
			cases = append(cases, hidingCase{
				name: what + ", " + name, shape: []int{2, 6, 3}, hidden: hidden, looked: everything,
				build: func(c *bench, x *G.Node) *G.Node {
					q, other := c.in("query", 2, 5, 3), c.in("other", 2, 6, 3)
					k, v := x, other
					if what == "values" {
						k, v = other, x
					}
					return c.node(layers.ScaledDotProduct(c.b, q, k, v, layers.AttentionOptions{Mask: m(c)}))
				},
			})
		}
	}
	hide(t, cases)
}

// allowShort is allowBefore without a head axis: (B, 1, S).
func (c *bench) allowShort(lengths ...int) *G.Node {
	values := make([]bool, len(lengths)*6)
	eachRow([]int{len(lengths), 6}, func(r, b, i int) { values[r] = i < lengths[b] })
	return input(c.g, "allow", dense(values, len(lengths), 1, 6))
}

// biasShort is biasBefore without a head axis: (B, 1, S).
func (c *bench) biasShort(lengths ...int) *G.Node {
	values := random(31, len(lengths), 1, 6)
	eachRow([]int{len(lengths), 6}, func(r, b, i int) {
		if i >= lengths[b] {
			values.Float64s()[r] = math.Inf(-1)
		}
	})
	n := input(c.g, "bias", as(c.dt, values))
	c.wrt = append(c.wrt, n)
	return n
}

// TestFullyMaskedRows has queries with nothing to attend to: weights, output and gradients are exactly 0, and nothing
// else is touched, whatever the keys hold.
func TestFullyMaskedRows(t *testing.T) {
	const rows, width = 3, 4 // of queries, of keys
	for name, tc := range map[string]struct {
		mask  func(c *bench) layers.Mask
		empty []int // rows of (2, 3) that see nothing
	}{
		"length 0":       {func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(4, 0)} }, []int{3, 4, 5}},
		"lengths 0":      {func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(0, 0)} }, []int{0, 1, 2, 3, 4, 5}},
		"allow":          {func(c *bench) layers.Mask { return layers.Mask{Allow: c.allow([]int{1}, 3, 4)} }, []int{1, 4}},
		"intersection":   {func(c *bench) layers.Mask { return layers.Mask{Causal: true, Allow: c.onlyLast()} }, []int{0, 1, 2, 3, 4, 5}},
		"bias":           {func(c *bench) layers.Mask { return layers.Mask{Bias: c.biasRows(-inf, 0.5, -inf)} }, []int{0, 2, 3, 5}},
		"short and none": {func(c *bench) layers.Mask { return layers.Mask{Allow: input(c.g, "allow", dense([]bool{false}, 1))} }, []int{0, 1, 2, 3, 4, 5}},
	} {
		for _, poison := range []float64{0.3, math.NaN(), inf} {
			t.Run(fmt.Sprintf("%s, %v", name, poison), func(t *testing.T) {
				c := newBench(t)
				q, k, v := c.in("q", 2, rows, 2), c.in("k", 2, width, 2), c.in("v", 2, width, 2)
				if len(tc.empty) == 2*rows { // nobody looks at any key
					for _, n := range (G.Nodes{k, v}) {
						x := n.Value().Data().([]float64)
						for i := range x {
							x[i] = poison
						}
					}
				}
				for _, r := range tc.empty {
					q.Value().Data().([]float64)[r*2] = poison
				}
				out, weights, err := scaledDotProduct(c.b, q, k, v, layers.AttentionOptions{Mask: tc.mask(c)})
				if err != nil {
					t.Fatal(err)
				}
				loss := weigh(t, out, input(c.g, "w", random(8, 2, rows, 2)))
				got := read(t, append(G.Nodes{out, weights}, gradients(t, loss, c.wrt...)...)...)
				for r := range 2 * rows {
					empty := slices.Contains(tc.empty, r)
					for what, row := range map[string][]float64{
						"output": got[0][r*2:][:2], "weights": got[1][r*width:][:width], "gradient of q": got[2][r*2:][:2],
					} {
						if allZero(row) != empty {
							t.Errorf("%s of row %d is %v; nothing to attend to: %t", what, r, row, empty)
						}
					}
				}
				for i, x := range got[2:] {
					for _, e := range x {
						if math.IsNaN(e) || math.IsInf(e, 0) || len(tc.empty) == 2*rows && e != 0 {
							t.Errorf("gradient of %s is %v", c.wrt[i].Name(), x)
							break
						}
					}
				}
			})
		}
	}
}

// onlyLast allows the last key alone.
func (c *bench) onlyLast() *G.Node {
	return input(c.g, "allow", dense([]bool{false, false, false, true}, 1, 4))
}

// biasRows is a bias of (3, 4), one value a row.
func (c *bench) biasRows(values ...float64) *G.Node {
	var all []float64
	for _, v := range values {
		all = append(all, v, v, v, v)
	}
	n := input(c.g, "bias", dense(all, len(values), 4))
	c.wrt = append(c.wrt, n)
	return n
}

// TestTokensThatCannotMatter changes padded and future ids of whole models.
func TestTokensThatCannotMatter(t *testing.T) {
	config := layers.ModelConfig{Vocab: 9, Positions: layers.Learned{MaxLen: 8}, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, Dropout: 0.2}, FeedForward: layers.FeedForwardConfig{Activation: layers.GELU, Dropout: 0.2}, Dropout: 0.2}, Layers: 2, Outputs: 9, Dropout: 0.2}
	lengths := []int{5, 3}
	encoder := func(c *bench, ids *G.Node) *G.Node {
		e := must[*layers.Encoder](c)(layers.NewEncoder(c.p, config))
		return c.node(e.Forward(c.b, ids, layers.Mask{KeyLengths: c.lengths(lengths...)}))
	}
	decoder := func(c *bench, ids *G.Node) *G.Node {
		d := must[*layers.Decoder](c)(layers.NewDecoder(c.p, config))
		return c.node(d.Forward(c.b, ids, layers.Mask{}))
	}
	for name, model := range map[string]func(c *bench, ids *G.Node) *G.Node{"encoder's padding": encoder, "decoder's future": decoder} {
		t.Run(name, func(t *testing.T) {
			run := func(filler int) [][]float64 {
				c := &bench{T: t, g: G.NewGraph(), p: newParams(t), b: &layers.Build{Mode: layers.Training, Seed: 4}}
				ids := []int{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4}
				targets := slices.Clone(ids)
				eachRow([]int{2, 6}, func(r, b, i int) {
					if i >= lengths[b] {
						ids[r], targets[r] = filler, layers.Ignore
					}
				})
				y := model(c, c.ints("ids", ids, 2, 6))
				loss := c.node(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", targets, 2, 6), layers.CrossEntropyOptions{}))
				got := read(t, append(G.Nodes{y, loss}, gradients(t, loss, c.b.Learnables()...)...)...)
				eachRow([]int{2, 6}, func(r, b, i int) {
					if i >= lengths[b] {
						clear(got[0][r*9:][:9])
					}
				})
				return got
			}
			want := run(0)
			for _, filler := range []int{3, 8} {
				for i, got := range run(filler) {
					sameBits(t, fmt.Sprintf("filler %d: output, loss or gradient %d", filler, i), got, want[i])
				}
			}
		})
	}
}

// TestMaskIsWhatItSays reads the weights of the simplest masks.
func TestMaskIsWhatItSays(t *testing.T) {
	zero := func(shape ...int) *tensor.Dense {
		return dense(make([]float64, tensor.Shape(shape).TotalSize()), shape...)
	}
	third := 1.0 / 3
	for name, tc := range map[string]struct {
		mask func(g *G.ExprGraph) layers.Mask
		want []float64
	}{
		"none": {func(*G.ExprGraph) layers.Mask { return layers.Mask{} }, []float64{third, third, third, third, third, third}},
		"causal from the top left": {func(*G.ExprGraph) layers.Mask { return layers.Mask{Causal: true} },
			[]float64{1, 0, 0, 0.5, 0.5, 0}},
		"true means attend": {func(g *G.ExprGraph) layers.Mask {
			return layers.Mask{Allow: input(g, "m", dense([]bool{false, true, true}, 3))}
		}, []float64{0, 0.5, 0.5, 0, 0.5, 0.5}},
		"bias is added": {func(g *G.ExprGraph) layers.Mask {
			return layers.Mask{Bias: input(g, "m", dense([]float64{math.Log(2), math.Log(5), 0}, 3))}
		}, []float64{0.25, 0.625, 0.125, 0.25, 0.625, 0.125}},
		"a shorter mask masks the rest": {func(g *G.ExprGraph) layers.Mask {
			return layers.Mask{Allow: input(g, "m", dense([]bool{true, true, true, false}, 2, 2))}
		}, []float64{0.5, 0.5, 0, 1, 0, 0}},
		"lengths": {func(g *G.ExprGraph) layers.Mask { return layers.Mask{KeyLengths: input(g, "m", dense([]int{1}, 1))} },
			[]float64{1, 0, 0, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			g := G.NewGraph()
			q, k, v := input(g, "q", zero(2, 4)), input(g, "k", zero(3, 4)), input(g, "v", zero(3, 1))
			_, weights, err := scaledDotProduct(&layers.Build{}, q, k, v, layers.AttentionOptions{Mask: tc.mask(g)})
			if err != nil {
				t.Fatal(err)
			}
			near(t, "weights", read(t, weights)[0], tc.want, 1e-15)
		})
	}
}
