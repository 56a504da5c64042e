package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestALiBiSlopes compares slopes with the numbers in the paper. If the number of heads isn't a power of two, the
// expected slopes are the output of the paper's code.
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
		near(t, "slopes", must.Get(layers.ALiBi{}.Slopes(heads))(t), want, 1e-15)
	}
}

// alibiBias computes the bias, of shape (H, T, S), by the paper's formula. The argument offset is the position of the
// first query.
func alibiBias(t testing.TB, heads, offset, queries, keys int) *tensor.Dense {
	slopes := must.Get(layers.ALiBi{}.Slopes(heads))(t)
	var bias []float64
	for _, m := range slopes {
		for i := range queries {
			for j := range keys {
				bias = append(bias, -m*math.Abs(float64(i+offset-j)))
			}
		}
	}
	return dense(bias, heads, queries, keys)
}

// TestALiBiSlopesOfTooManyHeads asks for more slopes than Slopes allows.
func TestALiBiSlopesOfTooManyHeads(t *testing.T) {
	for _, heads := range []int{1<<20 + 1, math.MaxInt32, math.MaxInt} {
		must.Refuse(layers.ALiBi{}.Slopes(heads))(t, "alibi", fmt.Sprint(heads), "of memory", "at most 1048576 heads")
	}
	if slopes := must.Get(layers.ALiBi{}.Slopes(1 << 20))(t); len(slopes) != 1<<20 {
		t.Errorf("got %d slopes, want %d", len(slopes), 1<<20)
	}
}

func TestALiBiAsBiasAndAsSlopes(t *testing.T) {
	for _, composed := range []bool{false, true} {
		p := newParams(t)
		config := layers.ModelConfig{Vocab: 5, Dim: 6, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 3}}, Layers: 2, Positions: layers.ALiBi{}}
		model := must.Get(layers.NewEncoder(p, config))(t)
		config.Positions = layers.NoPositions{}
		plain := must.Get(layers.NewEncoder(newParams(t), config))(t) // with the same seed
		run := func(m *layers.Encoder, bias bool) []float64 {
			g := G.NewGraph()
			var mask layers.Mask
			if bias {
				mask.Bias = input(g, "bias", alibiBias(t, 3, 0, 4, 4))
			}
			return read(t, must.Get(m.Forward(&layers.Build{Composed: composed}, input(g, "ids", dense([]int{4, 1, 1, 0}, 4)), mask))(t))[0]
		}
		near(t, fmt.Sprintf("composed %t", composed), run(model, false), run(plain, true), 1e-13)
		if _, err := model.Forward(&layers.Build{}, input(G.NewGraph(), "ids", dense([]int{1}, 1)), layers.Mask{Slopes: []float64{1, 1, 1}}); err == nil {
			t.Error("no error although both the model and the mask set slopes")
		}
	}
}
