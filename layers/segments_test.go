package layers_test

import (
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// A second model has no segments: its token vectors include the vectors of the segments. Both models give the same
// result.
func TestSegments(t *testing.T) {
	config := layers.ModelConfig{Vocab: 3, Segments: 2, Dim: 4, Layers: 1, Positions: layers.Rotary{}, Outputs: 2}
	p := must.Get(layers.NewParams(tensor.Float64, 1))(t)
	model := must.Get(layers.NewEncoder(p, config))(t)
	config.Vocab, config.Segments = 6, 0 // id 3s + i is token i in segment s
	q := must.Get(layers.NewParams(tensor.Float64, 1))(t)
	other := must.Get(layers.NewEncoder(q, config))(t)
	for _, param := range q.All() {
		if param.Name != "embedding.weight" {
			copy(param.Value.Float64s(), p.Get(param.Name).Value.Float64s())
		}
	}
	for i, x := range p.Get("embedding.weight").Value.Float64s() {
		for s := range 2 {
			q.Get("embedding.weight").Value.Float64s()[12*s+i] = x + p.Get("segments.weight").Value.Float64s()[4*s+i%4]
		}
	}
	output := func(e *layers.Encoder, ids, segments []int) []float64 {
		f := must.Get(layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
			inputs = G.Nodes{G.NewMatrix(g, tensor.Int, G.WithShape(1, 4), G.WithName("ids"))}
			if segments != nil {
				b.Segments = G.NewMatrix(g, tensor.Int, G.WithShape(1, 4), G.WithName("segments"))
				inputs = append(inputs, b.Segments)
			}
			x, err := e.Forward(b, inputs[0], layers.Mask{})
			return inputs, G.Nodes{x}, err
		}))(t)
		values := []*tensor.Dense{dense(ids, 1, 4)}
		if segments != nil {
			values = append(values, dense(segments, 1, 4))
		}
		return must.Get(f.Call(values...))(t)[0].Float64s()
	}
	got, want := output(model, []int{0, 2, 1, 2}, []int{0, 0, 1, 1}), output(other, []int{0, 2, 4, 5}, nil)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	without, zeros := output(model, []int{0, 2, 1, 2}, nil), output(model, []int{0, 2, 1, 2}, []int{0, 0, 0, 0})
	if !slices.Equal(without, zeros) {
		t.Errorf("without segments: got %v, want segment 0 for all tokens, %v", without, zeros)
	}
	if swapped := output(model, []int{0, 2, 1, 2}, []int{0, 1, 1, 1}); slices.Equal(got, swapped) {
		t.Errorf("other segments give the same output, %v", got)
	}
}

func TestSegmentsErrors(t *testing.T) {
	config := layers.ModelConfig{Vocab: 3, Segments: 2, Dim: 4, Layers: 1, Positions: layers.Rotary{}}
	for name, build := range map[string]func(g *G.ExprGraph, b *layers.Build, c *layers.ModelConfig){
		"but the model has none": func(g *G.ExprGraph, b *layers.Build, c *layers.ModelConfig) {
			b.Segments, c.Segments = G.NewMatrix(g, tensor.Int, G.WithShape(1, 4)), 0
		},
		"must have the shape of the tokens, (1, 4), got (1, 3)": func(g *G.ExprGraph, b *layers.Build, _ *layers.ModelConfig) {
			b.Segments = G.NewMatrix(g, tensor.Int, G.WithShape(1, 3))
		},
		"the ids must be int": func(g *G.ExprGraph, b *layers.Build, _ *layers.ModelConfig) {
			b.Segments = G.NewMatrix(g, tensor.Float64, G.WithShape(1, 4))
		},
	} {
		g, b, c := G.NewGraph(), &layers.Build{}, config
		build(g, b, &c)
		e := must.Get(layers.NewEncoder(must.Get(layers.NewParams(tensor.Float64, 1))(t), c))(t)
		must.Refuse(e.Forward(b, G.NewMatrix(g, tensor.Int, G.WithShape(1, 4)), layers.Mask{}))(t, name)
	}
	config.Segments = -1
	must.Refuse(layers.NewEncoder(must.Get(layers.NewParams(tensor.Float64, 1))(t), config))(t, "Segments can't be negative, got -1")
	config.Segments = 2
	must.Refuse(layers.NewEncoderDecoder(must.Get(layers.NewParams(tensor.Float64, 1))(t), layers.EncoderDecoderConfig{Model: config}))(t, "Segments must be 0")
}
