package docs

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// ints returns a node of shape (1, T).
func ints(g *G.ExprGraph, name string, values []int) *G.Node {
	value := tensor.New(tensor.WithShape(1, len(values)), tensor.WithBacking(values))
	return G.NewTensor(g, tensor.Int, 2, G.WithShape(1, len(values)), G.WithName(name), G.WithValue(value))
}

// run returns the values of a node.
func run(n *G.Node) []float64 {
	var out G.Value
	G.Read(n, &out)
	vm := G.NewTapeMachine(n.Graph())
	defer vm.Close()
	check(vm.RunAll())
	return out.Data().([]float64)
}

// Three documents share a row. The second one has the outputs that it has alone.
func Example_documents() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	decoder, err := layers.NewDecoder(params, layers.ModelConfig{Vocab: 9, Dim: 8, Layers: 2, Positions: layers.Learned{MaxLen: 6}})
	check(err)

	g := G.NewGraph()
	ids := ints(g, "ids", []int{4, 1, 5, 7, 2, 3})
	numbers := []int{0, 0, 0, 1, 1, 2} // the document of each token
	positions := []int{0, 1, 2, 0, 1, 0}
	b := &layers.Build{Positions: ints(g, "positions", positions)}
	logits, err := decoder.Forward(b, ids, layers.Mask{Documents: ints(g, "documents", numbers)})
	check(err)
	packed := run(logits)[3*9 : 5*9]

	logits, err = decoder.Forward(&layers.Build{}, ints(G.NewGraph(), "ids", []int{7, 2}), layers.Mask{})
	check(err)
	largest := 0.0
	for i, x := range run(logits) {
		largest = math.Max(largest, math.Abs(x-packed[i]))
	}
	fmt.Println("equal up to rounding:", largest < 1e-12)
	// Output:
	// equal up to rounding: true
}
