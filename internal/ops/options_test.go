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

// TestGradientsOfOptions checks the gradients of the ops that attention's options use.
func TestGradientsOfOptions(t *testing.T) {
	for name, build := range map[string]func(g *graph) (*G.Node, G.Nodes, error){
		"softcap": func(g *graph) (*G.Node, G.Nodes, error) {
			x := g.in(3, 4)
			n, err := ops.Softcap(&ops.Env{}, x, 1.3)
			return n, G.Nodes{x}, err
		},
		"repeat heads": func(g *graph) (*G.Node, G.Nodes, error) {
			x := g.in(2, 2, 3, 2)
			n, err := ops.RepeatHeads(&ops.Env{}, x, 3)
			return n, G.Nodes{x}, err
		},
		"append (P, K)": func(g *graph) (*G.Node, G.Nodes, error) {
			past, x := g.in(2, 3), g.in(4, 3)
			n, err := ops.Append(&ops.Env{}, past, x)
			return n, G.Nodes{past, x}, err
		},
		"append (B, H, P, K)": func(g *graph) (*G.Node, G.Nodes, error) {
			past, x := g.in(2, 2, 2, 3), g.in(2, 2, 1, 3)
			n, err := ops.Append(&ops.Env{}, past, x)
			return n, G.Nodes{past, x}, err
		},
		"add waves": func(g *graph) (*G.Node, G.Nodes, error) {
			x := g.in(2, 3, 4)
			n, err := ops.AddWaves(&ops.Env{}, x, g.ints(2, 3), 100)
			return n, G.Nodes{x}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t)
			n, wrt, err := build(g)
			if err != nil {
				t.Fatal(err)
			}
			cost := G.Must(G.Add(g.node(gradcheck.Project(n, 1)), g.node(gradcheck.Project(n, 2))))
			if err := gradcheck.Expr(cost, wrt...); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMaskScores checks the masked scores, and the gradients of the scores and the bias.
func TestMaskScores(t *testing.T) {
	g := newGraph(t)
	scores, bias := g.in(2, 3), g.in(3)
	masked := g.node(ops.MaskScores(&ops.Env{}, "", scores, ops.Mask{Causal: true, Bias: bias}))
	sum := g.node(ops.Sum(&ops.Env{}, masked))
	grads, err := G.Grad(sum, scores, bias)
	if err != nil {
		t.Fatal(err)
	}
	got := g.read(masked, grads[0], grads[1])
	s, b := scores.Value().Data().([]float64), bias.Value().Data().([]float64)
	inf := math.Inf(-1)
	for i, want := range []float64{s[0] + b[0], inf, inf, s[3] + b[0], s[4] + b[1], inf} {
		if got[0][i] != want {
			t.Errorf("masked score %d is %v, want %v", i, got[0][i], want)
		}
	}
	for i, want := range []float64{1, 0, 0, 1, 1, 0} {
		if got[1][i] != want {
			t.Errorf("the gradient of score %d is %v, want %v", i, got[1][i], want)
		}
	}
	for i, want := range []float64{2, 1, 0} {
		if got[2][i] != want {
			t.Errorf("the gradient of bias %d is %v, want %v", i, got[2][i], want)
		}
	}
}

// TestOptionsTellNodesApart builds ops with different attributes on the same input, like TestAttributesTellNodesApart.
func TestOptionsTellNodesApart(t *testing.T) {
	g := newGraph(t)
	x, side := g.in(2, 4, 3, 4), g.in(2, 3, 8)
	nodes := map[*G.Node]string{}
	add := func(name string, n *G.Node, err error) {
		n = g.node(n, err)
		if other, ok := nodes[n]; ok {
			t.Errorf("%s and %s are the same node", name, other)
		}
		nodes[n] = name
	}
	ints := g.ints(2)
	masks := []ops.Mask{
		{}, {Causal: true}, {Causal: true, Offset: 1}, {Causal: true, Offset: -1}, {Causal: true, Offsets: ints}, {Causal: true, KeyLengths: ints},
		{Window: &ops.Window{Left: 1, Right: 1}}, {Window: &ops.Window{Left: 1, Right: -1}}, {Window: &ops.Window{Left: 11}}, {Slopes: []float64{1, 1, 1, 1}}, {Slopes: []float64{1, 1, 1, 1 + 1e-15}},
	}
	for i, m := range masks {
		n, err := ops.Softmax(&ops.Env{}, "", x, m)
		add(fmt.Sprint("softmax ", i), n, err)
		n, err = ops.MaskScores(&ops.Env{}, "", x, m)
		add(fmt.Sprint("mask scores ", i), n, err)
		n, err = ops.Attention(&ops.Env{}, x, x, x, ops.AttentionConfig{Mask: m})
		add(fmt.Sprint("attention ", i), n, err)
	}
	for i, c := range []ops.AttentionConfig{
		{Heads: 2}, {Heads: 4}, {Heads: 4, Softcap: 1}, {Heads: 4, Softcap: 2}, {Heads: 4, Scale: 1},
		{Heads: 4, Dropout: 0.1}, {Heads: 4, Dropout: 0.2},
	} {
		n, err := ops.Attention(&ops.Env{Training: true, Seed: 1}, side, side, side, c)
		add(fmt.Sprint("attention side by side ", i), n, err)
	}
	for i, seed := range []uint64{0, 2} {
		e := &ops.Env{Training: true, Seed: seed}
		for j := range 2 { // the first and the second dropout of a graph
			n, err := ops.Attention(e, side, side, side, ops.AttentionConfig{Heads: 4, Dropout: 0.1})
			add(fmt.Sprint("attention with dropout ", i, j), n, err)
		}
	}
	for _, c := range []float64{1, 2} {
		n, err := ops.Softcap(&ops.Env{}, x, c)
		add(fmt.Sprint("softcap ", c), n, err)
	}
	for _, base := range []float64{100, 1000} {
		n, err := ops.AddWaves(&ops.Env{}, side, g.ints(2, 3), base)
		add(fmt.Sprint("waves ", base), n, err)
	}
	for i, n := range []int{1, 2} {
		n, err := ops.AddInt(&ops.Env{}, ints, n)
		add(fmt.Sprint("add int ", i), n, err)
	}
}

// TestPositionIDs passes the positions of first elements or of all elements, with and without counts.
func TestPositionIDs(t *testing.T) {
	ints := func(g *graph, x []int, shape ...int) *G.Node {
		return g.input(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x)))
	}
	for name, tc := range map[string]struct {
		positions, counts []int
		shape             []int
		like              tensor.Shape
		want              string
	}{
		"first":                   {[]int{3, -1}, nil, []int{2}, tensor.Shape{2, 3}, "[3 4 5 -1 0 1]"},
		"all":                     {[]int{5, 5, 0, 1}, nil, []int{2, 2}, tensor.Shape{2, 2}, "[5 5 0 1]"},
		"no batch axis":           {[]int{4}, nil, []int{1}, tensor.Shape{2}, "[4 5]"},
		"all, no batch":           {[]int{4, 9}, nil, []int{1, 2}, tensor.Shape{2}, "[4 9]"},
		"with counts":             {[]int{3, 0, 4}, []int{2, 0, 0}, []int{3}, tensor.Shape{3, 3}, "[3 4 4 0 0 0 3 3 3]"},
		"counts above the length": {[]int{0}, []int{3}, []int{1}, tensor.Shape{1, 3}, "[0 1 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t)
			var counts *G.Node
			if tc.counts != nil {
				counts = ints(g, tc.counts, len(tc.counts))
			}
			n := g.node(ops.PositionIDs(&ops.Env{}, ints(g, tc.positions, tc.shape...), counts, tc.like, "test", 0))
			var v G.Value
			G.Read(n, &v)
			vm := G.NewTapeMachine(g.ExprGraph)
			defer vm.Close()
			if err := vm.RunAll(); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(v.Data()); got != tc.want || !v.Shape().Eq(tc.like) {
				t.Errorf("got %v with shape %v, want %v with shape %v", got, v.Shape(), tc.want, tc.like)
			}
		})
	}
}

// TestOptionErrors passes invalid arguments. Each error must name the op.
func TestOptionErrors(t *testing.T) {
	g := newGraph(t)
	x := g.in(2, 4, 3, 3)
	softmax := func(m ops.Mask) func() (*G.Node, error) {
		return func() (*G.Node, error) { return ops.Softmax(&ops.Env{}, "", x, m) }
	}
	store := ops.NewStore("keys", tensor.Float64, 2, 3, 4)
	for name, tc := range map[string]struct {
		make func() (*G.Node, error)
		want string
	}{
		"softcap":          {func() (*G.Node, error) { return ops.Softcap(&ops.Env{}, x, -1) }, "softcap: the cap must be above 0 and finite, got -1"},
		"repeat":           {func() (*G.Node, error) { return ops.RepeatHeads(&ops.Env{}, g.in(2, 3), 2) }, "(B, G, S, K)"},
		"append widths":    {func() (*G.Node, error) { return ops.Append(&ops.Env{}, g.in(2, 3), g.in(2, 4)) }, "append: the past (…, P, K)"},
		"append ranks":     {func() (*G.Node, error) { return ops.Append(&ops.Env{}, g.in(2, 3), g.in(1, 2, 3)) }, "got (2, 3) and (1, 2, 3)"},
		"append dtypes":    {func() (*G.Node, error) { return ops.Append(&ops.Env{}, g.in(2, 3), g.in32(2, 3)) }, "float64, got float32"},
		"two offsets":      {softmax(ops.Mask{Offset: 1, Offsets: g.ints(2)}), "Mask.Offset must be 0"},
		"offsets' dtype":   {softmax(ops.Mask{Offsets: g.in(2)}), "Mask.Offsets must be int, got float64"},
		"offsets' shape":   {softmax(ops.Mask{Offsets: g.ints(3)}), "Mask.Offsets must have shape (2), got (3)"},
		"window":           {softmax(ops.Mask{Window: &ops.Window{Left: -2}}), "got {Left:-2 Right:0}"},
		"slopes":           {softmax(ops.Mask{Slopes: []float64{1}}), "each of the 4 heads, got 1"},
		"slope":            {softmax(ops.Mask{Slopes: []float64{1, math.NaN(), 1, 1}}), "and 1e+15, got NaN for head 1"},
		"mask scores rank": {func() (*G.Node, error) { return ops.MaskScores(&ops.Env{}, "", g.in(3), ops.Mask{}) }, "got (3)"},
		"groups": {func() (*G.Node, error) {
			return ops.Attention(&ops.Env{}, x, g.in(2, 3, 3, 3), g.in(2, 3, 3, 3), ops.AttentionConfig{})
		}, "the same number of heads"},
		"groups of sides": {func() (*G.Node, error) {
			return ops.Attention(&ops.Env{}, g.in(2, 3, 8), g.in(2, 3, 6), g.in(2, 3, 6), ops.AttentionConfig{Heads: 4, KeyValueHeads: 3})
		}, "got 4 and 3"},
		"store width":  {func() (*G.Node, error) { return store.Append(&ops.Env{}, g.in(2, 1, 3), g.ints(2), g.ints(2)) }, "store of keys: the input must be float64 of shape (2, T, 4)"},
		"store dtype":  {func() (*G.Node, error) { return store.Append(&ops.Env{}, g.in32(2, 1, 4), g.ints(2), g.ints(2)) }, "got float32"},
		"store length": {func() (*G.Node, error) { return store.Append(&ops.Env{}, g.in(2, 4, 4), g.ints(2), g.ints(2)) }, "T at most 3, got float64 of shape (2, 4, 4)"},
		"keep":         {func() (*G.Node, error) { return ops.NewMemory("keys").Keep(&ops.Env{}, g.in(2)) }, "memory of keys: the input must have shape (B, T, D)"},
		"read nothing": {func() (*G.Node, error) { return ops.NewMemory("keys").Read(&ops.Env{}, x, tensor.Float64, 3) }, "memory of keys: no graph computes it yet"},
		"add int":      {func() (*G.Node, error) { return ops.AddInt(&ops.Env{}, x, 1) }, "int of shape (B), got float64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.make()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), ": ") {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
