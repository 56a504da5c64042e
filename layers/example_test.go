package layers_test

import (
	"fmt"
	"log"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// One query attends to two keys, mostly to the first, which is closer. A third key is masked.
func ExampleScaledDotProduct() {
	g := G.NewGraph()
	query := matrixOf(g, "query", 1, 2.0, 0) // (1, 2)
	key := matrixOf(g, "key", 3, 1.0, 0, 0, 1, 9, 9)
	value := matrixOf(g, "value", 3, 10.0, 20, 99)
	allow := arrayOf(g, "allow", true, true, false)

	out, err := layers.ScaledDotProduct(&layers.Build{}, query, key, value, layers.AttentionOptions{
		Mask: layers.Mask{Allow: allow},
	})
	check(err)
	fmt.Printf("output %.3f\n", evaluate(out)) // 0.804·10 + 0.196·20
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
	logits := evaluate(G.Must(decoder.Forward(&layers.Build{}, arrayOf(G.NewGraph(), "ids", tokens...), layers.Mask{})))
	last := logits[len(logits)-8:]
	return slices.Index(last, slices.Max(last))
}

// The second of three targets is ignored: the loss is the mean over the other two.
func ExampleCrossEntropy() {
	g := G.NewGraph()
	logits, targets := matrixOf(g, "logits", 3, 0.0, 0, 5, -5, 0, 0), arrayOf(g, "targets", 0, layers.Ignore, 1)
	loss, err := layers.CrossEntropy(&layers.Build{}, logits, targets, layers.CrossEntropyOptions{})
	check(err)
	fmt.Printf("%.4f nats\n", evaluate(loss.Mean)[0])
	// Output: 0.6931 nats
}
