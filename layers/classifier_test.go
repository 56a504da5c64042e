package layers_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
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
	for name, positions := range map[string]layers.PositionsConfig{"learned": layers.Learned{MaxLen: 5}, "relative bias": layers.RelativeBias{Buckets: 4, MaxDistance: 5}} {
		cases = append(cases, gradientCase{"decoder, " + name, func(c *bench) *G.Node {
			s := newRereader(c, c.p, positions)
			y := c.node(s.Forward(c.b, c.ints("ids", []int{1, 4, 3, 3, 0, 0, 6, 1}, 2, 4), layers.Mask{KeyLengths: c.lengths(3, 4)}))
			return c.node(mean(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", []int{2, 0}, 2), layers.CrossEntropyOptions{})))
		}})
	}
	checkGradients(t, cases)
}

// newRereader makes a classifier with a decoder of two blocks.
func newRereader(t testing.TB, p *layers.Params, positions layers.PositionsConfig) *layers.SequenceClassifier {
	t.Helper()
	return must.Get(layers.NewSequenceClassifier(p, layers.SequenceClassifierConfig{
		Model:   layers.ModelConfig{Vocab: 7, Positions: positions, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}}, Layers: 1, Outputs: 3},
		Pooling: layers.LastPooling, Decoder: &layers.RereadConfig{Layers: 2, Start: 5},
	}))(t)
}

// TestRereading compares a classifier with a decoder with an EncoderDecoder that has the same weights and reads the ids
// behind the start as its target, and whose head is the classifier's.
func TestRereading(t *testing.T) {
	p, q := newParams(t), newParams(t)
	s := newRereader(t, p, layers.NoPositions{})
	pair := must.Get(layers.NewEncoderDecoder(q, layers.EncoderDecoderConfig{
		Model:  layers.ModelConfig{Vocab: 7, Positions: layers.NoPositions{}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}}, Layers: 1, Outputs: 3},
		Shared: true, DecoderLayers: 2,
	}))(t)
	for _, w := range q.All() {
		name := w.Name
		switch {
		case name == "embedding.weight":
			name = "encoder.embedding.weight"
		case strings.HasPrefix(name, "decoder.head."):
			name = strings.TrimPrefix(name, "decoder.")
		}
		must.Do(t, tensor.Copy(w.Value, p.Get(name).Value))
	}
	ids := []int{1, 4, 3, 6, 6, 2, 0, 0} // the second text has two
	c := newBench(t)
	want := read(t, c.node(pair.Forward(c.b, c.ints("ids", ids, 2, 4), c.ints("target", []int{5, 1, 4, 3, 5, 6, 2, 0}, 2, 4), layers.Mask{KeyLengths: c.lengths(4, 2)})))[0] // (2, 4, 3)
	c = newBench(t)
	got := read(t, c.node(s.Forward(c.b, c.ints("ids", ids, 2, 4), layers.Mask{KeyLengths: c.lengths(4, 2)})))[0]
	near(t, "logits", got, append(slices.Clone(want[9:12]), want[15:18]...), 1e-14)
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
		{"Decoder without ids", make(func(c *config) { c.Model.Vocab, c.Decoder = 0, &layers.RereadConfig{} }), []string{"sequence classifier s", "Vocab", "got 0 and 0"}},
		{"Decoder with segments", make(func(c *config) { c.Model.Segments, c.Decoder = 2, &layers.RereadConfig{} }), []string{"no Segments", "got 7 and 2"}},
		{"decoder's layers", make(func(c *config) { c.Decoder = &layers.RereadConfig{Layers: -1} }), []string{"decoder s.decoder", "Layers", "-1"}},
		{"embeddings", err(newRereader(t, c.p.Scope("d"), layers.NoPositions{}).Forward(c.b, c.in("x", 2, 2, 4), layers.Mask{})), []string{"d.decoder", "needs ids", "float64"}},
		{"Vocab", make(func(c *config) { c.Model.Vocab = -1 }), []string{"encoder s.encoder", "Vocab"}},
		{"too long", err(s.Forward(c.b, c.ints("long", []int{1, 2, 3, 4, 5, 6}, 1, 6), layers.Mask{})), []string{"s.encoder.positions", "at most 5"}},
		{"lengths' shape", err(s.Forward(c.b, ids, layers.Mask{KeyLengths: c.ints("three", []int{1, 1, 1}, 3)})), []string{"Mask.KeyLengths", "(2)", "(3)"}},
	})
}
