package ops_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

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
			grads, err := G.Grad(g.node(gradcheck.Project(out, 1)), append(inputs, bias)...)
			if err != nil {
				t.Fatal(err)
			}
			return g.read(append(G.Nodes{out}, grads...)...)
		}
		side, apart := run(true), run(false)
		for i := range apart {
			for j := range apart[i] {
				if math.Abs(side[i][j]-apart[i][j]) > 1e-14 {
					t.Fatalf("batch %t: element %d of output %d is %v with heads side by side, and %v with heads on their own axis", batch, j, i, side[i][j], apart[i][j])
				}
			}
		}
	}
}

// TestEqualAttentionsAreOne builds the same attention twice in one graph and checks the gradients. Then it builds
// attention with different attributes: no two may be the same node.
func TestEqualAttentionsAreOne(t *testing.T) {
	g := newGraph(t)
	q, k, v, bias := g.in(1, 3, 4), g.in(1, 5, 4), g.in(1, 5, 4), g.in(5)
	a, b := g.node(ops.Attention(&ops.Env{}, q, k, v, ops.AttentionConfig{Heads: 2, Scale: 1, Mask: ops.Mask{Bias: bias}})), g.node(ops.Attention(&ops.Env{}, q, k, v, ops.AttentionConfig{Heads: 2, Scale: 1, Mask: ops.Mask{Bias: bias}}))
	cost := G.Must(G.Add(g.node(gradcheck.Project(a, 1)), g.node(gradcheck.Project(b, 2))))
	if err := gradcheck.Expr(cost, q, k, v, bias); err != nil {
		t.Error(err)
	}
	nodes := map[*G.Node]string{}
	for _, heads := range []int{0, 1, 2} {
		for _, scale := range []float64{1, 1.0000001} {
			for i, m := range []ops.Mask{{}, {Causal: true}, {Bias: bias}, {KeyLengths: g.ints(1)}} {
				name := fmt.Sprint(heads, scale, i)
				n := g.node(ops.Attention(&ops.Env{}, q, k, v, ops.AttentionConfig{Heads: heads, Scale: scale, Mask: m}))
				if other, ok := nodes[n]; ok {
					t.Errorf("%s and %s are the same node", name, other)
				}
				nodes[n] = name
			}
		}
	}
}

// TestAttentionErrors passes invalid arguments to Attention.
func TestAttentionErrors(t *testing.T) {
	g := newGraph(t)
	x := g.in(2, 3, 4)
	for name, tc := range map[string]struct {
		q, k, v *G.Node
		heads   int
		mask    ops.Mask
		want    string
	}{
		"dtypes":        {x, x, g.in32(2, 3, 4), 0, ops.Mask{}, "float64, got float32"},
		"rank":          {g.in(4), g.in(4), g.in(4), 0, ops.Mask{}, "got (4), (4) and (4)"},
		"side by side":  {g.in(1, 2, 3, 4), g.in(1, 2, 3, 4), g.in(1, 2, 3, 4), 2, ops.Mask{}, "(1, 2, 3, 4)"},
		"batches":       {x, g.in(1, 3, 4), g.in(1, 3, 4), 0, ops.Mask{}, "same batch"},
		"widths":        {x, g.in(2, 3, 5), x, 0, ops.Mask{}, "agree in K and S"},
		"heads":         {x, x, x, 3, ops.Mask{}, "multiple of H = 3"},
		"heads below 0": {x, x, x, -1, ops.Mask{}, "got -1"},
		"allow":         {x, x, x, 2, ops.Mask{Allow: x}, "true means attend"},
		"lengths":       {x, x, x, 2, ops.Mask{KeyLengths: g.ints(3)}, "(2), got (3)"},
		"bias":          {x, x, x, 2, ops.Mask{Bias: g.in(3, 3, 3)}, "(2, 2, 3, 3), got (3, 3, 3)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ops.Attention(&ops.Env{}, tc.q, tc.k, tc.v, ops.AttentionConfig{Heads: tc.heads, Scale: 1, Mask: tc.mask})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "attention: ") {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
