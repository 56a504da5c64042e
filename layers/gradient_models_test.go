package layers_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
)

func TestGradientsOfMultiHeadAttention(t *testing.T) {
	var cases []gradientCase
	add := func(name string, config layers.AttentionConfig, forward func(c *bench, a *layers.MultiHeadAttention) *G.Node) {
		cases = append(cases, gradientCase{name, func(c *bench) *G.Node {
			return forward(c, must[*layers.MultiHeadAttention](c)(layers.NewMultiHeadAttention(c.p, 4, config)))
		}})
	}
	// self attends from a batch of 2 sequences of 3 to itself.
	self := func(mask func(c *bench) layers.Mask) func(c *bench, a *layers.MultiHeadAttention) *G.Node {
		return func(c *bench, a *layers.MultiHeadAttention) *G.Node {
			x := c.in("x", 2, 3, 4)
			return c.node(a.Forward(c.b, x, x, x, mask(c)))
		}
	}
	cross := func(c *bench, a *layers.MultiHeadAttention) *G.Node {
		m := layers.Mask{KeyLengths: c.ints("lengths", []int{2, 4}, 2)}
		return c.node(a.Forward(c.b, c.in("query", 2, 3, 4), c.in("key", 2, 4, 5), c.in("value", 2, 4, 3), m))
	}
	none := func(*bench) layers.Mask { return layers.Mask{} }
	two := layers.AttentionConfig{Heads: 2}

	add("self", two, self(none))
	add("one head by default", layers.AttentionConfig{}, self(none))
	add("no bias", layers.AttentionConfig{Heads: 4, NoBias: true}, self(none))
	add("causal", two, self(func(*bench) layers.Mask { return layers.Mask{Causal: true} }))
	add("lengths", two, self(func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.ints("lengths", []int{0, 2}, 2)} }))
	add("allow with an empty row", two, self(func(c *bench) layers.Mask { return layers.Mask{Allow: c.allow([]int{2}, 2, 1, 3, 3)} }))
	add("bias a head", two, self(func(c *bench) layers.Mask { return layers.Mask{Bias: c.bias(2, 1, 3)} }))
	add("everything", two, self(func(c *bench) layers.Mask {
		return layers.Mask{Causal: true, KeyLengths: c.ints("lengths", []int{3, 2}, 2), Allow: c.allow([]int{1}, 3, 3), Bias: c.bias(2, 2, 3, 3)}
	}))
	add("cross", layers.AttentionConfig{Heads: 2, KeyInput: 5, ValueInput: 3}, cross)
	add("head widths", layers.AttentionConfig{Heads: 3, HeadDim: 2, ValueDim: 5, KeyInput: 5, ValueInput: 3}, cross)
	add("no output projection", layers.AttentionConfig{Heads: 2, ValueDim: 3, NoOutput: true, KeyInput: 5, ValueInput: 3}, cross)
	add("without a batch axis", two, func(c *bench, a *layers.MultiHeadAttention) *G.Node {
		q, kv := c.in("query", 2, 4), c.in("keys", 3, 4)
		return c.node(a.Forward(c.b, q, kv, kv, layers.Mask{KeyLengths: c.ints("lengths", []int{2}, 1)}))
	})
	add("one weight for queries and keys", layers.AttentionConfig{Heads: 2, TieQueryKey: true}, func(c *bench, a *layers.MultiHeadAttention) *G.Node {
		x := c.in("x", 2, 3, 4)
		y := c.node(a.Forward(c.b, x, x, x, layers.Mask{}))
		if n := len(c.b.Learnables()); n != 6 {
			c.Errorf("%d learnables, want weights and biases of query, value and output", n)
		}
		return y
	})
	add("applied twice", two, func(c *bench, a *layers.MultiHeadAttention) *G.Node {
		x := c.in("x", 2, 3, 4)
		y := c.node(a.Forward(c.b, x, x, x, layers.Mask{Causal: true}))
		return c.node(a.Forward(c.b, y, x, y, layers.Mask{}))
	})
	checkGradients(t, cases)
}

func TestGradientsOfBlocks(t *testing.T) {
	var cases []gradientCase
	for name, config := range map[string]layers.BlockConfig{
		"pre-norm":  {Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}},
		"post-norm": {Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELUTanh}, PostNorm: true},
		"hidden":    {Attention: layers.AttentionConfig{Heads: 1}},
	} {
		cases = append(cases, gradientCase{"encoder, " + name, func(c *bench) *G.Node {
			e := must[*layers.EncoderBlock](c)(layers.NewEncoderBlock(c.p, 4, config))
			return c.node(e.Forward(c.b, c.in("x", 2, 3, 4), layers.Mask{KeyLengths: c.ints("lengths", []int{2, 3}, 2)}))
		}}, gradientCase{"decoder, " + name, func(c *bench) *G.Node {
			d := must[*layers.DecoderBlock](c)(layers.NewDecoderBlock(c.p, 4, config))
			return c.node(d.Forward(c.b, c.in("x", 2, 3, 4), nil, layers.Mask{Bias: c.bias(3, 3)}, layers.Mask{}))
		}})
		cases = append(cases, gradientCase{"decoder with cross-attention, " + name, func(c *bench) *G.Node {
			d := must[*layers.DecoderBlock](c)(layers.NewCrossDecoderBlock(c.p, 4, config))
			cross := layers.Mask{KeyLengths: c.ints("lengths", []int{0, 3}, 2)}
			return c.node(d.Forward(c.b, c.in("x", 2, 3, 4), c.in("memory", 2, 4, 4), layers.Mask{}, cross))
		}})
	}
	checkGradients(t, cases)
}

func TestGradientsOfModels(t *testing.T) {
	ids := func(c *bench) *G.Node { return c.ints("ids", []int{4, 1, 1, 0, 3, 4}, 2, 3) }
	loss := func(c *bench, logits *G.Node) *G.Node {
		return c.node(layers.CrossEntropy(&layers.Build{}, logits, c.ints("targets", []int{1, 2, layers.Ignore, 0, 3, layers.Ignore}, 2, 3), layers.CrossEntropyOptions{}))
	}
	var cases []gradientCase
	for name, config := range map[string]layers.ModelConfig{
		"pre-norm, learned positions": {Vocab: 5, Positions: layers.Learned{MaxLen: 4}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}}, Layers: 2, Outputs: 4},
		"relative bias":               {Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, Scale: 1}}, Layers: 2, Positions: layers.RelativeBias{Buckets: 4, MaxDistance: 3}},
		"tied, alibi, grouped heads":  {Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, KeyValueHeads: 1, Softcap: 1, NoBias: true}, FeedForward: layers.FeedForwardConfig{Hidden: 5, NoBias: true}, Norm: layers.NormConfig{NoBias: true}}, Layers: 2, Tied: true, Positions: layers.ALiBi{}, NoBias: true},
		"tied, scaled, final norm":    {Vocab: 5, Positions: layers.Learned{MaxLen: 3}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}, PostNorm: true}, Layers: 1, Tied: true, EmbeddingScale: 0.5, FinalNorm: true},
		"post-norm, sinusoidal":       {Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}, PostNorm: true}, Layers: 2, Positions: layers.Sinusoidal{}, Outputs: 4},
	} {
		cases = append(cases, gradientCase{"encoder, " + name, func(c *bench) *G.Node {
			e := must[*layers.Encoder](c)(layers.NewEncoder(c.p, config))
			return loss(c, c.node(e.Forward(c.b, ids(c), layers.Mask{KeyLengths: c.ints("lengths", []int{2, 3}, 2)})))
		}}, gradientCase{"decoder, " + name, func(c *bench) *G.Node {
			d := must[*layers.Decoder](c)(layers.NewDecoder(c.p, config))
			return loss(c, c.node(d.Forward(c.b, ids(c), layers.Mask{})))
		}}, gradientCase{"headless encoder, " + name, func(c *bench) *G.Node {
			config := config
			config.Outputs, config.Layers = 0, 1
			e := must[*layers.Encoder](c)(layers.NewEncoder(c.p, config))
			return c.node(e.Forward(c.b, ids(c), layers.Mask{}))
		}})
	}
	checkGradients(t, cases)
}

// TestSizesOfOne runs and checks what Gorgonia may take for scalars or vectors.
func TestSizesOfOne(t *testing.T) {
	var cases []gradientCase
	for name, shape := range map[string][]int{"(1)": {1}, "(1, 1)": {1, 1}, "(1, 1, 1)": {1, 1, 1}} {
		cases = append(cases, gradientCase{"linear of " + name, func(c *bench) *G.Node {
			l := must[*layers.Linear](c)(layers.NewLinear(c.p, 1, 1, layers.LinearConfig{}))
			return c.node(l.Forward(c.b, c.in("x", shape...)))
		}}, gradientCase{"linear from " + name + " to 3", func(c *bench) *G.Node {
			l := must[*layers.Linear](c)(layers.NewLinear(c.p, 1, 3, layers.LinearConfig{}))
			return c.node(l.Forward(c.b, c.in("x", shape...)))
		}})
		if len(shape) == 1 {
			continue
		}
		cases = append(cases, gradientCase{"attention of " + name, func(c *bench) *G.Node {
			a := must[*layers.MultiHeadAttention](c)(layers.NewMultiHeadAttention(c.p.Scope("a"), 1, layers.AttentionConfig{}))
			l := must[layers.Positions](c)(layers.Learned{MaxLen: 1}.New(c.p.Scope("l"), 1, layers.AttentionConfig{}))
			x := c.in("x", shape...)
			y := c.node(a.Forward(c.b, c.node(l.Embed(c.b, x, nil)), x, x, layers.Mask{
				Causal: true, KeyLengths: c.ints("lengths", []int{1}, 1), Bias: c.bias(1), Allow: input(c.g, "allow", dense([]bool{true}, 1, 1)),
			}))
			return c.node(G.Add(y, x))
		}})
	}
	checkGradients(t, cases, mayVanish)

	cases = nil
	for name, seq := range map[string][]int{"(1)": {1}, "(1, 1)": {1, 1}, "(1, 2)": {1, 2}, "(2, 1)": {2, 1}} {
		n := 1
		for _, d := range seq {
			n *= d
		}
		for _, config := range []layers.ModelConfig{
			{Vocab: 1, Positions: layers.Learned{MaxLen: 2}, Dim: 1, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 1}, FeedForward: layers.FeedForwardConfig{Hidden: 1, Activation: layers.GELU}}, Layers: 1, Outputs: 2},
			{Vocab: 2, Positions: layers.Learned{MaxLen: 2}, Dim: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 1, Activation: layers.GELU}}, Layers: 1, Outputs: 2},
			{Vocab: 1, Positions: layers.Learned{MaxLen: 2}, Dim: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 1}, FeedForward: layers.FeedForwardConfig{Hidden: 2, Activation: layers.GELU}, PostNorm: true}, Layers: 1, Outputs: 1},
		} {
			cases = append(cases, gradientCase{"encoder of " + name, func(c *bench) *G.Node {
				e := must[*layers.Encoder](c)(layers.NewEncoder(c.p, config))
				y := c.node(e.Forward(c.b, c.ints("ids", make([]int, n), seq...), layers.Mask{}))
				return c.node(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", make([]int, n), seq...), layers.CrossEntropyOptions{}))
			}}, gradientCase{"decoder of " + name, func(c *bench) *G.Node {
				d := must[*layers.Decoder](c)(layers.NewDecoder(c.p, config))
				y := c.node(d.Forward(c.b, c.ints("ids", make([]int, n), seq...), layers.Mask{}))
				return c.node(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", make([]int, n), seq...), layers.CrossEntropyOptions{}))
			}})
		}
	}
	checkGradients(t, cases, mayVanish)
}

func TestGradientsOfGatedModels(t *testing.T) {
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
			return c.node(layers.CrossEntropy(&layers.Build{}, logits, c.ints("targets", []int{1, 2, layers.Ignore, 0, 3, 1}, 2, 3), layers.CrossEntropyOptions{}))
		}})
	}
	checkGradients(t, cases)
}

// TestSizesOfOneOfGatedAndRotary runs and checks what Gorgonia may take for scalars or vectors.
func TestSizesOfOneOfGatedAndRotary(t *testing.T) {
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
