package optim_test

import (
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/optim"
)

// fivefold builds sum((a + b)·c), in which a and b share a gradient node, and returns the values after five steps.
func fivefold(t *testing.T, dual bool, solver G.Solver) [][]float64 {
	t.Helper()
	g := G.NewGraph()
	var wrt G.Nodes
	for i, name := range []string{"a", "b", "c"} {
		v := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{1, 2, 3, float64(i), 5, 6}))
		wrt = append(wrt, G.NewMatrix(g, tensor.Float64, G.WithShape(3, 2), G.WithName(name), G.WithValue(v)))
	}
	cost := G.Must(G.Sum(G.Must(G.HadamardProd(G.Must(G.Add(wrt[0], wrt[1])), wrt[2]))))
	model := optim.Gradients(wrt, must.Get(G.Grad(cost, wrt...))(t))
	var opts []G.VMOpt
	if dual {
		model = G.NodesToValueGrads(wrt)
		opts = append(opts, G.BindDualValues(wrt...))
	}
	vm := G.NewTapeMachine(g, opts...)
	defer vm.Close()
	for range 5 {
		must.Do(t, vm.RunAll())
		must.Do(t, solver.Step(model))
		vm.Reset()
	}
	var out [][]float64
	for _, n := range wrt {
		out = append(out, n.Value().Data().([]float64))
	}
	return out
}

// TestGradients checks that steps with gradient nodes and steps with dual values give the same weights, for solvers of
// Heed and Gorgonia. Two parameters share a gradient node.
func TestGradients(t *testing.T) {
	for name, solver := range map[string]func() G.Solver{
		"AdamW":   func() G.Solver { return optim.NewAdamW(0.1) },
		"Adam":    func() G.Solver { return G.NewAdamSolver(G.WithLearnRate(0.1)) },
		"vanilla": func() G.Solver { return G.NewVanillaSolver(G.WithLearnRate(0.1)) },
	} {
		t.Run(name, func(t *testing.T) {
			want, got := fivefold(t, true, solver()), fivefold(t, false, solver())
			for i := range want {
				for j := range want[i] {
					if want[i][j] != got[i][j] {
						t.Fatalf("parameter %d at %d: %v with dual values, %v with gradient nodes", i, j, want[i][j], got[i][j])
					}
				}
			}
			if want[0][0] == 1 {
				t.Error("the steps changed no weight")
			}
		})
	}
}

func TestGradientsMissing(t *testing.T) {
	g := G.NewGraph()
	x := G.NewVector(g, tensor.Float64, G.WithShape(2), G.WithName("x"), G.WithInit(G.Zeroes()))
	must.Fail(t, optim.NewAdamW(1).Step(optim.Gradients(G.Nodes{x}, nil)), "x has no gradient")
}

// TestGradientsOfAnotherShape passes the gradients in the wrong order: every solver must return an error.
func TestGradientsOfAnotherShape(t *testing.T) {
	g := G.NewGraph()
	matrix := func(name string, rows, columns int) *G.Node {
		v := tensor.New(tensor.WithShape(rows, columns), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6}))
		return G.NewMatrix(g, tensor.Float64, G.WithShape(rows, columns), G.WithName(name), G.WithValue(v))
	}
	a, b := matrix("a", 2, 3), matrix("b", 3, 2)
	model := optim.Gradients(G.Nodes{b, a}, must.Get(G.Grad(G.Must(G.Sum(G.Must(G.Mul(a, b)))), a, b))(t))
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	must.Do(t, vm.RunAll())
	for _, solver := range []G.Solver{optim.NewAdamW(1), G.NewVanillaSolver()} {
		must.Fail(t, solver.Step(model), "b has shape (3, 2), but its gradient has shape (2, 3)")
	}
}
