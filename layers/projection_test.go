package layers_test

import (
	"fmt"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// narrow configures a model whose embeddings have the width 3, and whose blocks have the width 4.
func narrow(change func(c *layers.ModelConfig)) layers.ModelConfig {
	c := layers.ModelConfig{
		Vocab: 5, Dim: 4, Layers: 2, Segments: 2, Positions: layers.Learned{MaxLen: 6}, EmbeddingNorm: true, Projection: &layers.ProjectionConfig{Dim: 3},
		Block: layers.BlockConfig{PostNorm: true, Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5, Activation: layers.GELU}},
	}
	if change != nil {
		change(&c)
	}
	return c
}

func TestGradientsOfNarrowEmbeddings(t *testing.T) {
	transform := &layers.TransformConfig{Activation: layers.GELU, Norm: true}
	var cases []gradientCase
	for name, config := range map[string]layers.ModelConfig{
		"states":           narrow(nil),
		"norm after":       narrow(func(c *layers.ModelConfig) { c.Projection.NormAfter, c.Projection.NoBias = true, true }),
		"tied":             narrow(func(c *layers.ModelConfig) { c.Tied, c.TiedBias, c.Transform = true, true, transform }),
		"outputs":          narrow(func(c *layers.ModelConfig) { c.Outputs = 3 }),
		"hidden layer":     narrow(func(c *layers.ModelConfig) { c.Outputs, c.Transform = 3, transform }),
		"shared":           narrow(func(c *layers.ModelConfig) { c.Shared, c.Layers = 1, 3 }),
		"shared in groups": narrow(func(c *layers.ModelConfig) { c.Shared, c.Layers, c.Projection = 2, 4, nil }),
		"disentangled": narrow(func(c *layers.ModelConfig) {
			c.Positions = layers.PositionsList{Schemes: []layers.PositionsConfig{layers.Learned{MaxLen: 6}, layers.Disentangled{MaxDistance: 4}}}
		}),
	} {
		cases = append(cases, gradientCase{name, func(c *bench) *G.Node {
			m := must.Get(layers.NewEncoder(c.p, config))(c)
			c.b.Segments = c.ints("segments", []int{0, 1, 1, 0, 0, 0, 1, 1}, 2, 4)
			return c.node(m.Forward(c.b, c.ints("ids", []int{1, 2, 3, 4, 0, 4, 1, 1}, 2, 4), layers.Mask{KeyLengths: c.lengths(4, 3)}))
		}})
	}
	checkGradients(t, cases)
}

// TestSharedBlocks compares a stack that uses two blocks twice each with a stack of four blocks that have copies of
// their weights. The captured weights of all four uses have names of their own.
func TestSharedBlocks(t *testing.T) {
	states := func(shared int) ([]float64, *layers.Params, []string) {
		p := newParams(t)
		m := must.Get(layers.NewEncoder(p, narrow(func(c *layers.ModelConfig) { c.Layers, c.Shared = 4, shared })))(t)
		for i, q := range p.All() {
			copy(q.Value.Float64s(), random(uint64(100+i), q.Value.Shape()...).Float64s())
		}
		if shared == 0 {
			for i := 3; i >= 0; i-- {
				from, to := fmt.Sprintf("blocks.%d.", i/2), fmt.Sprintf("blocks.%d.", i)
				for _, q := range p.All() {
					if len(q.Name) > len(to) && q.Name[:len(to)] == to {
						copy(q.Value.Float64s(), p.Get(from+q.Name[len(to):]).Value.Float64s())
					}
				}
			}
		}
		b := &layers.Build{CaptureWeights: true}
		out := must.Get(m.Forward(b, input(G.NewGraph(), "ids", dense([]int{1, 2, 3, 4}, 1, 4)), layers.Mask{}))(t)
		var names []string
		for _, w := range b.AttentionWeights() {
			names = append(names, w.Layer)
		}
		return read(t, out)[0], p, names
	}
	got, p, names := states(2)
	want, _, _ := states(0)
	near(t, "states", got, want, 1e-14)
	if p.Get("blocks.1.norm1.weight") == nil || p.Get("blocks.2.norm1.weight") != nil {
		t.Error("there must be the weights of two blocks")
	}
	if want := []string{"blocks.0.attention", "blocks.1.attention", "blocks.2.attention", "blocks.3.attention"}; !slices.Equal(names, want) {
		t.Errorf("captured weights of %q, want %q", names, want)
	}
}

func TestProjectionErrors(t *testing.T) {
	for want, change := range map[string]func(c *layers.ModelConfig){
		"Shared must divide the number of layers, 2, or be 0 for weights of their own, got 3": func(c *layers.ModelConfig) { c.Shared = 3 },
		"or be 0 for weights of their own, got -1":                                            func(c *layers.ModelConfig) { c.Shared = -1 },
		"there can be at most 10000 layers, got 20000":                                        func(c *layers.ModelConfig) { c.Shared, c.Layers = 1, 20000 },
		"Shared and Variants can't be combined":                                               func(c *layers.ModelConfig) { c.Shared, c.Variants = 1, []layers.BlockVariant{{Blocks: []int{0}}} },
		"needs a Transform, which maps states of width 4 to the embeddings' width, 3":         func(c *layers.ModelConfig) { c.Tied = true },
		"Dim must be at least 1, got 0":                                                       func(c *layers.ModelConfig) { c.Projection.Dim = 0 },
	} {
		must.Refuse(layers.NewEncoder(newParams(t), narrow(change)))(t, want)
	}
	m := must.Get(layers.NewEncoder(newParams(t), narrow(nil)))(t)
	must.Refuse(m.Forward(&layers.Build{}, input(G.NewGraph(), "x", random(1, 2, 3, 4)), layers.Mask{}))(t, "(B, T, 3)")
}
