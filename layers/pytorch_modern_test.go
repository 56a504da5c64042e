package layers_test

import (
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
)

func rmsNormSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, in map[string]*G.Node) map[string]*G.Node {
	c := layers.NormConfig{}
	if f.Config.Eps != 1e-6 { // the default is held to it as well
		c.Eps = f.Config.Eps
	}
	l := must[*layers.RMSNorm](t)(layers.NewRMSNorm(p, f.Config.Dim, c))
	f.fill(t, p)
	if f.Config.Heads == 1 {
		return one(node(t)(l.Forward(b, in["x"])))
	}
	return one(node(t)(l.ForwardHeads(b, in["x"], f.Config.Heads)))
}

func gatedSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, in map[string]*G.Node) map[string]*G.Node {
	l := must[*layers.FeedForward](t)(layers.NewFeedForward(p, 4, layers.FeedForwardConfig{
		Hidden: 5, Activation: activations[f.Config.Activation], Gated: true, NoBias: !f.Config.Bias,
	}))
	f.fill(t, p)
	return one(node(t)(l.Forward(b, in["x"])))
}

func rotarySubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, in map[string]*G.Node) map[string]*G.Node {
	c := f.Config
	r := layers.Rotary{Dim: c.Rotary, Interleaved: c.Interleaved, Offset: c.Offset, Scaling: c.Scaling}
	if c.Base != 10000 { // the default is held to it as well
		r.Base = c.Base
	}
	return one(node(t)(r.Turn(b, in["x"], c.Heads, in["positions"])))
}

func alibiSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, in map[string]*G.Node) map[string]*G.Node {
	q := in["q"]
	slopes := must[[]float64](t)(layers.ALiBi{}.Slopes(f.Config.Heads))
	out, weights, err := scaledDotProduct(b, q, in["k"], in["v"], layers.AttentionOptions{
		Mask: layers.Mask{Causal: f.Config.Causal, Offset: f.Config.Offset, Slopes: slopes},
	})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*G.Node{"out": out, "weights": weights}
}

func relativeSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, in map[string]*G.Node) map[string]*G.Node {
	x := in["x"]
	dim := x.Shape()[x.Dims()-1]
	config := layers.AttentionConfig{Heads: f.Config.Heads, NoBias: true, Scale: 1}
	a := must[*layers.MultiHeadAttention](t)(layers.NewMultiHeadAttention(p, dim, config))
	relative := layers.RelativeBias{Buckets: f.Config.Buckets, MaxDistance: f.Config.MaxDistance}
	if relative.Buckets == 32 { // the default is held to it as well
		relative = layers.RelativeBias{}
	}
	a.Positions = must[layers.Positions](t)(relative.New(p.Scope("positions"), dim, config))
	f.fill(t, p)
	return one(node(t)(a.Forward(b, x, x, x, layers.Mask{Causal: f.Config.Causal})))
}

func modernSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, in map[string]*G.Node) map[string]*G.Node {
	d := must[*layers.DecoderBlock](t)(layers.NewDecoderBlock(p, 6, f.block()))
	f.fill(t, p)
	return one(node(t)(d.Forward(b, in["x"], nil, layers.Mask{}, layers.Mask{})))
}
