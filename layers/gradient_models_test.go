package layers_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

func TestGradientsOfMultiHeadAttention(t *testing.T) {
	type config = layers.AttentionConfig
	type mask = layers.Mask
	var cases []gradientCase
	add := func(name string, config config, forward func(c *bench, a *layers.MultiHeadAttention) *G.Node) {
		cases = append(cases, gradientCase{name, func(c *bench) *G.Node { return forward(c, c.multiHead(4, config)) }})
	}
	// self applies self-attention to 2 sequences of length 3.
	self := func(mask func(c *bench) mask) func(c *bench, a *layers.MultiHeadAttention) *G.Node {
		return func(c *bench, a *layers.MultiHeadAttention) *G.Node {
			x := c.in("x", 2, 3, 4)
			return c.node(a.Forward(c.b, x, x, x, mask(c)))
		}
	}
	cross := func(c *bench, a *layers.MultiHeadAttention) *G.Node {
		m := mask{KeyLengths: c.lengths(2, 4)}
		return c.node(a.Forward(c.b, c.in("query", 2, 3, 4), c.in("key", 2, 4, 5), c.in("value", 2, 4, 3), m))
	}
	unmasked := self(func(*bench) mask { return mask{} })
	two, four := config{Heads: 2}, config{Heads: 4}

	add("self", two, unmasked)
	add("one head by default", config{}, unmasked)
	add("no bias", config{Heads: 4, NoBias: true}, unmasked)
	add("grouped heads", config{Heads: 4, KeyValueHeads: 2}, unmasked)
	add("one head of keys and values", config{Heads: 4, KeyValueHeads: 1, ValueDim: 3}, unmasked)
	add("softcap", config{Heads: 4, Softcap: 0.4}, unmasked)
	add("scale", config{Heads: 4, Scale: 1.7}, unmasked)
	add("causal", two, self(func(*bench) mask { return mask{Causal: true} }))
	add("lengths", two, self(func(c *bench) mask { return mask{KeyLengths: c.lengths(0, 2)} }))
	add("allow with an empty row", two, self(func(c *bench) mask { return mask{Allow: c.allow([]int{2}, 2, 1, 3, 3)} }))
	add("bias per head", two, self(func(c *bench) mask { return mask{Bias: c.bias(2, 1, 3)} }))
	add("window", four, self(func(*bench) mask { return mask{Window: &window{Left: 1, Right: 1}} }))
	add("window, causal", four, self(func(*bench) mask { return mask{Causal: true, Window: &window{Left: 1, Right: -1}} }))
	add("own window", config{Heads: 4, Window: &window{Left: 1, Right: 0}}, unmasked)
	add("own window and the mask's", config{Heads: 4, Window: &window{Left: -1, Right: 0}}, self(func(*bench) mask { return mask{Window: &window{Left: 1, Right: -1}} }))
	add("bias only of the output", config{Heads: 4, NoBias: true, OutputBias: new(true)}, unmasked)
	add("no bias of the output", config{Heads: 4, OutputBias: new(false)}, unmasked)
	add("slopes", four, self(func(c *bench) mask { return mask{Slopes: must.Get(layers.ALiBi{}.Slopes(4))(c)} }))
	add("offsets", four, self(func(c *bench) mask { return mask{Causal: true, Offsets: c.ints("offsets", []int{1, -1}, 2)} }))
	add("every mask", two, self(func(c *bench) mask {
		return mask{Causal: true, KeyLengths: c.lengths(3, 2), Allow: c.allow([]int{1}, 3, 3), Bias: c.bias(2, 2, 3, 3)}
	}))
	add("everything", config{Heads: 4, KeyValueHeads: 2, Softcap: 0.8, Scale: 0.9, NoOutput: true}, self(func(c *bench) mask {
		return mask{Causal: true, Window: &window{Left: 2, Right: -1}, Offset: 1, KeyLengths: c.lengths(3, 2), Slopes: []float64{1, 0.5, 0.2, 0.1}, Bias: c.bias(4, 1, 3)}
	}))
	for i, p := range []layers.Positions{nil, layers.Rotary{}, layers.Rotary{Dim: 2, Interleaved: true, Offset: 3}, layers.Rotary{Scaling: rotaryScalings[2]}} {
		for _, shape := range [][]int{{3, 8}, {2, 3, 8}} {
			cases = append(cases, gradientCase{fmt.Sprintf("normalised, %+v, %v", p, tensor.Shape(shape)), func(c *bench) *G.Node {
				a := c.multiHead(8, config{Heads: 2, KeyValueHeads: 1 + i%2, QKNorm: true})
				a.Positions = p
				x := c.in("x", shape...)
				return c.node(a.Forward(c.b, x, x, x, mask{Causal: true}))
			}})
		}
	}
	add("joint norms", config{Heads: 4, KeyValueHeads: 2, QKNorm: true, JointNorm: true, NormEps: 0.1}, unmasked)
	add("sinks", config{Heads: 4, KeyValueHeads: 2, Sinks: true}, self(func(*bench) mask { return mask{Causal: true} }))
	add("output gate", config{Heads: 4, KeyValueHeads: 2, OutputGate: true}, unmasked)
	add("output gate without biases and output", config{Heads: 2, ValueDim: 3, OutputGate: true, NoBias: true, NoOutput: true}, unmasked)
	add("sinks and output gate, cross", config{Heads: 2, KeyInput: 5, ValueInput: 3, Sinks: true, OutputGate: true}, cross)
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
			c.Errorf("got %d learnables, want 6: the weights and biases of query, value and output", n)
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
		"output norms": {
			Attention: layers.AttentionConfig{Heads: 2, Window: &window{Left: 1, Right: 1}}, Norm: layers.NormConfig{Kind: "rms", Eps: 0.01},
			FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELUTanh, Gated: true}, OutputNorm: true,
		},
		"output norms, post-norm": {FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}, OutputNorm: true, PostNorm: true},
		"only output norms":       {FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}, Norm: layers.NormConfig{Eps: 0.01}, OutputNorm: true, NoInputNorm: true},
		"output norms, parallel":  {FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}, OutputNorm: true, Parallel: true},
		"parallel":                {Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}, Parallel: true},
		"shared norm, scaled":     {Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}, Parallel: true, SharedNorm: true, ResidualScale: -0.6},
		"scaled":                  {Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}, ResidualScale: 0.3},
		"gated, rms norms": {
			Attention: layers.AttentionConfig{Heads: 2}, Norm: layers.NormConfig{Kind: "rms"},
			FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.SiLU, Gated: true},
		},
		"gated, rms norms, post-norm": {
			Attention: layers.AttentionConfig{Heads: 2}, Norm: layers.NormConfig{Kind: "rms"}, PostNorm: true,
			FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.SiLU, Gated: true},
		},
	} {
		cases = append(cases, gradientCase{"encoder, " + name, func(c *bench) *G.Node {
			e := must.Get(layers.NewEncoderBlock(c.p, 4, config))(c)
			return c.node(e.Forward(c.b, c.in("x", 2, 3, 4), layers.Mask{KeyLengths: c.ints("lengths", []int{2, 3}, 2)}))
		}}, gradientCase{"decoder, " + name, func(c *bench) *G.Node {
			d := must.Get(layers.NewDecoderBlock(c.p, 4, config))(c)
			return c.node(d.Forward(c.b, c.in("x", 2, 3, 4), layers.Mask{Bias: c.bias(3, 3)}))
		}})
		if config.Parallel {
			continue // can't have cross-attention
		}
		cases = append(cases, gradientCase{"decoder with cross-attention, " + name, func(c *bench) *G.Node {
			d := must.Get(layers.NewCrossDecoderBlock(c.p, 4, config))(c)
			cross := layers.Mask{KeyLengths: c.ints("lengths", []int{0, 3}, 2)}
			return c.node(d.ForwardCross(c.b, c.in("x", 2, 3, 4), c.in("memory", 2, 4, 4), layers.Mask{}, cross))
		}})
	}
	cases = append(cases, gradientCase{"decoder with cross-attention, rotary", func(c *bench) *G.Node {
		d := must.Get(layers.NewCrossDecoderBlock(c.p, 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, QKNorm: true}}))(c)
		d.Attention.Positions = layers.Rotary{}
		return c.node(d.ForwardCross(c.b, c.in("x", 2, 3, 4), c.in("memory", 2, 4, 4), layers.Mask{}, layers.Mask{}))
	}})
	checkGradients(t, cases)
}

func TestGradientsOfModels(t *testing.T) {
	ids := func(c *bench) *G.Node { return c.ints("ids", []int{4, 1, 1, 0, 3, 4}, 2, 3) }
	loss := func(c *bench, logits *G.Node) *G.Node {
		return c.node(mean(layers.CrossEntropy(&layers.Build{}, logits, c.ints("targets", []int{1, 2, layers.Ignore, 0, 3, layers.Ignore}, 2, 3), layers.CrossEntropyOptions{})))
	}
	segments := func(c *bench, config layers.ModelConfig) *layers.Build {
		if config.Segments == 2 { // with 3, all tokens are in segment 0
			c.b.Segments = c.ints("segments", []int{0, 0, 1, 0, 1, 1}, 2, 3)
		}
		return c.b
	}
	var cases []gradientCase
	for name, config := range map[string]layers.ModelConfig{
		"pre-norm, learned positions": {Vocab: 5, Positions: layers.Learned{MaxLen: 4}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}}, Layers: 2, Outputs: 4},
		"gated, rms norms, rotary": {
			Vocab: 5, Dim: 4, Layers: 2, Positions: layers.Rotary{},
			Block: layers.BlockConfig{
				Attention: layers.AttentionConfig{Heads: 2, QKNorm: true}, Norm: layers.NormConfig{Kind: "rms"},
				FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU, Gated: true},
			},
		},
		"gated, rms norms, post-norm, alibi": {
			Vocab: 5, Dim: 4, Layers: 2, Positions: layers.ALiBi{},
			Block: layers.BlockConfig{
				Attention: layers.AttentionConfig{Heads: 2}, Norm: layers.NormConfig{Kind: "rms"}, PostNorm: true,
				FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.SiLU, Gated: true},
			},
		},
		"variants": {
			Vocab: 5, Dim: 4, Layers: 2, Positions: layers.Rotary{},
			Block:    layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}},
			Variants: []layers.BlockVariant{{Blocks: []int{0}, Window: &window{Left: 1, Right: 1}, Positions: layers.ALiBi{}, NoNorm1: true}},
		},
		"relative bias":                 {Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, Scale: 1}}, Layers: 2, Positions: layers.RelativeBias{Buckets: 4, MaxDistance: 3}},
		"learned and relative bias":     {Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}}, Layers: 1, Outputs: 4, Positions: layers.PositionsList{Schemes: []layers.PositionsConfig{layers.Learned{MaxLen: 3}, layers.RelativeBias{Buckets: 4, MaxDistance: 3}}}},
		"tied, alibi, grouped heads":    {Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, KeyValueHeads: 1, Softcap: 1, NoBias: true}, FeedForward: layers.FeedForwardConfig{Hidden: 5, NoBias: true}, Norm: layers.NormConfig{NoBias: true}}, Layers: 2, Tied: true, Positions: layers.ALiBi{}, NoBias: true},
		"tied, scaled, final norm":      {Vocab: 5, Positions: layers.Learned{MaxLen: 3}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}, PostNorm: true}, Layers: 1, Tied: true, EmbeddingScale: 0.5, FinalNorm: true},
		"segments, rotary":              {Vocab: 5, Dim: 4, Segments: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}}, Layers: 1, Positions: layers.Rotary{}, Outputs: 4},
		"segment 0, norm of embeddings": {Vocab: 5, Dim: 4, Segments: 3, EmbeddingNorm: true, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}, PostNorm: true, Norm: layers.NormConfig{Eps: 0.01}}, Layers: 1, Positions: layers.Learned{MaxLen: 3}, Outputs: 4},
		"tied with bias, transform with norm, softcap": {
			Vocab: 5, Dim: 4, Layers: 1, Positions: layers.Rotary{}, Tied: true, TiedBias: true, LogitSoftcap: 1.5, HeadScale: 0.7, Transform: &layers.TransformConfig{Activation: layers.GELU, Norm: true},
			Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}, Norm: layers.NormConfig{Eps: 0.01}},
		},
		"tied, transform without bias": {
			Vocab: 5, Dim: 4, Layers: 1, Positions: layers.Rotary{}, Tied: true, Transform: &layers.TransformConfig{Activation: layers.Tanh, NoBias: true},
			Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}},
		},
		"post-norm, sinusoidal": {Vocab: 5, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}, PostNorm: true}, Layers: 2, Positions: layers.Sinusoidal{}, Outputs: 4},
	} {
		cases = append(cases, gradientCase{"encoder, " + name, func(c *bench) *G.Node {
			e := must.Get(layers.NewEncoder(c.p, config))(c)
			return loss(c, c.node(e.Forward(segments(c, config), ids(c), layers.Mask{KeyLengths: c.ints("lengths", []int{2, 3}, 2)})))
		}}, gradientCase{"decoder, " + name, func(c *bench) *G.Node {
			d := must.Get(layers.NewDecoder(c.p, config))(c)
			return loss(c, c.node(d.Forward(segments(c, config), ids(c), layers.Mask{})))
		}}, gradientCase{"headless encoder, " + name, func(c *bench) *G.Node {
			config := config
			config.Outputs, config.Layers = 0, 1
			e := must.Get(layers.NewEncoder(c.p, config))(c)
			return c.node(e.Forward(segments(c, config), ids(c), layers.Mask{}))
		}})
	}
	checkGradients(t, cases)
}
