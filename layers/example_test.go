package layers_test

import (
	"fmt"
	"log"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// One query attends to two keys, mostly to the first, which is closer. A third key is masked.
func ExampleScaledDotProduct() {
	g := G.NewGraph()
	node := func(name string, v *tensor.Dense) *G.Node {
		return G.NewTensor(g, v.Dtype(), v.Dims(), G.WithName(name), G.WithShape(v.Shape()...), G.WithValue(v))
	}
	query := node("query", tensor.New(tensor.WithShape(1, 2), tensor.WithBacking([]float64{2, 0})))
	key := node("key", tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{1, 0, 0, 1, 9, 9})))
	value := node("value", tensor.New(tensor.WithShape(3, 1), tensor.WithBacking([]float64{10, 20, 99})))
	allow := node("allow", tensor.New(tensor.WithShape(3), tensor.WithBacking([]bool{true, true, false})))

	out, err := layers.ScaledDotProduct(&layers.Build{}, query, key, value, layers.AttentionOptions{
		Mask: layers.Mask{Allow: allow},
	})
	check(err)
	var outValue G.Value
	G.Read(out, &outValue)

	vm := G.NewTapeMachine(g)
	defer vm.Close()
	check(vm.RunAll())
	fmt.Printf("output %.3f\n", outValue.Data()) // 0.804·10 + 0.196·20
	// Output: output [11.956]
}

// Attention works in your own graph, with your own cost, machine and solver. Here attention learns to return, for each
// of eight tokens, the token before it.
func ExampleMultiHeadAttention() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	attention, err := layers.NewMultiHeadAttention(params, 8, layers.AttentionConfig{Heads: 2})
	check(err)

	g := G.NewGraph()
	x := G.NodeFromAny(g, tensor.I(tensor.Float64, 8, 8, 0), G.WithName("x"))        // (T, D), or (B, T, D)
	want := G.NodeFromAny(g, tensor.I(tensor.Float64, 8, 8, -1), G.WithName("want")) // (T, D)
	b := &layers.Build{Training: true}
	y := G.Must(attention.Forward(b, x, x, x, layers.Mask{Causal: true})) // (T, D)
	cost := G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(y, want))))))
	_, err = G.Grad(cost, b.Learnables()...) // W_q, W_k, W_v, W_o and their biases
	check(err)
	var loss G.Value
	G.Read(cost, &loss)

	vm := G.NewTapeMachine(g, G.BindDualValues(b.Learnables()...))
	solver := G.NewAdamSolver(G.WithLearnRate(0.02))
	for step := range 101 {
		check(vm.RunAll())
		check(solver.Step(G.NodesToValueGrads(b.Learnables())))
		vm.Reset()
		if step%50 == 0 {
			fmt.Printf("step %d: %.3f\n", step, loss.Data())
		}
	}
	// Output:
	// step 0: 0.145
	// step 50: 0.009
	// step 100: 0.000
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// likeliest returns the most probable next token of a decoder.
func likeliest(decoder *layers.Decoder, tokens []int) int {
	logits, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		ids := G.NewVector(g, tensor.Int, G.WithName("ids"), G.WithShape(len(tokens)))
		logits, err := decoder.Forward(b, ids, layers.Mask{})
		return G.Nodes{ids}, G.Nodes{logits}, err
	})
	check(err)
	out, err := logits.Call(tensor.New(tensor.WithBacking(tokens)))
	check(err)
	values := out[0].Float64s()
	last := values[len(values)-8:]
	best := 0
	for i, v := range last {
		if v > last[best] {
			best = i
		}
	}
	return best
}

// The second of three targets is ignored: the loss is the mean over the other two.
func ExampleCrossEntropy() {
	g := G.NewGraph()
	logits := G.NewMatrix(g, tensor.Float64, G.WithName("logits"), G.WithShape(3, 2), G.WithValue(
		tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{0, 0, 5, -5, 0, 0}))))
	targets := G.NewVector(g, tensor.Int, G.WithName("targets"), G.WithShape(3), G.WithValue(
		tensor.New(tensor.WithShape(3), tensor.WithBacking([]int{0, layers.Ignore, 1}))))
	loss, err := layers.CrossEntropy(&layers.Build{}, logits, targets, layers.CrossEntropyOptions{})
	check(err)
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	check(vm.RunAll())
	fmt.Printf("%.4f nats\n", loss.Mean.Value().Data())
	// Output: 0.6931 nats
}
