package layers_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

func TestGradientsOfRotaryAttention(t *testing.T) {
	var cases []gradientCase
	for _, composed := range []bool{false, true} {
		for _, r := range []layers.Positions{nil, layers.Rotary{}, layers.Rotary{Dim: 2, Interleaved: true, Offset: 3}, layers.Rotary{Scaling: rotaryScalings[2]}} {
			for _, shape := range [][]int{{3, 8}, {2, 3, 8}} {
				name := fmt.Sprintf("composed %t, %+v, %v", composed, r, tensor.Shape(shape))
				cases = append(cases, gradientCase{name, func(c *bench) *G.Node {
					c.b.Composed = composed
					a := c.multiHead(8, layers.AttentionConfig{Heads: 2, QKNorm: true})
					a.Positions = r
					x := c.in("x", shape...)
					return c.node(a.Forward(c.b, x, x, x, layers.Mask{Causal: true}))
				}})
			}
		}
	}
	cases = append(cases, gradientCase{"decoder", func(c *bench) *G.Node {
		d := must[*layers.Decoder](c)(layers.NewDecoder(c.p, layers.ModelConfig{
			Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, QKNorm: true}, FeedForward: layers.FeedForwardConfig{Activation: layers.SiLU, Gated: true}, Norm: layers.NormConfig{Kind: layers.NormRMS}}, Layers: 2, Positions: layers.Rotary{},
		}))
		logits := c.node(d.Forward(c.b, c.ints("ids", []int{4, 1, 1, 0, 3, 4}, 2, 3), layers.Mask{}))
		return c.node(layers.CrossEntropy(&layers.Build{}, logits, c.ints("targets", []int{1, 2, layers.Ignore, 0, 3, 1}, 2, 3)))
	}}, gradientCase{"decoder block with cross-attention", func(c *bench) *G.Node {
		d := must[*layers.DecoderBlock](c)(layers.NewCrossDecoderBlock(c.p, 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, QKNorm: true}, FeedForward: layers.FeedForwardConfig{Activation: layers.GELU}}))
		d.Attention.Positions = layers.Rotary{}
		return c.node(d.Forward(c.b, c.in("x", 2, 3, 4), c.in("memory", 2, 4, 4), layers.Mask{}, layers.Mask{}))
	}})
	checkGradients(t, cases)
}

// TestRotaryAttentionForgetsWhereItStarts shifts all positions: attention's output stays as it was.
func TestRotaryAttentionForgetsWhereItStarts(t *testing.T) {
	run := func(offset int) []float64 {
		c := newBench(t)
		a := c.multiHead(8, layers.AttentionConfig{Heads: 2})
		a.Positions = layers.Rotary{Offset: offset}
		x := c.in("x", 2, 5, 8)
		return read(t, c.node(a.Forward(c.b, x, x, x, layers.Mask{})))[0]
	}
	near(t, "shifted", run(100), run(0), 1e-12)
}

func TestRotaryAttentionErrors(t *testing.T) {
	p := newParams(t)
	two := layers.AttentionConfig{Heads: 2}
	_, err := layers.Rotary{}.New(p, 6, two)
	wantError(t, err, "rotary positions", "even width", "3")
	_, err = layers.NewDecoder(p.Scope("d"), layers.ModelConfig{Vocab: 2, Dim: 8, Layers: 1, Positions: layers.Rotary{Dim: 6}, Block: layers.BlockConfig{Attention: two}})
	wantError(t, err, "decoder d", "rotary positions", "Dim", "4", "6")
}
