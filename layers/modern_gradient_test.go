package layers_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// everyActivation is every one there is.
var everyActivation = []layers.Activation{layers.ReLU, layers.GELU, layers.GELUTanh, layers.SiLU}

func TestGradientsOfModernLayers(t *testing.T) {
	var cases []gradientCase
	add := func(name string, build func(c *bench) *G.Node) { cases = append(cases, gradientCase{name, build}) }

	for _, shape := range [][]int{{4}, {3, 4}, {2, 3, 4}, {2, 1, 2, 4}} {
		for heads := 1; heads <= 2; heads++ {
			add(fmt.Sprintf("rms norm of %v, %d heads", tensor.Shape(shape), heads), func(c *bench) *G.Node {
				l := must[*layers.RMSNorm](c)(layers.NewRMSNorm(c.p, layers.RMSNormConfig{Dim: 4 / heads, Eps: 0.01}))
				return c.node(l.ForwardHeads(c.b, c.in("x", shape...), heads))
			})
		}
		add(fmt.Sprintf("silu of %v", tensor.Shape(shape)), func(c *bench) *G.Node {
			return c.node(layers.SiLU.Forward(c.b, c.in("x", shape...)))
		})
	}
	for _, a := range everyActivation {
		for _, noBias := range []bool{false, true} {
			add(fmt.Sprintf("gated feed-forward with %v, no bias %t", a, noBias), func(c *bench) *G.Node {
				return c.node(c.feedForward(layers.FeedForwardConfig{Dim: 3, Hidden: 5, Activation: a, Gated: true, NoBias: noBias}).Forward(c.b, c.in("x", 2, 2, 3)))
			})
		}
	}
	add("feed-forward with silu", func(c *bench) *G.Node {
		return c.node(c.feedForward(layers.FeedForwardConfig{Dim: 3, Hidden: 5, Activation: layers.SiLU}).Forward(c.b, c.in("x", 2, 2, 3)))
	})
	add("feed-forward without biases", func(c *bench) *G.Node {
		return c.node(c.feedForward(layers.FeedForwardConfig{Dim: 3, NoBias: true}).Forward(c.b, c.in("x", 2, 3)))
	})
	checkGradients(t, cases)
}

func (c *bench) feedForward(config layers.FeedForwardConfig) *layers.FeedForward {
	c.Helper()
	return must[*layers.FeedForward](c)(layers.NewFeedForward(c.p, config))
}

func TestGradientsOfRotary(t *testing.T) {
	var cases []gradientCase
	for _, tc := range []struct {
		shape []int
		heads int
	}{
		{[]int{3, 4}, 1}, {[]int{3, 8}, 2}, {[]int{2, 3, 4}, 1}, {[]int{2, 3, 12}, 3}, {[]int{2, 3, 2, 4}, 1}, {[]int{1, 1, 1, 4}, 1},
	} {
		for _, r := range []layers.Rotary{{}, {Interleaved: true}, {Dim: 2, Base: 7}, {Dim: 2, Interleaved: true, Offset: 5}} {
			for given := range 3 {
				name := fmt.Sprintf("%v, %d heads, %+v, positions of rank %d", tensor.Shape(tc.shape), tc.heads, r, given)
				cases = append(cases, gradientCase{name, func(c *bench) *G.Node {
					x := c.in("x", tc.shape...)
					return c.node(r.Forward(c.b, x, tc.heads, c.positions(x, given)))
				}})
			}
		}
	}
	checkGradients(t, cases)
}

// positions are none, or those of a batch's first elements, or those of all elements, by rank.
func (c *bench) positions(x *G.Node, rank int) *G.Node {
	s := x.Shape()
	batch, length := 1, s[len(s)-2]
	if len(s) > 2 {
		batch = s[0]
	}
	switch rank {
	case 1:
		return c.ints("positions", []int{4, -9}[:batch], batch)
	case 2:
		values := make([]int, batch*length)
		for i := range values {
			values[i] = 3*i%7 - 1
		}
		return c.ints("positions", values, batch, length)
	}
	return nil
}

func TestGradientsOfModernModels(t *testing.T) {
	var cases []gradientCase
	for _, postNorm := range []bool{false, true} {
		block := layers.BlockConfig{Dim: 4, Heads: 2, Hidden: 5, Activation: layers.SiLU, Gated: true, RMSNorm: true, PostNorm: postNorm}
		cases = append(cases, gradientCase{fmt.Sprintf("encoder block, post-norm %t", postNorm), func(c *bench) *G.Node {
			e := must[*layers.EncoderBlock](c)(layers.NewEncoderBlock(c.p, block))
			return c.node(e.Forward(c.b, c.in("x", 2, 3, 4), layers.Mask{KeyLengths: c.ints("lengths", []int{2, 3}, 2)}))
		}}, gradientCase{fmt.Sprintf("decoder block with cross-attention, post-norm %t", postNorm), func(c *bench) *G.Node {
			block := block
			block.Cross = true
			d := must[*layers.DecoderBlock](c)(layers.NewDecoderBlock(c.p, block))
			return c.node(d.Forward(c.b, c.in("x", 2, 3, 4), c.in("memory", 2, 4, 4), layers.Mask{}, layers.Mask{}))
		}}, gradientCase{fmt.Sprintf("decoder with alibi, post-norm %t", postNorm), func(c *bench) *G.Node {
			d := must[*layers.Decoder](c)(layers.NewDecoder(c.p, layers.ModelConfig{
				Vocab: 5, Dim: 4, Heads: 2, Layers: 2, Hidden: 5, Activation: layers.GELU, Gated: true, RMSNorm: true, PostNorm: postNorm, NoPositions: true,
			}))
			bias := c.node(layers.ALiBi{Heads: 2}.Bias(c.g, tensor.Float64, 3, 3))
			logits := c.node(d.Forward(c.b, c.ints("ids", []int{4, 1, 1, 0, 3, 4}, 2, 3), layers.Mask{Bias: bias}))
			return c.node(layers.CrossEntropy(&layers.Build{}, logits, c.ints("targets", []int{1, 2, layers.Ignore, 0, 3, 1}, 2, 3)))
		}})
	}
	checkGradients(t, cases)
}

// TestModernSizesOfOne runs and checks what Gorgonia may take for scalars or vectors.
func TestModernSizesOfOne(t *testing.T) {
	var cases []gradientCase
	for name, shape := range map[string][]int{"(1)": {1}, "(1, 1)": {1, 1}, "(1, 1, 1)": {1, 1, 1}, "(1, 1, 1, 1)": {1, 1, 1, 1}} {
		cases = append(cases, gradientCase{"rms norm of " + name, func(c *bench) *G.Node {
			l := must[*layers.RMSNorm](c)(layers.NewRMSNorm(c.p, layers.RMSNormConfig{Dim: 1, Eps: 0.1}))
			return c.node(l.Forward(c.b, c.in("x", shape...)))
		}}, gradientCase{"gated feed-forward of " + name, func(c *bench) *G.Node {
			f := c.feedForward(layers.FeedForwardConfig{Dim: 1, Hidden: 1, Activation: layers.SiLU, Gated: true})
			return c.node(f.Forward(c.b, c.in("x", shape...)))
		}}, gradientCase{"silu of " + name, func(c *bench) *G.Node {
			return c.node(layers.SiLU.Forward(c.b, c.in("x", shape...)))
		}})
		if len(shape) == 1 {
			continue
		}
		for given := range 3 {
			cases = append(cases, gradientCase{fmt.Sprintf("rotary of %s and 2, positions of rank %d", name, given), func(c *bench) *G.Node {
				x := c.in("x", append(shape[:len(shape)-1:len(shape)-1], 2)...)
				return c.node(layers.Rotary{Offset: 1}.Forward(c.b, x, 1, c.positions(x, given)))
			}})
		}
		if len(shape) < 4 {
			cases = append(cases, gradientCase{"alibi of " + name, func(c *bench) *G.Node {
				a := must[*layers.MultiHeadAttention](c)(layers.NewMultiHeadAttention(c.p, layers.MultiHeadConfig{Dim: 1}))
				x := c.in("x", shape...)
				return c.node(a.Forward(c.b, x, x, x, layers.Mask{Bias: c.node(layers.ALiBi{Heads: 1, Offset: 2}.Bias(c.g, tensor.Float64, 1, 1))}))
			}})
		}
	}
	checkGradients(t, cases, mayVanish)
}
