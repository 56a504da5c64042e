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
		return c.node(layers.CrossEntropy(&layers.Build{}, logits, c.ints("targets", []int{1, 2, layers.Ignore, 0, 3, 1}, 2, 3), layers.CrossEntropyOptions{}))
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
