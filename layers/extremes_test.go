package layers_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// A trial builds an expression from parameters and inputs.
type trial struct {
	p *layers.Params
	b *layers.Build
	g *G.ExprGraph
	n int // number of inputs made so far
}

// in returns an input of random numbers. The last vector of the last axis is constant.
func (r *trial) in(shape ...int) *G.Node {
	r.n++
	v := random(uint64(r.n), shape...)
	x := v.Float64s()
	for i := range shape[len(shape)-1] {
		x[len(x)-1-i] = 0.5
	}
	return input(r.g, fmt.Sprintf("in%d", r.n), as(r.p.Dtype(), v))
}

// ids returns an input of shape (2, 3) with ids below 4.
func (r *trial) ids() *G.Node {
	r.n++
	return input(r.g, fmt.Sprintf("in%d", r.n), dense([]int{0, 1, 2, 3, 1, 0}, 2, 3))
}

// failed is an error that got panics with, and that tried returns.
type failed struct{ error }

// got returns v. If there is an error, the trial ends with it.
func got[V any](v V, err error) V {
	if err != nil {
		panic(failed{err})
	}
	return v
}

// tried builds an expression for training, in float32 and float64. It returns the values of the expression, and the
// gradients with respect to the parameters.
func tried(build func(r *trial) *G.Node) (results []float64, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case failed:
			results, err = nil, x.error
		default:
			panic(x)
		}
	}()
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		r := &trial{p: got(layers.NewParams(dt, 1)), b: &layers.Build{Training: true}, g: G.NewGraph()}
		y := build(r)
		nodes := G.Nodes{y}
		if learnables := r.b.Learnables(); len(learnables) > 0 {
			cost := y
			if !y.IsScalar() {
				cost = got(G.Sum(y))
			}
			nodes = append(nodes, got(G.Grad(cost, learnables...))...)
		}
		values := make([]G.Value, len(nodes))
		for i, n := range nodes {
			G.Read(n, &values[i])
		}
		vm := G.NewTapeMachine(r.g)
		err := vm.RunAll()
		vm.Close()
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			switch x := v.Data().(type) {
			case float32:
				results = append(results, float64(x))
			case float64:
				results = append(results, x)
			case []float32:
				for _, f := range x {
					results = append(results, float64(f))
				}
			case []float64:
				results = append(results, x...)
			}
		}
	}
	return results, nil
}

// trying returns the case of a configuration for which build builds an expression.
func trying[C any](valid C, build func(r *trial, c C) *G.Node) extremes.Case {
	return extremes.Of(valid, func(c C) ([]float64, error) {
		return tried(func(r *trial) *G.Node { return build(r, c) })
	})
}

func TestExtremes(t *testing.T) {
	testseed.Proof(t)
	self := func(r *trial, a attention) *G.Node {
		x := r.in(2, 3, 4)
		return got(a.Forward(r.b, x, x, x, layers.Mask{}))
	}
	type window = layers.Window
	mask := layers.Mask{Causal: true, Window: &window{Left: 2, Right: 1}, Slopes: []float64{0.5, 0.25}, Distances: &layers.Distances{Buckets: 2, MaxDistance: 4}}
	init := layers.Normal(0.1)
	attention := layers.AttentionConfig{Heads: 2, NormEps: 1e-5, Softcap: 3, Dropout: 0.1, Window: mask.Window, Init: init, OutputInit: init, Latent: &layers.LatentConfig{Rank: 3, RotaryDim: 2, QueryRank: 3}}
	experts := &layers.ExpertsConfig{Count: 4, Top: 2, Scale: 2, Groups: 2, TopGroups: 1, Shared: 2, Limit: 3, Balance: 0.1}
	feedForward := layers.FeedForwardConfig{Hidden: 4, Activation: layers.SiLU, Gated: true, Dropout: 0.1, Init: init, OutputInit: init, Experts: experts}
	block := layers.BlockConfig{Attention: attention, FeedForward: feedForward, ResidualScale: 0.5, Dropout: 0.1}
	model := layers.ModelConfig{Vocab: 4, Dim: 4, Layers: 2, Positions: layers.Learned{MaxLen: 3}, Block: block, Dropout: 0.1, Init: init, EmbeddingInit: init, Transform: &layers.TransformConfig{Activation: layers.Tanh, Norm: true}, LogitSoftcap: 3, HeadScale: 0.5}
	model.Variants = []layers.BlockVariant{{Blocks: []int{0}, Window: mask.Window, FeedForward: &feedForward}}
	model.Projection = &layers.ProjectionConfig{Dim: 4}
	classifier := layers.SequenceClassifierConfig{Model: model, Pooling: layers.LastPooling, Pad: new(2), Decoder: &layers.RereadConfig{Layers: 1, Start: 2}}
	classifier.Model.Outputs = 3

	// decode applies a decoder that differs from model.
	decode := func(r *trial, change func(m *layers.ModelConfig)) *G.Node {
		m := model
		change(&m)
		return got(got(layers.NewDecoder(r.p, m)).Forward(r.b, r.ids(), layers.Mask{}))
	}
	attend := func(r *trial, o layers.AttentionOptions) *G.Node { // both forms
		o.Mask.Causal = true
		fused := got(layers.ScaledDotProduct(r.b, r.in(2, 3, 4), r.in(2, 3, 4), r.in(2, 3, 4), o))
		r.b.Composed = true
		return got(G.Add(fused, got(layers.ScaledDotProduct(r.b, r.in(2, 3, 4), r.in(2, 3, 4), r.in(2, 3, 4), o))))
	}
	type (
		arguments struct{ In, Out, Heads int }
		cache     struct{ Batch, Capacity, Count, Length, Parent int }
		huber     struct{ Delta float64 }
		alibi     struct{ Heads int }
	)
	cases := []extremes.Case{
		trying(init, func(r *trial, c layers.Init) *G.Node {
			return got(got(layers.NewLinear(r.p, 4, 3, layers.LinearConfig{Init: c})).Forward(r.b, r.in(2, 4)))
		}),
		trying(layers.LinearConfig{Init: init, BiasInit: layers.Uniform(0.1)}, func(r *trial, c layers.LinearConfig) *G.Node {
			return got(got(layers.NewLinear(r.p, 4, 3, c)).Forward(r.b, r.in(2, 4)))
		}),
		trying(layers.NormConfig{}, func(r *trial, c layers.NormConfig) *G.Node {
			x := got(got(layers.NewNorm(r.p.Scope("layer"), 4, c)).Forward(r.b, r.in(3, 4)))
			c.Kind = "rms"
			return got(G.Add(x, got(got(layers.NewNorm(r.p.Scope("rms"), 4, c)).Forward(r.b, r.in(3, 4)))))
		}),
		trying(layers.Dropout{P: 0.1}, func(r *trial, c layers.Dropout) *G.Node { return got(c.Forward(r.b, r.in(3, 4))) }),
		trying(feedForward, func(r *trial, c layers.FeedForwardConfig) *G.Node {
			return got(got(layers.NewFeedForward(r.p, 4, c)).Forward(r.b, r.in(2, 4)))
		}),
		trying(*experts, func(r *trial, c layers.ExpertsConfig) *G.Node {
			f := feedForward
			f.Experts = &c
			return got(got(layers.NewFeedForward(r.p, 4, f)).Forward(r.b, r.in(3, 4)))
		}),
		trying(layers.FeedForward{}, func(r *trial, c layers.FeedForward) *G.Node {
			l := got(layers.NewFeedForward(r.p, 4, feedForward))
			l.Activation, l.Dropout = c.Activation, c.Dropout
			return got(l.Forward(r.b, r.in(2, 4)))
		}),
		trying(*model.Transform, func(r *trial, c layers.TransformConfig) *G.Node {
			return decode(r, func(m *layers.ModelConfig) { m.Transform = &c })
		}),
		trying(layers.Transform{}, func(r *trial, c layers.Transform) *G.Node {
			d := got(layers.NewDecoder(r.p, model))
			d.Transform.Activation = c.Activation
			return got(d.Forward(r.b, r.ids(), layers.Mask{}))
		}),
		trying(attention, func(r *trial, c layers.AttentionConfig) *G.Node {
			return self(r, got(layers.NewMultiHeadAttention(r.p, 4, c)))
		}),
		trying(*attention.Latent, func(r *trial, c layers.LatentConfig) *G.Node {
			a := attention
			a.Latent = &c
			return self(r, got(layers.NewMultiHeadAttention(r.p, 4, a)))
		}),
		trying(layers.AttentionOptions{Mask: mask, Heads: 2, KeyValueHeads: 2}, attend),
		trying(mask, func(r *trial, c layers.Mask) *G.Node { return attend(r, layers.AttentionOptions{Mask: c, Heads: 2}) }),
		trying(*model.Projection, func(r *trial, c layers.ProjectionConfig) *G.Node {
			return decode(r, func(m *layers.ModelConfig) { m.Projection = &c })
		}),
		trying(*mask.Distances, func(r *trial, c layers.Distances) *G.Node {
			c.Keys, c.Queries = r.in(4, 4), r.in(4, 4)
			return attend(r, layers.AttentionOptions{Mask: layers.Mask{Distances: &c}})
		}),
		trying(*mask.Window, func(r *trial, c layers.Window) *G.Node {
			return attend(r, layers.AttentionOptions{Mask: layers.Mask{Window: &c}})
		}),
		trying(layers.AdditiveConfig{Dropout: 0.1, Init: init}, func(r *trial, c layers.AdditiveConfig) *G.Node {
			return self(r, got(layers.NewAdditiveAttention(r.p, 4, c)))
		}),
		trying(block, func(r *trial, c layers.BlockConfig) *G.Node {
			return got(got(layers.NewEncoderBlock(r.p, 4, c)).Forward(r.b, r.in(2, 3, 4), layers.Mask{}))
		}),
		trying(model, func(r *trial, c layers.ModelConfig) *G.Node {
			return decode(r, func(m *layers.ModelConfig) { *m = c })
		}),
		trying(model.Variants[0], func(r *trial, c layers.BlockVariant) *G.Node {
			return decode(r, func(m *layers.ModelConfig) { m.Variants = []layers.BlockVariant{c} })
		}),
		trying(layers.EncoderDecoderConfig{Model: model}, func(r *trial, c layers.EncoderDecoderConfig) *G.Node {
			return got(got(layers.NewEncoderDecoder(r.p, c)).Forward(r.b, r.ids(), r.ids(), layers.Mask{}))
		}),
		trying(classifier, func(r *trial, c layers.SequenceClassifierConfig) *G.Node {
			return got(got(layers.NewSequenceClassifier(r.p, c)).Forward(r.b, r.ids(), layers.Mask{}))
		}),
		trying(*classifier.Decoder, func(r *trial, c layers.RereadConfig) *G.Node {
			s := classifier
			s.Decoder = &c
			return got(got(layers.NewSequenceClassifier(r.p, s)).Forward(r.b, r.ids(), layers.Mask{}))
		}),
		trying(layers.Build{Training: true, Adapter: &layers.Adapter{}}, func(r *trial, c layers.Build) *G.Node {
			r.b.Training, r.b.Seed, r.b.Runs, r.b.Cores = c.Training, c.Seed, c.Runs, c.Cores
			return got(layers.ScaledDotProduct(r.b, r.in(2, 3, 4), r.in(2, 3, 4), r.in(2, 3, 4), layers.AttentionOptions{Dropout: 0.1}))
		}),
		trying(layers.LowRank{Rank: 2, Alpha: 4, Dropout: 0.1, Whole: []string{"bias"}}, func(r *trial, c layers.LowRank) *G.Node {
			l := got(layers.NewLinear(r.p.Scope("up"), 4, 3, layers.LinearConfig{}))
			r.b.Adapter = got(layers.NewAdapter(r.p, c, 1))
			return got(l.Forward(r.b, r.in(2, 4)))
		}),
		trying(layers.CrossEntropyOptions{ClassWeights: []float64{1, 1, 1, 1}, LabelSmoothing: 0.1}, func(r *trial, c layers.CrossEntropyOptions) *G.Node {
			return got(mean(layers.CrossEntropy(r.b, r.in(2, 3, 4), r.ids(), c)))
		}),
		trying(huber{1}, func(r *trial, c huber) *G.Node {
			return got(mean(layers.HuberError(r.b, r.in(3, 4), r.in(3, 4), nil, c.Delta)))
		}),
		trying(layers.Tensor{Names: []string{"w"}, Params: []string{"weight"}, SkipRows: 1, Plus: 1}, func(r *trial, c layers.Tensor) *G.Node {
			l := got(layers.NewLinear(r.p, 4, 2, layers.LinearConfig{NoBias: true}))
			path := filepath.Join(t.TempDir(), "weights.safetensors")
			got(0, r.p.SaveTensors(path, []layers.Tensor{c}, nil))
			got(r.p.Load(path, layers.LoadOptions{Tensors: []layers.Tensor{c}}))
			return got(r.b.Bind(r.g, l.Weight))
		}),
		extremes.Of(alibi{2}, func(c alibi) ([]float64, error) {
			return layers.ALiBi{}.Slopes(c.Heads)
		}),
		trying(arguments{4, 4, 2}, func(r *trial, c arguments) *G.Node {
			x := got(got(layers.NewLinear(r.p, c.In, c.Out, layers.LinearConfig{})).Forward(r.b, r.in(2, 3, 4)))
			x = got(layers.Rotary{}.Rotate(r.b, x, c.Heads, nil))
			return got(got(layers.NewNorm(r.p.Scope("norm"), 2, layers.NormConfig{Kind: "rms"})).Heads(r.b, x, c.Heads))
		}),
		extremes.Of(cache{2, 8, 1, 1, 0}, func(c cache) ([]float64, error) {
			k, err := layers.NewCache(c.Batch, c.Capacity)
			if err == nil {
				err = k.Extend(1, c.Count)
			}
			if err != nil {
				return nil, err
			}
			k.Commit()
			return nil, cmp.Or(k.Truncate(1, c.Length), k.Reorder(1, c.Parent))
		}),
	}
	for _, scheme := range schemes() {
		cases = append(cases, trying(scheme, func(r *trial, c layers.PositionsConfig) *G.Node {
			m := model
			m.Positions, m.Dim, m.Outputs = c, 8, 2
			m.Block.Attention.Latent, m.Block.Attention.QKNorm = nil, true
			return got(got(layers.NewEncoder(r.p, m)).Forward(r.b, r.ids(), layers.Mask{}))
		}))
	}
	extremes.Run(t, nil, cases...)
}

// TestNegativeCores uses a number that is an error although the results would be finite.
func TestNegativeCores(t *testing.T) {
	g, b := G.NewGraph(), &layers.Build{Cores: -1}
	x := input(g, "x", random(1, 2, 4))
	must.Refuse(b.Bind(g, must.Get(newParams(t).New("w", layers.Ones(), 4))(t)))(t, "Cores")
	must.Refuse(layers.ScaledDotProduct(b, x, x, x, layers.AttentionOptions{}))(t, "Cores")
}
