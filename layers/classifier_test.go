package layers_test

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

var poolings = []layers.Pooling{layers.MeanPooling, layers.FirstPooling, layers.LastPooling}

func newClassifier(t testing.TB, p *layers.Params, pooling layers.Pooling, transform ...*layers.TransformConfig) *layers.SequenceClassifier {
	t.Helper()
	return must.Get(layers.NewSequenceClassifier(p, layers.SequenceClassifierConfig{
		Model: layers.ModelConfig{Vocab: 7, Positions: layers.Learned{MaxLen: 5}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}}, Layers: 1, Outputs: 3, Transform: cmp.Or(transform...)}, Pooling: pooling,
	}))(t)
}

func TestGradientsOfSequenceClassifier(t *testing.T) {
	var cases []gradientCase
	for _, pooling := range poolings {
		for name, mask := range map[string]func(c *bench) layers.Mask{
			"plain":   func(*bench) layers.Mask { return layers.Mask{} },
			"lengths": func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(4, 0, 2)} },
			"allow":   func(c *bench) layers.Mask { return layers.Mask{Allow: c.allow([]int{1}, 3, 1, 1, 4)} },
		} {
			cases = append(cases, gradientCase{fmt.Sprintf("%s, %v", name, pooling), func(c *bench) *G.Node {
				s := newClassifier(c, c.p, pooling)
				y := c.node(s.Forward(c.b, c.ints("ids", []int{1, 4, 3, 3, 0, 0, 6, 1, 2, 5, 1, 1}, 3, 4), mask(c)))
				return c.node(mean(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", []int{2, 0, 1}, 3), layers.CrossEntropyOptions{})))
			}})
		}
		cases = append(cases, gradientCase{fmt.Sprintf("without a batch axis, %v", pooling), func(c *bench) *G.Node {
			s := newClassifier(c, c.p, pooling)
			return c.node(s.Forward(c.b, c.ints("ids", []int{1, 4, 3}, 3), layers.Mask{KeyLengths: c.lengths(2)}))
		}})
	}
	for name, transform := range map[string]*layers.TransformConfig{
		"pooler":        {Activation: layers.Tanh},
		"norm, no bias": {Activation: layers.GELU, NoBias: true, Norm: true},
	} {
		cases = append(cases, gradientCase{"transform, " + name, func(c *bench) *G.Node {
			s := newClassifier(c, c.p, layers.FirstPooling, transform)
			y := c.node(s.Forward(c.b, c.ints("ids", []int{1, 4, 3, 3, 0, 0, 6, 1}, 2, 4), layers.Mask{KeyLengths: c.lengths(3, 4)}))
			return c.node(mean(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", []int{2, 0}, 2), layers.CrossEntropyOptions{})))
		}})
	}
	checkGradients(t, cases)
}

func classifierSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	pooling := layers.MeanPooling
	if f.Config.First {
		pooling = layers.FirstPooling
	}
	s := newClassifier(t, p, pooling)
	f.fill(t, p)
	return one(must.Get(s.Forward(b, inputs["ids"], f.mask(inputs)))(t))
}

// TestSequenceClassifierPadding changes padding to other tokens, including a token whose embedding is NaN or infinite.
// No bit of the results may change. If a sequence has only padding, its logits are the head's bias.
func TestSequenceClassifierPadding(t *testing.T) {
	const poisoned = 3
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		for _, pooling := range poolings {
			run := func(t *testing.T, hidden int, value float64) [][]float64 {
				p := must.Get(layers.NewParams(dt, 5))(t)
				s := newClassifier(t, p, pooling)
				bias := as(dt, dense([]float64{0.5, -1, 2}, 3))
				must.Do(t, tensor.Copy(s.Head.Bias.Value, bias))
				setRow(s.Encoder.Embedding.Weight, poisoned, value)
				c := &bench{T: t, g: G.NewGraph(), p: p, b: &layers.Build{Training: true}, dt: dt}
				h := hidden
				ids := c.ints("ids", []int{1, 4, h, h, 2, 5, 6, 4, h, h, h, h}, 3, 4)
				logits := c.node(s.Forward(c.b, ids, layers.Mask{KeyLengths: c.lengths(2, 4, 0)}))
				loss := c.node(mean(layers.CrossEntropy(&layers.Build{}, logits, c.ints("targets", []int{2, 0, 1}, 3), layers.CrossEntropyOptions{})))
				got := read(t, append(G.Nodes{logits, loss}, gradients(t, loss, c.b.Learnables()...)...)...)
				sameBits(t, "logits of an empty sequence", got[0][6:], []float64{0.5, -1, 2})
				return got
			}
			t.Run(fmt.Sprintf("%v, %v", dt, pooling), func(t *testing.T) {
				want := run(t, 0, 1)
				for _, value := range []float64{1, 1e6, math.NaN(), inf, -inf} {
					for i, got := range run(t, poisoned, value) {
						sameBits(t, fmt.Sprintf("with %v in padding: value %d", value, i), got, want[i])
					}
				}
			})
		}
	}
}

func TestSequenceClassifierErrors(t *testing.T) {
	type config = layers.SequenceClassifierConfig
	make := func(change func(c *config)) error {
		c := config{Model: layers.ModelConfig{Vocab: 7, Positions: layers.Learned{MaxLen: 5}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1, Outputs: 3}}
		change(&c)
		_, err := layers.NewSequenceClassifier(newParams(t).Scope("s"), c)
		return err
	}
	c := newBench(t)
	s := newClassifier(t, c.p.Scope("s"), layers.MeanPooling)
	err := func(_ *G.Node, err error) error { return err }
	ids := c.ints("ids", []int{1, 2, 3, 4}, 2, 2)
	wantErrors(t, []errorCase{
		{"Outputs", make(func(c *config) { c.Model.Outputs = 0 }), []string{"sequence classifier s", "Outputs", "at least 1"}},
		{"Pooling", make(func(c *config) { c.Pooling = 3 }), []string{"sequence classifier s", "no pooling 3", "mean, first, last"}},
		{"Pad", make(func(c *config) { c.Pad = new(int) }), []string{"sequence classifier s", "Pad needs the pooling last, got mean"}},
		{"Transform", make(func(c *config) { c.Model.Transform = &layers.TransformConfig{Activation: 9} }), []string{"transform s.transform", "no activation 9"}},
		{"LogitSoftcap", make(func(c *config) { c.Model.LogitSoftcap = -1 }), []string{"sequence classifier s", "LogitSoftcap", "got -1"}},
		{"Vocab", make(func(c *config) { c.Model.Vocab = -1 }), []string{"encoder s.encoder", "Vocab"}},
		{"too long", err(s.Forward(c.b, c.ints("long", []int{1, 2, 3, 4, 5, 6}, 1, 6), layers.Mask{})), []string{"s.encoder.positions", "at most 5"}},
		{"lengths' shape", err(s.Forward(c.b, ids, layers.Mask{KeyLengths: c.ints("three", []int{1, 1, 1}, 3)})), []string{"Mask.KeyLengths", "(2)", "(3)"}},
	})
}
