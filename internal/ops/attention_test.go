package ops_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers/gradcheck"
)

// TestAttentionLayouts checks that heads side by side and heads on their own axis give the same values and gradients.
func TestAttentionLayouts(t *testing.T) {
	for _, batch := range []bool{true, false} {
		run := func(side bool) [][]float64 {
			g := newGraph(t)
			bias := g.in(2, 5, 3)
			inputs := G.Nodes{g.in(1, 5, 6), g.in(1, 4, 6), g.in(1, 4, 2)}
			if batch {
				inputs = G.Nodes{g.in(3, 5, 6), g.in(3, 4, 6), g.in(3, 4, 2)}
			} else if side {
				for i, n := range inputs {
					inputs[i] = g.input(tensor.New(tensor.WithShape(n.Shape()[1:]...), tensor.WithBacking(n.Value().Data())))
				}
			}
			m := ops.Mask{Causal: true, Bias: bias}
			var out *G.Node
			if side {
				out = g.node(ops.Attention(&ops.Env{}, inputs[0], inputs[1], inputs[2], ops.AttentionConfig{Heads: 2, Scale: 0.7, Mask: m}))
			} else {
				var split G.Nodes
				for _, n := range inputs {
					split = append(split, g.node(ops.SplitHeads(&ops.Env{}, n, 2)))
				}
				out = g.node(ops.MergeHeads(&ops.Env{}, g.node(ops.Attention(&ops.Env{}, split[0], split[1], split[2], ops.AttentionConfig{Heads: 0, Scale: 0.7, Mask: m})), true))
			}
			grads := must.Get(G.Grad(g.node(gradcheck.Project(out, 1)), append(inputs, bias)...))(t)
			return g.read(append(G.Nodes{out}, grads...)...)
		}
		ops.Near(t, fmt.Sprintf("batch %t, heads side by side", batch), run(true), run(false), 1e-14)
	}
}
