package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// TestALiBiSlopes holds slopes to those that the paper names, and to what its code prints for other numbers of heads.
func TestALiBiSlopes(t *testing.T) {
	root := math.Sqrt(0.5)
	for heads, want := range map[int][]float64{
		1:  {1. / 256},
		2:  {1. / 16, 1. / 256},
		3:  {1. / 16, 1. / 256, 1. / 4},
		4:  {1. / 4, 1. / 16, 1. / 64, 1. / 256},
		6:  {1. / 4, 1. / 16, 1. / 64, 1. / 256, 1. / 2, 1. / 8},
		8:  {1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256},
		12: {1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256, root, root / 2, root / 4, root / 8},
	} {
		near(t, "slopes", must[[]float64](t)(layers.ALiBi{Heads: heads}.Slopes()), want, 1e-15)
	}
}

// TestALiBiBias looks at single elements of the bias, and at its nodes.
func TestALiBiBias(t *testing.T) {
	g := G.NewGraph()
	bias := func(a layers.ALiBi, dt tensor.Dtype, queries, keys int) *G.Node {
		return node(t)(a.Bias(g, dt, queries, keys))
	}
	n := bias(layers.ALiBi{Heads: 2}, tensor.Float64, 2, 3)
	sameBits(t, "bias", floats(t, n.Value()), []float64{
		0, -1. / 16, -2. / 16, -1. / 16, 0, -1. / 16,
		0, -1. / 256, -2. / 256, -1. / 256, 0, -1. / 256,
	})
	if !n.Shape().Eq(tensor.Shape{2, 2, 3}) {
		t.Errorf("the bias has shape %v, want (2, 2, 3)", n.Shape())
	}
	sameBits(t, "bias after 2 keys", floats(t, bias(layers.ALiBi{Heads: 1, Offset: 2}, tensor.Float32, 1, 3).Value()), []float64{-2. / 256, -1. / 256, 0})

	if again := bias(layers.ALiBi{Heads: 2}, tensor.Float64, 2, 3); again != n {
		t.Error("asked for the same twice, there are two nodes")
	}
	nodes := map[*G.Node]bool{n: true}
	others := G.Nodes{
		bias(layers.ALiBi{Heads: 2, Offset: 1}, tensor.Float64, 2, 3),
		bias(layers.ALiBi{Heads: 3}, tensor.Float64, 2, 3),
		bias(layers.ALiBi{Heads: 2}, tensor.Float64, 3, 2),
		bias(layers.ALiBi{Heads: 2}, tensor.Float32, 2, 3),
		bias(layers.ALiBi{Heads: 2}, tensor.Float64, 70, 70),
		bias(layers.ALiBi{Heads: 2, Offset: 1}, tensor.Float64, 70, 70),
	}
	for _, other := range others {
		if nodes[other] {
			t.Errorf("%v is another bias's node", other)
		}
		nodes[other] = true
	}

	input(g, "alibi(1, 2, 2) from 0, float64", random(1, 1, 2, 2))
	_, err := layers.ALiBi{Heads: 1}.Bias(g, tensor.Float64, 2, 2)
	wantError(t, err, "alibi", "another node named", "(1, 2, 2)")
}

// TestALiBiStepByStep decodes with cached keys: one query at a time, by its offset, gives the rows of the whole.
func TestALiBiStepByStep(t *testing.T) {
	const length, heads = 5, 3
	g := G.NewGraph()
	whole := floats(t, node(t)(layers.ALiBi{Heads: heads}.Bias(g, tensor.Float64, length, length)).Value())
	for i := range length {
		step := floats(t, node(t)(layers.ALiBi{Heads: heads, Offset: i}.Bias(g, tensor.Float64, 1, i+1)).Value())
		for h := range heads {
			sameBits(t, "step", step[h*(i+1):][:i+1], whole[(h*length+i)*length:][:i+1])
		}
	}
}

// TestALiBiAsBiasAndAsSlopes has one meaning both ways, in a model too.
func TestALiBiAsBiasAndAsSlopes(t *testing.T) {
	for _, composed := range []bool{false, true} {
		p := newParams(t)
		config := layers.ModelConfig{Vocab: 5, Dim: 6, Heads: 3, Layers: 2, ALiBi: true}
		model := must[*layers.Encoder](t)(layers.NewEncoder(p, config))
		config.ALiBi, config.NoPositions = false, true
		plain := must[*layers.Encoder](t)(layers.NewEncoder(newParams(t), config)) // of the same seed
		run := func(m *layers.Encoder, bias bool) []float64 {
			g := G.NewGraph()
			var mask layers.Mask
			if bias {
				mask.Bias = node(t)(layers.ALiBi{Heads: 3}.Bias(g, tensor.Float64, 4, 4))
			}
			return read(t, node(t)(m.Forward(&layers.Build{Composed: composed}, input(g, "ids", dense([]int{4, 1, 1, 0}, 4)), mask)))[0]
		}
		near(t, fmt.Sprintf("composed %t", composed), run(model, false), run(plain, true), 1e-13)
		if _, err := model.Forward(&layers.Build{}, input(G.NewGraph(), "ids", dense([]int{1}, 1)), layers.Mask{Slopes: []float64{1, 1, 1}}); err == nil {
			t.Error("slopes of the model and of the mask: no error")
		}
	}
}
