package layers_test

import (
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
)

var activations = map[string]layers.Activation{"relu": layers.ReLU, "gelu": layers.GELU, "gelu tanh": layers.GELUTanh, "silu": layers.SiLU}

// mask returns the mask described by a fixture's inputs and configuration.
func (f fixture) mask(inputs map[string]*G.Node) layers.Mask {
	return layers.Mask{Causal: f.Config.Causal, KeyLengths: inputs["lengths"], Allow: inputs["allow"], Bias: inputs["bias"]}
}

func one(y *G.Node) map[string]*G.Node { return map[string]*G.Node{"out": y} }

func linearSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	l := must[*layers.Linear](t)(layers.NewLinear(p, 5, 3, layers.LinearConfig{NoBias: !f.Config.Bias}))
	f.fill(t, p)
	return one(node(t)(l.Forward(b, inputs["x"])))
}

func embeddingSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	e := must[*layers.Embedding](t)(layers.NewEmbedding(p, 7, 4, layers.Init{}))
	f.fill(t, p)
	return one(node(t)(e.Forward(b, inputs["ids"])))
}

func normSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := layers.NormConfig{NoBias: f.Config.NoBias}
	if f.Config.Eps != 1e-5 { // leave PyTorch's default unset, to test that Heed's default is the same
		c.Eps = f.Config.Eps
	}
	l := must[*layers.LayerNorm](t)(layers.NewLayerNorm(p, 6, c))
	f.fill(t, p)
	return one(node(t)(l.Forward(b, inputs["x"])))
}

func activationSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	return one(node(t)(activations[f.Config.Activation].Forward(b, inputs["x"])))
}

func lossSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	return map[string]*G.Node{"loss": node(t)(mean(layers.CrossEntropy(b, inputs["logits"], inputs["targets"], layers.CrossEntropyOptions{
		Weights: inputs["weights"], ClassWeights: f.Config.Classes, LabelSmoothing: f.Config.Smoothing,
	})))}
}

func elementwiseLossSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	loss := elementwiseLosses(f.Config.Delta)[f.Config.Loss]
	return map[string]*G.Node{"loss": node(t)(mean(loss(b, inputs["outputs"], inputs["targets"], inputs["weights"])))}
}

func coreSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	out, weights, err := scaledDotProduct(b, inputs["q"], inputs["k"], inputs["v"], layers.AttentionOptions{Mask: f.mask(inputs), Scale: f.Config.Scale})
	noError(t, err)
	return map[string]*G.Node{"out": out, "weights": weights}
}

func (f fixture) multiHead(t *testing.T, p *layers.Params) *layers.MultiHeadAttention {
	c := f.Config
	a := must[*layers.MultiHeadAttention](t)(layers.NewMultiHeadAttention(p, c.Dim, layers.AttentionConfig{
		Heads: c.Heads, KeyInput: c.Key, ValueInput: c.Value, NoBias: !c.Bias,
	}))
	f.fill(t, p)
	return a
}

func multiHeadSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	a := f.multiHead(t, p)
	query, key, value := inputs["query"], inputs["key"], inputs["value"]
	if key == nil {
		key, value = query, query
	}
	out, weights, err := forwardWeights(a, b, query, key, value, f.mask(inputs))
	noError(t, err)
	return map[string]*G.Node{"out": out, "weights": weights}
}

// maskedSubject is like multiHeadSubject, but compares only the output. It doesn't capture weights, so Build.Composed
// chooses the form.
func maskedSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	return one(node(t)(f.multiHead(t, p).Forward(b, inputs["query"], inputs["key"], inputs["value"], f.mask(inputs))))
}

func (f fixture) block() layers.BlockConfig {
	c := layers.BlockConfig{
		Attention:   layers.AttentionConfig{Heads: 2},
		FeedForward: layers.FeedForwardConfig{Hidden: 8, Activation: activations[f.Config.Activation], Gated: f.Config.Gated},
		PostNorm:    f.Config.PostNorm,
	}
	if f.Config.RMSNorm {
		c.Norm.Kind = "rms"
	}
	return c
}

func encoderSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	e := must[*layers.Block](t)(layers.NewEncoderBlock(p, 6, f.block()))
	f.fill(t, p)
	return one(node(t)(e.Forward(b, inputs["x"], f.mask(inputs))))
}

func decoderSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	d := must[*layers.Block](t)(layers.NewCrossDecoderBlock(p, 6, f.block()))
	f.fill(t, p)
	return one(node(t)(d.ForwardCross(b, inputs["x"], inputs["memory"], layers.Mask{}, f.mask(inputs))))
}

func rmsNormSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := layers.NormConfig{}
	if f.Config.Eps != 1e-6 { // leave the default unset, to test the default too
		c.Eps = f.Config.Eps
	}
	l := must[*layers.RMSNorm](t)(layers.NewRMSNorm(p, f.Config.Dim, c))
	f.fill(t, p)
	if f.Config.Heads == 1 {
		return one(node(t)(l.Forward(b, inputs["x"])))
	}
	return one(node(t)(l.Heads(b, inputs["x"], f.Config.Heads)))
}

func gatedSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	l := must[*layers.FeedForward](t)(layers.NewFeedForward(p, 4, layers.FeedForwardConfig{
		Hidden: 5, Activation: activations[f.Config.Activation], Gated: true, NoBias: !f.Config.Bias,
	}))
	f.fill(t, p)
	return one(node(t)(l.Forward(b, inputs["x"])))
}

func rotarySubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := f.Config
	r := layers.Rotary{Dim: c.Rotary, Interleaved: c.Interleaved, Offset: c.Offset, Scaling: c.Scaling}
	if c.Base != 10000 { // leave the default unset, to test the default too
		r.Base = c.Base
	}
	return one(node(t)(r.Rotate(b, inputs["x"], c.Heads, inputs["positions"])))
}

func alibiSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	q := inputs["q"]
	slopes := must[[]float64](t)(layers.ALiBi{}.Slopes(f.Config.Heads))
	out, weights, err := scaledDotProduct(b, q, inputs["k"], inputs["v"], layers.AttentionOptions{
		Mask: layers.Mask{Causal: f.Config.Causal, Offset: f.Config.Offset, Slopes: slopes},
	})
	noError(t, err)
	return map[string]*G.Node{"out": out, "weights": weights}
}

func gatedBlockSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	d := must[*layers.Block](t)(layers.NewDecoderBlock(p, 6, f.block()))
	f.fill(t, p)
	return one(node(t)(d.Forward(b, inputs["x"], layers.Mask{})))
}

func relativeSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	x := inputs["x"]
	dim := x.Shape()[x.Dims()-1]
	config := layers.AttentionConfig{Heads: f.Config.Heads, NoBias: true, Scale: 1}
	a := must[*layers.MultiHeadAttention](t)(layers.NewMultiHeadAttention(p, dim, config))
	relative := layers.RelativeBias{Buckets: f.Config.Buckets, MaxDistance: f.Config.MaxDistance}
	if relative.Buckets == 32 { // leave the default unset, to test the default too
		relative = layers.RelativeBias{}
	}
	a.Positions = must[layers.Positions](t)(relative.New(p.Scope("positions"), dim, config))
	f.fill(t, p)
	return one(node(t)(a.Forward(b, x, x, x, layers.Mask{Causal: f.Config.Causal})))
}
