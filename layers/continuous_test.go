package layers_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// continuous configures a model without a vocabulary: its inputs are embeddings.
func continuous(positions layers.PositionsConfig) layers.ModelConfig {
	return layers.ModelConfig{
		Dim: 8, Layers: 1, Outputs: 3, Positions: positions,
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}},
	}
}

// TestGradientsOfEmbeddings checks gradients with respect to embeddings, which replace ids as the models' input.
func TestGradientsOfEmbeddings(t *testing.T) {
	var cases []gradientCase
	for name, positions := range schemes() {
		config := continuous(positions)
		config.Dim, config.Block.Attention.Heads = 4, 1 // one head, because rotary scalings need two pairs
		add := func(model string, shape []int, build func(c *bench, x *G.Node) (*G.Node, error)) {
			cases = append(cases, gradientCase{fmt.Sprintf("%s of %v, %s", model, tensor.Shape(shape), name), func(c *bench) *G.Node {
				return c.node(build(c, c.in("x", shape...)))
			}})
		}
		add("encoder", []int{3, 4}, func(c *bench, x *G.Node) (*G.Node, error) {
			return must.Get(layers.NewEncoder(c.p, config))(c).Forward(c.b, x, layers.Mask{})
		})
		add("decoder", []int{2, 3, 4}, func(c *bench, x *G.Node) (*G.Node, error) {
			return must.Get(layers.NewDecoder(c.p, config))(c).Forward(c.b, x, layers.Mask{})
		})
		add("classifier", []int{2, 3, 4}, func(c *bench, x *G.Node) (*G.Node, error) {
			return must.Get(layers.NewSequenceClassifier(c.p, layers.SequenceClassifierConfig{Model: config}))(c).Forward(c.b, x, layers.Mask{})
		})
	}
	cases = append(cases, gradientCase{"encoder-decoder, from embeddings to tokens", func(c *bench) *G.Node {
		config := layers.EncoderDecoderConfig{Model: continuous(layers.Rotary{}), TargetVocab: 5}
		config.Model.Outputs, config.Model.Tied, config.Model.EmbeddingScale = 0, true, 2
		m := must.Get(layers.NewEncoderDecoder(c.p, config))(c)
		return c.node(m.Forward(c.b, c.in("x", 2, 3, 8), c.ints("ids", []int{4, 0, 1, 1}, 2, 2), layers.Mask{KeyLengths: c.ints("lengths", []int{2, 3}, 2)}))
	}})
	checkGradients(t, cases)
}

// TestEmbeddingsInPlaceOfIDs gives a model rows of its embedding table: the result is the same as with ids.
func TestEmbeddingsInPlaceOfIDs(t *testing.T) {
	for name, positions := range schemes() {
		config := continuous(positions)
		config.Vocab = 6
		model := must.Get(layers.NewDecoder(newParams(t), config))(t)
		ids := dense([]int{5, 1, 0, 2, 2, 3}, 2, 3)
		run := func(embed func(b *layers.Build, ids *G.Node) *G.Node) []float64 {
			b := &layers.Build{}
			return read(t, must.Get(model.Forward(b, embed(b, input(G.NewGraph(), "ids", ids)), layers.Mask{}))(t))[0]
		}
		want := run(func(_ *layers.Build, ids *G.Node) *G.Node { return ids })
		got := run(func(b *layers.Build, ids *G.Node) *G.Node { return must.Get(model.Embedding.Forward(b, ids))(t) })
		sameBits(t, name, got, want)
	}
}

// TestCachedEmbeddingsAreTheFullPass continues a series step by step. The outputs equal the outputs of the full pass.
func TestCachedEmbeddingsAreTheFullPass(t *testing.T) {
	const length = 5
	for name, positions := range schemes() {
		model := must.Get(layers.NewDecoder(newParams(t), continuous(positions)))(t)
		x := random(3, 1, length, 8)
		want := read(t, must.Get(model.Forward(&layers.Build{}, input(G.NewGraph(), "x", x), layers.Mask{}))(t))[0]
		cache := must.Get(layers.NewCache(1, 7))(t)
		for i := range length {
			step := dense(x.Float64s()[i*8:][:8], 1, 1, 8)
			out := must.Get(model.Forward(&layers.Build{Cache: cache}, input(G.NewGraph(), "x", step), layers.Mask{}))(t)
			must.Do(t, cache.Extend(1))
			near(t, fmt.Sprintf("%s, step %d", name, i), read(t, out)[0], want[i*3:][:3], 1e-12)
			cache.Commit()
		}
	}
}

func TestInputErrors(t *testing.T) {
	c := newBench(t)
	without := must.Get(layers.NewEncoder(c.p.Scope("without"), continuous(layers.NoPositions{})))(t)
	config := continuous(layers.NoPositions{})
	config.Vocab = 6
	with := must.Get(layers.NewDecoder(c.p.Scope("with"), config))(t)
	ids := c.ints("ids", []int{1, 2}, 1, 2)
	either := "ids, int of shape (B, T) or (T), or embeddings, float64 of shape (B, T, 8) or (T, 8)"
	for name, tc := range map[string]struct {
		build func() (*G.Node, error)
		want  []string
	}{
		"ids without a vocabulary": {func() (*G.Node, error) { return without.Forward(c.b, ids, layers.Mask{}) }, []string{"encoder without", "must be embeddings, float64", "got int of shape (1, 2)"}},
		"width":                    {func() (*G.Node, error) { return with.Forward(c.b, c.in("w", 2, 5), layers.Mask{}) }, []string{"decoder with", either, "(2, 5)"}},
		"rank":                     {func() (*G.Node, error) { return with.Forward(c.b, c.in("r", 1, 1, 2, 8), layers.Mask{}) }, []string{"decoder with", either, "(1, 1, 2, 8)"}},
		"vector":                   {func() (*G.Node, error) { return with.Forward(c.b, c.in("v", 4), layers.Mask{}) }, []string{either, "(4)"}},
		"dtype": {func() (*G.Node, error) {
			return with.Forward(c.b, input(c.g, "f32", as(tensor.Float32, random(1, 3, 8))), layers.Mask{})
		}, []string{either, "float32"}},
		"rank of ids": {func() (*G.Node, error) {
			return with.Forward(c.b, c.ints("three", make([]int, 8), 1, 2, 4), layers.Mask{})
		}, []string{either, "int of shape (1, 2, 4)"}},
	} {
		t.Run(name, func(t *testing.T) {
			must.Refuse(tc.build())(t, tc.want...)
		})
	}
	for name, change := range map[string]func(*layers.ModelConfig){
		"Tied":           func(c *layers.ModelConfig) { c.Outputs, c.Tied = 0, true },
		"EmbeddingScale": func(c *layers.ModelConfig) { c.EmbeddingScale = 2 },
	} {
		config := continuous(layers.NoPositions{})
		change(&config)
		must.Refuse(layers.NewEncoder(newParams(t), config))(t, "encoder", name, "need a Vocab")
	}
}
