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
				l := must[*layers.RMSNorm](c)(layers.NewRMSNorm(c.p, 4/heads, layers.NormConfig{Eps: 0.01}))
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
				return c.node(c.feedForward(3, layers.FeedForwardConfig{Hidden: 5, Activation: a, Gated: true, NoBias: noBias}).Forward(c.b, c.in("x", 2, 2, 3)))
			})
		}
	}
	add("feed-forward with silu", func(c *bench) *G.Node {
		return c.node(c.feedForward(3, layers.FeedForwardConfig{Hidden: 5, Activation: layers.SiLU}).Forward(c.b, c.in("x", 2, 2, 3)))
	})
	add("feed-forward without biases", func(c *bench) *G.Node {
		return c.node(c.feedForward(3, layers.FeedForwardConfig{NoBias: true}).Forward(c.b, c.in("x", 2, 3)))
	})
	checkGradients(t, cases)
}

func (c *bench) feedForward(dim int, config layers.FeedForwardConfig) *layers.FeedForward {
	c.Helper()
	return must[*layers.FeedForward](c)(layers.NewFeedForward(c.p, dim, config))
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
					return c.node(r.Turn(c.b, x, tc.heads, c.positions(x, given)))
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
		block := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.SiLU, Gated: true}, Norm: layers.NormConfig{Kind: layers.NormRMS}, PostNorm: postNorm}
		cases = append(cases, gradientCase{fmt.Sprintf("encoder block, post-norm %t", postNorm), func(c *bench) *G.Node {
			e := must[*layers.EncoderBlock](c)(layers.NewEncoderBlock(c.p, 4, block))
			return c.node(e.Forward(c.b, c.in("x", 2, 3, 4), layers.Mask{KeyLengths: c.ints("lengths", []int{2, 3}, 2)}))
		}}, gradientCase{fmt.Sprintf("decoder block with cross-attention, post-norm %t", postNorm), func(c *bench) *G.Node {
			d := must[*layers.DecoderBlock](c)(layers.NewCrossDecoderBlock(c.p, 4, block))
			return c.node(d.Forward(c.b, c.in("x", 2, 3, 4), c.in("memory", 2, 4, 4), layers.Mask{}, layers.Mask{}))
		}}, gradientCase{fmt.Sprintf("decoder with alibi, post-norm %t", postNorm), func(c *bench) *G.Node {
			d := must[*layers.Decoder](c)(layers.NewDecoder(c.p, layers.ModelConfig{
				Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU, Gated: true}, Norm: layers.NormConfig{Kind: layers.NormRMS}, PostNorm: postNorm}, Layers: 2, Positions: layers.None{},
			}))
			bias := input(c.g, "bias", alibiBias(c, 2, 0, 3, 3))
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
			l := must[*layers.RMSNorm](c)(layers.NewRMSNorm(c.p, 1, layers.NormConfig{Eps: 0.1}))
			return c.node(l.Forward(c.b, c.in("x", shape...)))
		}}, gradientCase{"gated feed-forward of " + name, func(c *bench) *G.Node {
			f := c.feedForward(1, layers.FeedForwardConfig{Hidden: 1, Activation: layers.SiLU, Gated: true})
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
				return c.node(layers.Rotary{Offset: 1}.Turn(c.b, x, 1, c.positions(x, given)))
			}})
		}
		if len(shape) < 4 {
			cases = append(cases, gradientCase{"alibi of " + name, func(c *bench) *G.Node {
				a := must[*layers.MultiHeadAttention](c)(layers.NewMultiHeadAttention(c.p, 1, layers.AttentionConfig{}))
				x := c.in("x", shape...)
				return c.node(a.Forward(c.b, x, x, x, layers.Mask{Bias: input(c.g, "bias", alibiBias(c, 1, 2, 1, 1))}))
			}})
		}
	}
	checkGradients(t, cases, mayVanish)
}
