package layers_test

import (
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// mask returns the mask described by a fixture's inputs and configuration.
func (f fixture) mask(inputs map[string]*G.Node) layers.Mask {
	return layers.Mask{Causal: f.Config.Causal, KeyLengths: inputs["lengths"], Documents: inputs["documents"], Allow: inputs["allow"], Bias: inputs["bias"]}
}

func one(y *G.Node) map[string]*G.Node { return map[string]*G.Node{"out": y} }

func linearSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	l := must.Get(layers.NewLinear(p, 5, 3, layers.LinearConfig{NoBias: !f.Config.Bias}))(t)
	f.fill(t, p)
	return one(must.Get(l.Forward(b, inputs["x"]))(t))
}

func embeddingSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	e := must.Get(layers.NewEmbedding(p, 7, 4, layers.Init{}))(t)
	f.fill(t, p)
	return one(must.Get(e.Forward(b, inputs["ids"]))(t))
}

func normSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := layers.NormConfig{NoBias: f.Config.NoBias}
	if f.Config.Eps != 1e-5 { // leave PyTorch's default unset, to test that Heed's default is the same
		c.Eps = f.Config.Eps
	}
	l := must.Get(layers.NewNorm(p, 6, c))(t)
	f.fill(t, p)
	return one(must.Get(l.Forward(b, inputs["x"]))(t))
}

func activationSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	return one(must.Get(f.Config.Activation.Forward(b, inputs["x"]))(t))
}

func lossSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	return map[string]*G.Node{"loss": must.Get(mean(layers.CrossEntropy(b, inputs["logits"], inputs["targets"], layers.CrossEntropyOptions{
		Weights: inputs["weights"], ClassWeights: f.Config.Classes, LabelSmoothing: f.Config.Smoothing,
	})))(t)}
}

func elementwiseLossSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	loss := elementwiseLosses(f.Config.Delta)[f.Config.Loss]
	return map[string]*G.Node{"loss": must.Get(mean(loss(b, inputs["outputs"], inputs["targets"], inputs["weights"])))(t)}
}

func coreSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	out, weights, err := scaledDotProduct(b, inputs["q"], inputs["k"], inputs["v"], layers.AttentionOptions{Mask: f.mask(inputs), Scale: f.Config.Scale})
	must.Do(t, err)
	return map[string]*G.Node{"out": out, "weights": weights}
}

func (f fixture) multiHead(t *testing.T, p *layers.Params) *layers.MultiHeadAttention {
	c := f.Config
	a := must.Get(layers.NewMultiHeadAttention(p, c.Dim, layers.AttentionConfig{
		Heads: c.Heads, KeyInput: c.Key, ValueInput: c.Value, NoBias: !c.Bias,
	}))(t)
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
	must.Do(t, err)
	return map[string]*G.Node{"out": out, "weights": weights}
}

// maskedSubject is like multiHeadSubject, but compares only the output. It doesn't capture weights, so Build.Composed
// chooses the form.
func maskedSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	return one(must.Get(f.multiHead(t, p).Forward(b, inputs["query"], inputs["key"], inputs["value"], f.mask(inputs)))(t))
}

func (f fixture) block() layers.BlockConfig {
	c := layers.BlockConfig{
		Attention:   layers.AttentionConfig{Heads: 2},
		FeedForward: layers.FeedForwardConfig{Hidden: 8, Activation: f.Config.Activation, Gated: f.Config.Gated},
		PostNorm:    f.Config.PostNorm,
	}
	if f.Config.RMSNorm {
		c.Norm.Kind = "rms"
	}
	return c
}

func encoderSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	e := must.Get(layers.NewEncoderBlock(p, 6, f.block()))(t)
	f.fill(t, p)
	return one(must.Get(e.Forward(b, inputs["x"], f.mask(inputs)))(t))
}

func decoderSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	d := must.Get(layers.NewCrossDecoderBlock(p, 6, f.block()))(t)
	f.fill(t, p)
	return one(must.Get(d.ForwardCross(b, inputs["x"], inputs["memory"], layers.Mask{}, f.mask(inputs)))(t))
}

func rmsNormSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := layers.NormConfig{Kind: "rms"}
	if f.Config.Eps != 1e-6 { // leave the default unset, to test the default too
		c.Eps = f.Config.Eps
	}
	l := must.Get(layers.NewNorm(p, f.Config.Dim, c))(t)
	f.fill(t, p)
	if f.Config.Heads == 1 {
		return one(must.Get(l.Forward(b, inputs["x"]))(t))
	}
	return one(must.Get(l.Heads(b, inputs["x"], f.Config.Heads))(t))
}

func gatedSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	l := must.Get(layers.NewFeedForward(p, 4, layers.FeedForwardConfig{
		Hidden: 5, Activation: f.Config.Activation, Gated: true, NoBias: !f.Config.Bias,
	}))(t)
	f.fill(t, p)
	return one(must.Get(l.Forward(b, inputs["x"]))(t))
}

func rotarySubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := f.Config
	r := layers.Rotary{Dim: c.Rotary, Interleaved: c.Interleaved, Offset: c.Offset, Scaling: c.Scaling}
	if c.Base != 10000 { // leave the default unset, to test the default too
		r.Base = c.Base
	}
	return one(must.Get(r.Rotate(b, inputs["x"], c.Heads, inputs["positions"]))(t))
}

func alibiSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	q := inputs["q"]
	slopes := must.Get(layers.ALiBi{}.Slopes(f.Config.Heads))(t)
	out, weights, err := scaledDotProduct(b, q, inputs["k"], inputs["v"], layers.AttentionOptions{
		Mask: layers.Mask{Causal: f.Config.Causal, Offset: f.Config.Offset, Slopes: slopes},
	})
	must.Do(t, err)
	return map[string]*G.Node{"out": out, "weights": weights}
}

func gatedBlockSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	d := must.Get(layers.NewDecoderBlock(p, 6, f.block()))(t)
	f.fill(t, p)
	return one(must.Get(d.Forward(b, inputs["x"], layers.Mask{}))(t))
}

func relativeSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	x := inputs["x"]
	dim := x.Shape()[x.Dims()-1]
	config := layers.AttentionConfig{Heads: f.Config.Heads, NoBias: true, Scale: 1}
	a := must.Get(layers.NewMultiHeadAttention(p, dim, config))(t)
	relative := layers.RelativeBias{Buckets: f.Config.Buckets, MaxDistance: f.Config.MaxDistance}
	if relative.Buckets == 32 { // leave the default unset, to test the default too
		relative = layers.RelativeBias{}
	}
	a.Positions = must.Get(relative.New(p.Scope("positions"), dim, config))(t)
	f.fill(t, p)
	return one(must.Get(a.Forward(b, x, x, x, layers.Mask{Causal: f.Config.Causal}))(t))
}

func expertsSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := layers.FeedForwardConfig{Hidden: f.Config.Value, Activation: layers.SiLU, Gated: true, NoBias: f.Config.NoBias, Experts: f.Config.Experts}
	l := must.Get(layers.NewFeedForward(p, f.Config.Dim, c))(t)
	f.fill(t, p)
	return one(must.Get(l.Forward(b, inputs["x"]))(t))
}

// gatedAttentionSubject is attention with norms and an output gate, or with sinks.
func gatedAttentionSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := layers.AttentionConfig{Heads: f.Config.Heads, KeyValueHeads: f.Config.Value, NoBias: !f.Config.Bias, Sinks: !f.Config.Gated}
	if f.Config.Gated {
		c.OutputGate, c.QKNorm, c.NormEps = true, true, f.Config.Eps
	}
	a := must.Get(layers.NewMultiHeadAttention(p, f.Config.Dim, c))(t)
	f.fill(t, p)
	return one(must.Get(a.Forward(b, inputs["query"], inputs["query"], inputs["query"], layers.Mask{Causal: true}))(t))
}

func latentSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	c := layers.AttentionConfig{Heads: f.Config.Heads, HeadDim: f.Config.Key, ValueDim: f.Config.Value, NoBias: !f.Config.Bias, Latent: f.Config.Latent}
	a := must.Get(layers.NewMultiHeadAttention(p, f.Config.Dim, c))(t)
	a.Positions = layers.Rotary{Base: f.Config.Base, Interleaved: f.Config.Interleaved}
	f.fill(t, p)
	return one(must.Get(a.Forward(b, inputs["query"], inputs["query"], inputs["query"], layers.Mask{Causal: true}))(t))
}
