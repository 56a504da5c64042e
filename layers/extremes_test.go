package layers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// tried builds an expression for training, in float32 and float64. It returns the values of the expression, and the
// gradients with respect to the parameters.
func tried(build func(r *trial) (*G.Node, error)) (results []float64, err error) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		p, err := layers.NewParams(dt, 1)
		if err != nil {
			return nil, err
		}
		r := &trial{p: p, b: &layers.Build{Training: true}, g: G.NewGraph()}
		y, err := build(r)
		if err != nil {
			return nil, err
		}
		nodes := G.Nodes{y}
		if learnables := r.b.Learnables(); len(learnables) > 0 {
			cost := y
			if !y.IsScalar() {
				if cost, err = G.Sum(y); err != nil {
					return nil, err
				}
			}
			grads, err := G.Grad(cost, learnables...)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, grads...)
		}
		values := make([]G.Value, len(nodes))
		for i, n := range nodes {
			G.Read(n, &values[i])
		}
		vm := G.NewTapeMachine(r.g)
		err = vm.RunAll()
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
func trying[C any](valid C, build func(r *trial, c C) (*G.Node, error)) extremes.Case {
	return extremes.Of(valid, func(c C) ([]float64, error) {
		return tried(func(r *trial) (*G.Node, error) { return build(r, c) })
	})
}

func TestExtremes(t *testing.T) {
	testseed.Slow(t)
	type window = layers.Window
	mask := layers.Mask{Causal: true, Window: &window{Left: 2, Right: 1}, Slopes: []float64{0.5, 0.25}}
	init := layers.Normal(0.1)
	attention := layers.AttentionConfig{Heads: 2, QKNorm: true, NormEps: 1e-5, Softcap: 3, Dropout: 0.1, Window: mask.Window, Init: init, OutputInit: init}
	feedForward := layers.FeedForwardConfig{Hidden: 4, Dropout: 0.1, Init: init, OutputInit: init}
	block := layers.BlockConfig{Attention: attention, FeedForward: feedForward, Dropout: 0.1}
	model := layers.ModelConfig{Vocab: 4, Dim: 4, Layers: 1, Positions: layers.Learned{MaxLen: 3}, Block: block, Dropout: 0.1, Init: init, EmbeddingInit: init, Transform: &layers.TransformConfig{Activation: layers.Tanh, Norm: true}, LogitSoftcap: 3}
	model.Variants = []layers.BlockVariant{{Blocks: []int{0}, Window: mask.Window}}
	classifier := layers.SequenceClassifierConfig{Model: model, Pooling: layers.LastPooling, Pad: new(2)}
	classifier.Model.Outputs = 3

	forward := func(l interface {
		Forward(*layers.Build, *G.Node) (*G.Node, error)
	}, err error, r *trial, x *G.Node) (*G.Node, error) {
		if err != nil {
			return nil, err
		}
		return l.Forward(r.b, x)
	}
	positions := func(c layers.PositionsConfig) ([]float64, error) {
		return tried(func(r *trial) (*G.Node, error) {
			m := model
			m.Positions, m.Dim, m.Outputs = c, 8, 2
			e, err := layers.NewEncoder(r.p, m)
			if err != nil {
				return nil, err
			}
			return e.Forward(r.b, r.ids(), layers.Mask{})
		})
	}
	attend := func(o layers.AttentionOptions) ([]float64, error) {
		o.Mask.Causal = true
		var numbers []float64 // of both forms
		for _, composed := range []bool{false, true} {
			results, err := tried(func(r *trial) (*G.Node, error) {
				r.b.Composed = composed
				return layers.ScaledDotProduct(r.b, r.in(2, 3, 4), r.in(2, 3, 4), r.in(2, 3, 4), o)
			})
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, results...)
		}
		return numbers, nil
	}
	type (
		arguments struct{ In, Out, Heads int }
		cache     struct{ Batch, Capacity, Count, Length, Parent int }
		huber     struct{ Delta float64 }
		alibi     struct{ Heads int }
	)
	cases := []extremes.Case{
		trying(init, func(r *trial, c layers.Init) (*G.Node, error) {
			l, err := layers.NewLinear(r.p, 4, 3, layers.LinearConfig{Init: c})
			return forward(l, err, r, r.in(2, 4))
		}),
		trying(layers.LinearConfig{Init: init, BiasInit: layers.Uniform(0.1)}, func(r *trial, c layers.LinearConfig) (*G.Node, error) {
			l, err := layers.NewLinear(r.p, 4, 3, c)
			return forward(l, err, r, r.in(2, 4))
		}),
		extremes.Of(layers.NormConfig{}, func(c layers.NormConfig) ([]float64, error) {
			results, err := tried(func(r *trial) (*G.Node, error) {
				l, err := layers.NewNorm(r.p, 4, c)
				return forward(l, err, r, r.in(3, 4))
			})
			if err != nil {
				return nil, err
			}
			more, err := tried(func(r *trial) (*G.Node, error) {
				c.Kind = "rms"
				l, err := layers.NewNorm(r.p, 4, c)
				return forward(l, err, r, r.in(3, 4))
			})
			return append(results, more...), err
		}),
		trying(layers.Dropout{P: 0.1}, func(r *trial, c layers.Dropout) (*G.Node, error) { return c.Forward(r.b, r.in(3, 4)) }),
		trying(feedForward, func(r *trial, c layers.FeedForwardConfig) (*G.Node, error) {
			l, err := layers.NewFeedForward(r.p, 4, c)
			return forward(l, err, r, r.in(2, 4))
		}),
		trying(layers.FeedForward{}, func(r *trial, c layers.FeedForward) (*G.Node, error) {
			l, err := layers.NewFeedForward(r.p, 4, feedForward)
			if err != nil {
				return nil, err
			}
			l.Activation, l.Dropout = c.Activation, c.Dropout
			return l.Forward(r.b, r.in(2, 4))
		}),
		trying(*model.Transform, func(r *trial, c layers.TransformConfig) (*G.Node, error) {
			m := model
			m.Transform = &c
			d, err := layers.NewDecoder(r.p, m)
			if err != nil {
				return nil, err
			}
			return d.Forward(r.b, r.ids(), layers.Mask{})
		}),
		trying(layers.Transform{}, func(r *trial, c layers.Transform) (*G.Node, error) {
			d, err := layers.NewDecoder(r.p, model)
			if err != nil {
				return nil, err
			}
			d.Transform.Activation = c.Activation
			return d.Forward(r.b, r.ids(), layers.Mask{})
		}),
		trying(attention, func(r *trial, c layers.AttentionConfig) (*G.Node, error) {
			a, err := layers.NewMultiHeadAttention(r.p, 4, c)
			if err != nil {
				return nil, err
			}
			x := r.in(2, 3, 4)
			return a.Forward(r.b, x, x, x, layers.Mask{})
		}),
		extremes.Of(layers.AttentionOptions{Mask: mask, Heads: 2, KeyValueHeads: 2}, attend),
		extremes.Of(mask, func(c layers.Mask) ([]float64, error) { return attend(layers.AttentionOptions{Mask: c, Heads: 2}) }),
		extremes.Of(*mask.Window, func(c layers.Window) ([]float64, error) {
			return attend(layers.AttentionOptions{Mask: layers.Mask{Window: &c}})
		}),
		trying(layers.AdditiveConfig{Dropout: 0.1, Init: init}, func(r *trial, c layers.AdditiveConfig) (*G.Node, error) {
			a, err := layers.NewAdditiveAttention(r.p, 4, c)
			if err != nil {
				return nil, err
			}
			x := r.in(2, 3, 4)
			return a.Forward(r.b, x, x, x, layers.Mask{})
		}),
		trying(block, func(r *trial, c layers.BlockConfig) (*G.Node, error) {
			l, err := layers.NewEncoderBlock(r.p, 4, c)
			if err != nil {
				return nil, err
			}
			return l.Forward(r.b, r.in(2, 3, 4), layers.Mask{})
		}),
		trying(model, func(r *trial, c layers.ModelConfig) (*G.Node, error) {
			d, err := layers.NewDecoder(r.p, c)
			if err != nil {
				return nil, err
			}
			return d.Forward(r.b, r.ids(), layers.Mask{})
		}),
		trying(model.Variants[0], func(r *trial, c layers.BlockVariant) (*G.Node, error) {
			m := model
			m.Variants = []layers.BlockVariant{c}
			d, err := layers.NewDecoder(r.p, m)
			if err != nil {
				return nil, err
			}
			return d.Forward(r.b, r.ids(), layers.Mask{})
		}),
		trying(layers.EncoderDecoderConfig{Model: model}, func(r *trial, c layers.EncoderDecoderConfig) (*G.Node, error) {
			m, err := layers.NewEncoderDecoder(r.p, c)
			if err != nil {
				return nil, err
			}
			return m.Forward(r.b, r.ids(), r.ids(), layers.Mask{})
		}),
		trying(classifier, func(r *trial, c layers.SequenceClassifierConfig) (*G.Node, error) {
			m, err := layers.NewSequenceClassifier(r.p, c)
			if err != nil {
				return nil, err
			}
			return m.Forward(r.b, r.ids(), layers.Mask{})
		}),
		trying(layers.Build{Training: true, Adapter: &layers.Adapter{}}, func(r *trial, c layers.Build) (*G.Node, error) {
			r.b.Training, r.b.Seed, r.b.Runs, r.b.Cores = c.Training, c.Seed, c.Runs, c.Cores
			return layers.ScaledDotProduct(r.b, r.in(2, 3, 4), r.in(2, 3, 4), r.in(2, 3, 4), layers.AttentionOptions{Dropout: 0.1})
		}),
		trying(layers.LowRank{Rank: 2, Alpha: 4, Dropout: 0.1, Whole: []string{"bias"}}, func(r *trial, c layers.LowRank) (*G.Node, error) {
			l, err := layers.NewLinear(r.p.Scope("up"), 4, 3, layers.LinearConfig{})
			if err == nil {
				r.b.Adapter, err = layers.NewAdapter(r.p, c, 1)
			}
			return forward(l, err, r, r.in(2, 4))
		}),
		trying(layers.CrossEntropyOptions{ClassWeights: []float64{1, 1, 1, 1}, LabelSmoothing: 0.1}, func(r *trial, c layers.CrossEntropyOptions) (*G.Node, error) {
			return mean(layers.CrossEntropy(r.b, r.in(2, 3, 4), r.ids(), c))
		}),
		trying(huber{1}, func(r *trial, c huber) (*G.Node, error) {
			return mean(layers.HuberError(r.b, r.in(3, 4), r.in(3, 4), nil, c.Delta))
		}),
		extremes.Of(layers.Tensor{Names: []string{"w"}, Params: []string{"weight"}, SkipRows: 1, Plus: 1, Times: 2}, func(c layers.Tensor) ([]float64, error) {
			p, err := layers.NewParams(tensor.Float32, 1)
			if err != nil {
				return nil, err
			}
			l, err := layers.NewLinear(p, 4, 2, layers.LinearConfig{NoBias: true})
			if err != nil {
				return nil, err
			}
			path := filepath.Join(t.TempDir(), "weights.safetensors")
			if err := p.SaveTensors(path, []layers.Tensor{c}, nil); err != nil {
				return nil, err
			}
			if _, err := p.Load(path, layers.LoadOptions{Tensors: []layers.Tensor{c}}); err != nil {
				return nil, err
			}
			var numbers []float64
			for _, x := range l.Weight.Value.Float32s() {
				numbers = append(numbers, float64(x))
			}
			return numbers, nil
		}),
		extremes.Of(alibi{2}, func(c alibi) ([]float64, error) {
			return layers.ALiBi{}.Slopes(c.Heads)
		}),
		trying(arguments{4, 4, 2}, func(r *trial, c arguments) (*G.Node, error) {
			l, err := layers.NewLinear(r.p, c.In, c.Out, layers.LinearConfig{})
			x, err := forward(l, err, r, r.in(2, 3, 4))
			if err != nil {
				return nil, err
			}
			if x, err = (layers.Rotary{}).Rotate(r.b, x, c.Heads, nil); err != nil {
				return nil, err
			}
			n, err := layers.NewNorm(r.p.Scope("norm"), 2, layers.NormConfig{Kind: "rms"})
			if err != nil {
				return nil, err
			}
			return n.Heads(r.b, x, c.Heads)
		}),
		extremes.Of(cache{2, 8, 1, 1, 0}, func(c cache) ([]float64, error) {
			k, err := layers.NewCache(c.Batch, c.Capacity)
			if err != nil {
				return nil, err
			}
			if err := k.Extend(1, c.Count); err != nil {
				return nil, err
			}
			k.Commit()
			if err := k.Truncate(1, c.Length); err != nil {
				return nil, err
			}
			return nil, k.Reorder(1, c.Parent)
		}),
	}
	for _, scheme := range schemes() {
		cases = append(cases, extremes.Of(scheme, positions))
	}
	extremes.Run(t, nil, cases...)
}

// TestNumbersAreErrors uses invalid numbers that are errors even where the results would be finite.
func TestNumbersAreErrors(t *testing.T) {
	inf := math.Inf(1)
	p := newParams(t)
	_, eps := layers.NewNorm(p.Scope("norm"), 4, layers.NormConfig{Eps: inf})
	_, rms := layers.NewNorm(p.Scope("rms"), 4, layers.NormConfig{Kind: "rms", Eps: inf})
	_, std := p.New("normal", layers.Normal(1e308), 4)
	_, own := p.New("own", layers.Init{Func: func(_ *rand.Rand, values []float64, _ []int) { values[1] = inf }}, 4)
	for want, err := range map[string]error{"layer norm norm: Eps": eps, "rms norm rms: Eps": rms, "Scale of normal": std, "Func": own} {
		must.Fail(t, err, want)
	}
	g, b := G.NewGraph(), &layers.Build{Cores: -1}
	x := input(g, "x", random(1, 2, 4))
	must.Refuse(b.Bind(g, must.Get(p.New("w", layers.Ones(), 4))(t)))(t, "Cores")
	must.Refuse(layers.ScaledDotProduct(b, x, x, x, layers.AttentionOptions{}))(t, "Cores")
}
