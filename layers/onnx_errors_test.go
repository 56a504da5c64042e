package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestOptionErrors uses invalid options, in both forms. Each error names the layer, the expected and the actual value.
func TestOptionErrors(t *testing.T) {
	type options = layers.AttentionOptions
	type mask = layers.Mask
	nan := math.NaN()
	for _, tc := range []struct {
		name    string
		q, k, v []int // shapes; (2, 4, 3, 6), (2, 2, 5, 6) and (2, 2, 5, 4) if nil
		options func(c *bench) options
		want    []string
	}{
		{"scale NaN", nil, nil, nil, func(*bench) options { return options{Scale: nan} }, []string{"Scale", "finite", "NaN"}},
		{"scale infinite", nil, nil, nil, func(*bench) options { return options{Scale: -inf} }, []string{"Scale", "finite", "-Inf"}},
		{"softcap below 0", nil, nil, nil, func(*bench) options { return options{Softcap: -1} }, []string{"Softcap", "above 0", "-1"}},
		{"softcap NaN", nil, nil, nil, func(*bench) options { return options{Softcap: nan} }, []string{"Softcap", "NaN"}},
		{"softcap infinite", nil, nil, nil, func(*bench) options { return options{Softcap: inf} }, []string{"Softcap", "at most 1e+15", "+Inf"}},
		{"dropout of 1", nil, nil, nil, func(*bench) options { return options{Dropout: 1} }, []string{"dropout", "below 1", "got 1"}},
		{"dropout NaN", nil, nil, nil, func(*bench) options { return options{Dropout: nan} }, []string{"dropout", "NaN"}},

		{"heads below 0", []int{2, 3, 6}, []int{2, 5, 6}, []int{2, 5, 6}, func(*bench) options { return options{Heads: -1} }, []string{"Heads", "at least 0", "-1"}},
		{"key heads below 0", []int{2, 3, 6}, []int{2, 5, 6}, []int{2, 5, 6}, func(*bench) options { return options{Heads: 2, KeyValueHeads: -2} }, []string{"KeyValueHeads", "-2"}},
		{"key heads without heads", []int{2, 3, 6}, []int{2, 5, 6}, []int{2, 5, 6}, func(*bench) options { return options{KeyValueHeads: 2} }, []string{"KeyValueHeads", "Heads", "0 and 2"}},
		{"key heads don't divide heads", []int{2, 3, 6}, []int{2, 5, 4}, []int{2, 5, 4}, func(*bench) options { return options{Heads: 3, KeyValueHeads: 2} }, []string{"multiple of KeyValueHeads", "3 and 2"}},
		{"more key heads than heads", []int{2, 3, 6}, []int{2, 5, 12}, []int{2, 5, 12}, func(*bench) options { return options{Heads: 2, KeyValueHeads: 4} }, []string{"multiple of KeyValueHeads", "2 and 4"}},
		{"heads don't divide the queries' width", []int{2, 3, 7}, []int{2, 5, 6}, []int{2, 5, 6}, func(*bench) options { return options{Heads: 2} }, []string{"multiples", "H = 2", "(2, 3, 7)"}},
		{"heads don't divide the keys' width", []int{2, 3, 8}, []int{2, 5, 7}, []int{2, 5, 4}, func(*bench) options { return options{Heads: 4, KeyValueHeads: 2} }, []string{"multiples", "G = 2", "(2, 5, 7)"}},
		{"heads don't divide the values' width", []int{2, 3, 8}, []int{2, 5, 4}, []int{2, 5, 3}, func(*bench) options { return options{Heads: 4, KeyValueHeads: 2} }, []string{"multiples", "G = 2", "(2, 5, 3)"}},
		{"heads of other widths", []int{2, 3, 8}, []int{2, 5, 8}, []int{2, 5, 8}, func(*bench) options { return options{Heads: 4, KeyValueHeads: 2} }, []string{"agree in K", "(2, 3, 8)", "(2, 5, 8)"}},
		{"heads beside a head axis", nil, nil, nil, func(*bench) options { return options{Heads: 2} }, []string{"(B, T, H·K)", "(2, 4, 3, 6)"}},
		{"head axes don't divide", []int{2, 3, 3, 6}, nil, nil, func(*bench) options { return options{} }, []string{"multiple", "(2, 3, 3, 6)", "(2, 2, 5, 6)"}},
		{"head axes of keys and values", nil, nil, []int{2, 4, 5, 6}, func(*bench) options { return options{} }, []string{"same number of heads", "(2, 4, 5, 6)"}},
		{"batch", nil, []int{1, 2, 5, 6}, []int{1, 2, 5, 4}, func(*bench) options { return options{} }, []string{"batch", "(1, 2, 5, 6)"}},
		{"lengths of keys and values", nil, nil, []int{2, 2, 4, 4}, func(*bench) options { return options{} }, []string{"agree in K and S", "(2, 2, 4, 4)"}},

		{"blocks of too few keys", nil, nil, nil, func(c *bench) options { return options{Mask: mask{Blocks: c.blocks(9, 4)}} }, []string{"Mask.Blocks", "(3, 5)", "(9, 4)"}},
		{"blocks of too few queries", nil, nil, nil, func(c *bench) options { return options{Mask: mask{Offset: 1, Blocks: c.blocks(3, 5)}} }, []string{"Mask.Blocks", "(4, 5)", "(3, 5)"}},
		{"documents of another length", nil, nil, nil, func(c *bench) options {
			return options{Mask: mask{Documents: c.ints("documents", make([]int, 6), 2, 3)}}
		}, []string{"Mask.Documents", "(2, 5)", "(2, 3)"}},
		{"documents without a batch axis", nil, nil, nil, func(c *bench) options { return options{Mask: mask{Documents: c.ints("documents", make([]int, 5), 5)}} }, []string{"Mask.Documents", "(2, 5)", "(5)"}},
		{"documents of floats", nil, nil, nil, func(c *bench) options { return options{Mask: mask{Documents: c.in("documents", 2, 5)}} }, []string{"Mask.Documents", "int", "float64"}},

		{"past key alone", nil, nil, nil, func(c *bench) options { return options{PastKey: c.in("past key", 2, 2, 1, 6)} }, []string{"PastKey", "PastValue", "together"}},
		{"past value alone", nil, nil, nil, func(c *bench) options { return options{PastValue: c.in("past value", 2, 2, 1, 4)} }, []string{"PastKey", "PastValue", "together"}},
		{"past of another width", nil, nil, nil, pastOf([]int{2, 2, 1, 5}, []int{2, 2, 1, 4}), []string{"PastKey", "(2, 2, 1, 5)", "(2, 2, 5, 6)"}},
		{"past values of another width", nil, nil, nil, pastOf([]int{2, 2, 1, 6}, []int{2, 2, 1, 6}), []string{"PastValue", "(2, 2, 1, 6)", "(2, 2, 5, 4)"}},
		{"past of another batch", nil, nil, nil, pastOf([]int{1, 2, 1, 6}, []int{1, 2, 1, 4}), []string{"PastKey", "(1, 2, 1, 6)", "(2, 2, 5, 6)"}},
		{"past of other heads", nil, nil, nil, pastOf([]int{2, 4, 1, 6}, []int{2, 4, 1, 4}), []string{"PastKey", "(2, 4, 1, 6)", "(2, 2, 5, 6)"}},
		{"past of another rank", nil, nil, nil, pastOf([]int{2, 1, 6}, []int{2, 1, 4}), []string{"PastKey", "(2, 1, 6)", "(2, 2, 5, 6)"}},
		{"past keys and values of other lengths", nil, nil, nil, pastOf([]int{2, 2, 1, 6}, []int{2, 2, 3, 4}), []string{"PastKey", "PastValue", "agree in P", "(2, 2, 1, 6)", "(2, 2, 3, 4)"}},
		{"past of another dtype", nil, nil, nil, func(c *bench) options {
			return options{PastKey: c.in("past key", 2, 2, 1, 6), PastValue: input(c.g, "f32", as(tensor.Float32, random(1, 2, 2, 1, 4)))}
		}, []string{"dtype", "PastValue", "float32", "float64"}},
		{"past of no keys", nil, nil, nil, func(c *bench) options {
			return options{PastKey: G.NewTensor(c.g, tensor.Float64, 4, G.WithShape(2, 2, 0, 6), G.WithName("none")), PastValue: G.NewTensor(c.g, tensor.Float64, 4, G.WithShape(2, 2, 0, 4), G.WithName("no value"))}
		}, []string{"PastKey", "at least 1", "(2, 2, 0, 6)"}},
		{"past of another graph", nil, nil, nil, func(c *bench) options {
			return options{PastKey: c.in("past key", 2, 2, 1, 6), PastValue: input(G.NewGraph(), "past value", random(1, 2, 2, 1, 4))}
		}, []string{"PastValue", "graph"}},
		{"past of ints", nil, nil, nil, func(c *bench) options {
			return options{PastKey: c.ints("ints", make([]int, 24), 2, 2, 1, 6), PastValue: c.in("past value", 2, 2, 1, 4)}
		}, []string{"PastKey", "float32 or float64", "int"}},

		{"window below −1", nil, nil, nil, func(*bench) options { return within(-2, 0) }, []string{"Window", "−1", "Left:-2"}},
		{"window below −1 on the right", nil, nil, nil, func(*bench) options { return within(0, -3) }, []string{"Window", "−1", "Right:-3"}},
		{"offset and offsets", nil, nil, nil, masked(func(c *bench) mask { return mask{Offset: 1, Offsets: c.lengths(0, 0)} }), []string{"Offset must be 0", "Offsets", "got 1"}},
		{"offset out of range", nil, nil, nil, masked(func(*bench) mask { return mask{Offset: math.MinInt} }), []string{"Offset", "range", fmt.Sprint(math.MinInt)}},
		{"offsets of another batch", nil, nil, nil, masked(func(c *bench) mask { return mask{Offsets: c.lengths(0, 0, 0)} }), []string{"Mask.Offsets", "(2)", "(3)"}},
		{"offsets of another rank", nil, nil, nil, masked(func(c *bench) mask { return mask{Offsets: c.ints("offsets", make([]int, 2), 2, 1)} }), []string{"Mask.Offsets", "(2)", "(2, 1)"}},
		{"offsets of floats", nil, nil, nil, masked(func(c *bench) mask { return mask{Offsets: c.in("offsets", 2)} }), []string{"Offsets", "int", "float64"}},
		{"offsets of another graph", nil, nil, nil, masked(func(*bench) mask { return mask{Offsets: input(G.NewGraph(), "offsets", dense([]int{1, 2}, 2))} }), []string{"Offsets", "another graph"}},
		{"offsets of another batch, with a past", nil, nil, nil, func(c *bench) options {
			o := pastOf([]int{2, 2, 1, 6}, []int{2, 2, 1, 4})(c)
			o.Mask.Offsets = c.lengths(0, 0, 0)
			return o
		}, []string{"Mask.Offsets", "(2)", "(3)"}},
		{"offsets of another rank, with a past", nil, nil, nil, func(c *bench) options {
			o := pastOf([]int{2, 2, 1, 6}, []int{2, 2, 1, 4})(c)
			o.Mask.Offsets = c.ints("offsets", make([]int, 2), 2, 1)
			return o
		}, []string{"Offsets", "(2, 1)"}},
		{"lengths of another batch", nil, nil, nil, masked(func(c *bench) mask { return mask{KeyLengths: c.lengths(1)} }), []string{"Mask.KeyLengths", "(2)", "(1)"}},
		{"slopes of too few heads", nil, nil, nil, masked(func(*bench) mask { return mask{Slopes: []float64{1, 2}} }), []string{"Mask.Slopes", "4 heads", "got 2"}},
		{"slopes of no head", nil, nil, nil, masked(func(*bench) mask { return mask{Slopes: []float64{}} }), []string{"Mask.Slopes", "4 heads", "got 0"}},
		{"slopes NaN", nil, nil, nil, masked(func(*bench) mask { return mask{Slopes: []float64{1, nan, 1, 1}} }), []string{"Mask.Slopes", "finite", "NaN", "head 1"}},
		{"slopes infinite", nil, nil, nil, masked(func(*bench) mask { return mask{Slopes: []float64{1, 1, 1, inf}} }), []string{"Mask.Slopes", "finite", "+Inf", "head 3"}},
		{"boolean mask (S) over the keys", nil, nil, nil, masked(func(c *bench) mask { return mask{Allow: c.allow(nil, 6)} }), []string{"Mask.Allow", "broadcast", "(2, 4, 3, 5)", "(6)"}},
		{"boolean mask (T, S)", nil, nil, nil, masked(func(c *bench) mask { return mask{Allow: c.allow(nil, 2, 5)} }), []string{"Mask.Allow", "broadcast", "(2, 4, 3, 5)", "(2, 5)"}},
		{"boolean mask (H, T, S)", nil, nil, nil, masked(func(c *bench) mask { return mask{Allow: c.allow(nil, 2, 3, 5)} }), []string{"Mask.Allow", "broadcast", "(2, 4, 3, 5)", "(2, 3, 5)"}},
		{"boolean mask (B, H, T, S)", nil, nil, nil, masked(func(c *bench) mask { return mask{Allow: c.allow(nil, 3, 4, 3, 5)} }), []string{"Mask.Allow", "broadcast", "(2, 4, 3, 5)", "(3, 4, 3, 5)"}},
		{"boolean mask of rank 5", nil, nil, nil, masked(func(c *bench) mask { return mask{Allow: c.allow(nil, 1, 2, 4, 3, 5)} }), []string{"Mask.Allow", "broadcast", "(2, 4, 3, 5)", "(1, 2, 4, 3, 5)"}},
		{"boolean mask over past keys too", nil, nil, nil, masked(func(c *bench) mask { return mask{Allow: c.allow(nil, 3, 7)} }), []string{"Mask.Allow", "broadcast", "(2, 4, 3, 5)", "(3, 7)"}},
		{"float mask (T, S)", nil, nil, nil, masked(func(c *bench) mask { return mask{Bias: c.bias(2, 5)} }), []string{"Mask.Bias", "broadcast", "(2, 4, 3, 5)", "(2, 5)"}},
	} {
		for _, composed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, composed %t", tc.name, composed), func(t *testing.T) {
				c := newBench(t)
				c.b.Composed = composed
				operand := func(name string, shape, def []int) *G.Node {
					if shape == nil {
						shape = def
					}
					return c.in(name, shape...)
				}
				q, k, v := operand("q", tc.q, []int{2, 4, 3, 6}), operand("k", tc.k, []int{2, 2, 5, 6}), operand("v", tc.v, []int{2, 2, 5, 4})
				must.Refuse(layers.ScaledDotProduct(c.b, q, k, v, tc.options(c)))(t, append([]string{"scaled dot-product attention"}, tc.want...)...)
			})
		}
	}
}

// masked makes options with only a mask. pastOf makes options with only past keys and values.
func masked(m func(c *bench) layers.Mask) func(c *bench) layers.AttentionOptions {
	return func(c *bench) layers.AttentionOptions { return layers.AttentionOptions{Mask: m(c)} }
}
func pastOf(key, value []int) func(c *bench) layers.AttentionOptions {
	return func(c *bench) layers.AttentionOptions {
		return layers.AttentionOptions{PastKey: c.in("past key", key...), PastValue: c.in("past value", value...)}
	}
}
