package gradcheck_test

import (
	"errors"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers/gradcheck"
)

// Project reduces a layer's output to a scalar. Check then checks the gradients of the input and the weights.
func ExampleCheck() {
	x := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float64{0.5, -1, 0.2, 0.8, 0.1, -0.4}))
	w := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{1, 0.3, -0.6, 0.9, 0.2, -0.7}))
	err := gradcheck.Check(func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
		h, err := G.Mul(nodes[0], nodes[1]) // (2, 3) × (3, 2) -> (2, 2)
		if err != nil {
			return nil, err
		}
		y, err := G.Tanh(h)
		if err != nil {
			return nil, err
		}
		return gradcheck.Project(y, 1)
	}, gradcheck.Input{Name: "x", Value: x}, gradcheck.Input{Name: "w", Value: w})
	fmt.Println(err)
	// Output: <nil>
}

// An op's derivative lacks a term. The error names the entry with the largest error.
func ExampleMismatchError() {
	op := &elementwise{
		name: "x·exp(x)",
		f:    func(_ int, x float64) float64 { return x * math.Exp(x) },
		df:   func(_ int, x float64) float64 { return math.Exp(x) }, // + x·exp(x)
	}
	x := tensor.New(tensor.WithShape(3), tensor.WithBacking([]float64{0, 1, 0.5}))
	err := gradcheck.Check(func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
		return G.Sum(op.apply(nodes[0]))
	}, gradcheck.Input{Name: "x", Value: x})

	var m *gradcheck.MismatchError
	if errors.As(err, &m) {
		fmt.Printf("%s%v: got %.4f, want %.4f\n", m.Input, m.Index, m.Analytic, m.Numerical)
	}
	// Output: x[1]: got 2.7183, want 5.4366
}

// Expr checks an expression in an existing graph. A directional check needs only two runs per input, however large the
// input is.
func ExampleConfig_Expr() {
	g := G.NewGraph()
	w := G.NewMatrix(g, G.Float64, G.WithName("w"), G.WithShape(200, 300), G.WithInit(G.GlorotN(1)))
	cost := G.Must(G.Sum(G.Must(G.Square(w))))

	fmt.Println(gradcheck.Config{Directional: true, Seed: 1}.Expr(cost, w))
	// Output: <nil>
}
