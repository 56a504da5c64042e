package layers_test

import (
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestCoresChangeNoBit trains a block with dropout on different numbers of cores. The block is so large that its ops
// use several cores.
func TestCoresChangeNoBit(t *testing.T) {
	run := func(cores int, adapted bool) [][]float64 {
		p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
		block := must.Get(layers.NewEncoderBlock(p, 48, layers.BlockConfig{
			Attention:   layers.AttentionConfig{Heads: 3, Dropout: 0.1},
			FeedForward: layers.FeedForwardConfig{Hidden: 200, Activation: layers.SiLU, Gated: true},
			Dropout:     0.1,
		}))(t)
		b := &layers.Build{Training: true, Seed: 3, Cores: cores}
		if adapted {
			b.Adapter = must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 5, Dropout: 0.1}, 1))(t)
		}
		x := input(G.NewGraph(), "x", as(tensor.Float32, random(1, 6, 150, 48)))
		out := must.Get(block.Forward(b, x, layers.Mask{Causal: true}))(t)
		cost := weigh(t, out, input(x.Graph(), "w", as(tensor.Float32, random(2, 6, 150, 48))))
		return read(t, append(G.Nodes{out}, gradients(t, cost, append(b.Learnables(), x)...)...)...)
	}
	for _, adapted := range []bool{false, true} {
		want := run(1, adapted)
		for _, cores := range []int{2, 3, 7, 0} {
			for i, got := range run(cores, adapted) {
				if !slices.Equal(got, want[i]) {
					t.Errorf("result %d on %d cores differs from the result on one core, with an adapter: %t", i, cores, adapted)
				}
			}
		}
	}
}
