package ops_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
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
		"scale": func(g *graph) (*G.Node, G.Nodes, error) {
			x := g.in(3, 4)
			n, err := ops.Scale(&ops.Env{}, x, -2.5)
			return n, G.Nodes{x}, err
		},
		"add waves": func(g *graph) (*G.Node, G.Nodes, error) {
			x := g.in(2, 3, 4)
			n, err := ops.AddWaves(&ops.Env{}, x, g.ints(2, 3), 100, false)
			return n, G.Nodes{x}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t)
			n, wrt, err := build(g)
			must.Do(t, err)
			cost := G.Must(G.Add(g.node(gradcheck.Project(n, 1)), g.node(gradcheck.Project(n, 2))))
			must.Do(t, gradcheck.Expr(cost, wrt...))
		})
	}
}

// TestMaskScores checks the masked scores, and the gradients of the scores and the bias.
func TestMaskScores(t *testing.T) {
	g := newGraph(t)
	scores, bias := g.in(2, 3), g.in(3)
	masked := g.node(ops.MaskScores(&ops.Env{}, "", scores, ops.Mask{Causal: true, Bias: bias}))
	sum := g.node(ops.Sum(&ops.Env{}, masked))
	grads := must.Get(G.Grad(sum, scores, bias))(t)
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
			must.Do(t, vm.RunAll())
			if got := fmt.Sprint(v.Data()); got != tc.want || !v.Shape().Eq(tc.like) {
				t.Errorf("got %v with shape %v, want %v with shape %v", got, v.Shape(), tc.want, tc.like)
			}
		})
	}
}
