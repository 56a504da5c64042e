package optim_test

import (
	"fmt"
	"log"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/train/optim"
)

// A Solver steps any Gorgonia program. Here Muon steps the hidden matrix and AdamW the rest, and an Average follows the
// weights.
func ExampleSolver() {
	g := G.NewGraph()
	node := func(name string, rows, cols int) *G.Node {
		values := tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(line(-1, 1, rows*cols)))
		return G.NewMatrix(g, tensor.Float64, G.WithShape(rows, cols), G.WithName(name), G.WithValue(values))
	}
	x, hidden, head := node("x", 8, 4), node("hidden", 4, 6), node("head", 6, 1)
	y := G.Must(G.Mul(G.Must(G.Tanh(G.Must(G.Mul(x, hidden)))), head))
	cost := G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(y, node("want", 8, 1)))))))
	if _, err := G.Grad(cost, hidden, head); err != nil {
		log.Fatal(err)
	}
	var loss G.Value
	G.Read(cost, &loss)
	vm := G.NewTapeMachine(g, G.BindDualValues(hidden, head))

	solver := optim.NewAdamW(0.02)
	solver.Groups = []optim.Group{{
		Match: func(name string, rank int) bool { return name == "hidden" },
		Rule:  optim.Muon{}, LearningRate: 0.05,
	}}
	solver.ClipNorm = 1
	solver.Schedule = optim.WarmUp(5).Times(optim.Cosine(60, 0.1))
	average := &optim.Average{Decay: 0.9}
	model := G.NodesToValueGrads(G.Nodes{hidden, head})
	for step := range 61 {
		check(vm.RunAll())
		check(solver.Step(model))
		check(average.Update(model))
		if step%30 == 0 {
			fmt.Printf("step %d: loss %.4f, rate %.3f\n", step, loss.Data(), solver.Rate)
		}
		vm.Reset()
	}
	// Output:
	// step 0: loss 0.3721, rate 0.004
	// step 30: loss 0.0228, rate 0.011
	// step 60: loss 0.0008, rate 0.002
}

// check ends an example if there is an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
