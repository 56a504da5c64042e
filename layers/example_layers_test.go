package layers_test

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// matrixOf returns an input node with two axes.
func matrixOf[T any](g *G.ExprGraph, name string, rows int, values ...T) *G.Node {
	return G.NodeFromAny(g, tensor.New(tensor.WithShape(rows, len(values)/rows), tensor.WithBacking(values)), G.WithName(name))
}

// arrayOf returns an input node with one axis.
func arrayOf[T any](g *G.ExprGraph, name string, values ...T) *G.Node {
	return G.NodeFromAny(g, tensor.New(tensor.WithShape(len(values)), tensor.WithBacking(values)), G.WithName(name))
}

// evaluate runs a node's graph and returns the node's elements.
func evaluate(n *G.Node) []float64 {
	var v G.Value
	G.Read(n, &v)
	vm := G.NewTapeMachine(n.Graph())
	defer vm.Close()
	check(vm.RunAll())
	if x, ok := v.Data().(float64); ok { // a scalar
		return []float64{x}
	}
	return append([]float64(nil), v.Data().([]float64)...)
}

func ExampleLinear() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	linear, err := layers.NewLinear(params.Scope("linear"), 3, 2, layers.LinearConfig{})
	check(err)
	copy(linear.Weight.Value.Float64s(), []float64{1, 10, 100, 1, 1, 1}) // (out, in)
	copy(linear.Bias.Value.Float64s(), []float64{0.5, 0})

	x := matrixOf(G.NewGraph(), "x", 2, 1.0, 2, 3, 4, 5, 6)
	fmt.Println(evaluate(G.Must(linear.Forward(&layers.Build{}, x))))
	// Output: [321.5 6 654.5 15]
}

// An Adapter trains a low-rank product for the second layer, and the first layer's bias. Merge adds both to the model.
func ExampleNewAdapter() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	f, err := layers.NewFeedForward(params, 3, layers.FeedForwardConfig{Hidden: 5})
	check(err)
	adapter, err := layers.NewAdapter(params, layers.LowRank{Rank: 2, Alpha: 4, Targets: []string{"down"}, Whole: []string{"up.bias"}}, 1)
	check(err)
	fmt.Print(adapter.Params.Summary())

	b := &layers.Build{Training: true, Adapter: adapter}
	G.Must(f.Forward(b, matrixOf(G.NewGraph(), "x", 2, 1.0, 2, 3, 4, 5, 6)))
	fmt.Println(len(b.Learnables()), "learned,", len(b.Fixed), "fixed")
	check(adapter.Merge(params))
	// Output:
	// up.bias      (5)      5
	// down.lora_a  (2, 5)   10
	// down.lora_b  (3, 2)   6
	// all          float64  21
	// 3 learned, 3 fixed
}

// Ids select rows of a table.
func ExampleEmbedding() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	embedding, err := layers.NewEmbedding(params.Scope("embedding"), 3, 2, layers.Init{})
	check(err)
	copy(embedding.Weight.Value.Float64s(), []float64{0, 0.5, 1, 1.5, 2, 2.5})

	ids := arrayOf(G.NewGraph(), "ids", 2, 0, 2)
	fmt.Println(evaluate(G.Must(embedding.Forward(&layers.Build{}, ids)))) // (3) -> (3, 2)
	// Output: [2 2.5 0 0.5 2 2.5]
}

// LayerNorm gives each row mean 0 and variance 1. RMSNorm divides each row by its root mean square.
func ExampleNorm() {
	for _, kind := range []string{"layer", "rms"} {
		params, err := layers.NewParams(tensor.Float64, 1)
		check(err)
		norm, err := layers.NewNorm(params.Scope("norm"), 4, layers.NormConfig{Kind: kind})
		check(err)
		x := matrixOf(G.NewGraph(), "x", 2, 1.0, 2, 3, 4, 100, 200, 300, 400)
		fmt.Printf("%.3f\n", evaluate(G.Must(norm.Forward(&layers.Build{}, x))))
	}
	// Output:
	// [-1.342 -0.447 0.447 1.342 -1.342 -0.447 0.447 1.342]
	// [0.365 0.730 1.095 1.461 0.365 0.730 1.095 1.461]
}

// Dropout acts only in graphs for training.
func ExampleDropout() {
	for _, training := range []bool{false, true} {
		x := arrayOf(G.NewGraph(), "x", 1.0, 2, 3, 4, 5, 6)
		fmt.Println(evaluate(G.Must(layers.Dropout{P: 0.5}.Forward(&layers.Build{Training: training, Seed: 1}, x))))
	}
	// Output:
	// [1 2 3 4 5 6]
	// [0 0 0 8 10 12]
}

// In an encoder block, every position sees the whole sequence. In a decoder block, a position sees only itself and
// earlier positions.
func ExampleBlock() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	config := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}
	encoder, err := layers.NewEncoderBlock(params.Scope("encoder"), 4, config)
	check(err)
	decoder, err := layers.NewDecoderBlock(params.Scope("decoder"), 4, config)
	check(err)

	// first returns both blocks' outputs at the first position. The argument last is part of the input at the last
	// position.
	first := func(last float64) (encoded, decoded float64) {
		g := G.NewGraph()
		x := matrixOf(g, "x", 2, 1, 0, 0, 1, 0, 1, 1, last) // (T, D)
		b := &layers.Build{}
		y := G.Must(encoder.Forward(b, x, layers.Mask{}))
		z := G.Must(decoder.Forward(b, x, layers.Mask{}))
		outputs := evaluate(G.Must(G.Concat(0, y, z)))
		return outputs[0], outputs[8]
	}
	encoded, decoded := first(1)
	encodedNow, decodedNow := first(2)
	fmt.Println("encoder:", encoded != encodedNow, "decoder:", decoded != decodedNow)
	// Output: encoder: true decoder: false
}

// Every position of a target attends to itself, to earlier positions and to an encoder's output.
func ExampleNewCrossDecoderBlock() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	block, err := layers.NewCrossDecoderBlock(params.Scope("block"), 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, KeyValueHeads: 1}})
	check(err)

	g := G.NewGraph()
	x := matrixOf(g, "x", 3, make([]float64, 12)...)           // (T, D)
	memory := matrixOf(g, "memory", 5, make([]float64, 20)...) // (S, D)
	y, err := block.ForwardCross(&layers.Build{}, x, memory, layers.Mask{}, layers.Mask{KeyLengths: arrayOf(g, "lengths", 4)})
	check(err)
	fmt.Println(y.Shape())
	// Output: (3, 4)
}

// With a window of two to the left, each position sees itself and the two positions before it.
func ExampleWindow() {
	g := G.NewGraph()
	x := matrixOf(g, "x", 4, 0.0, 0, 0, 0)
	stages, err := layers.ScaledDotProductStages(&layers.Build{}, x, x, x, layers.AttentionOptions{
		Mask: layers.Mask{Causal: true, Window: &layers.Window{Left: 2, Right: 0}},
	})
	check(err)
	weights := evaluate(stages.Weights)
	for i := range 4 {
		fmt.Printf("%.2f\n", weights[4*i:][:4])
	}
	// Output:
	// [1.00 0.00 0.00 0.00]
	// [0.50 0.50 0.00 0.00]
	// [0.33 0.33 0.33 0.00]
	// [0.00 0.33 0.33 0.33]
}

// ScaledDotProductStages returns every stage of attention.
func ExampleScaledDotProductStages() {
	g := G.NewGraph()
	query, key, value := matrixOf(g, "query", 1, 1.0), matrixOf(g, "key", 3, 1.0, 3, 2), matrixOf(g, "value", 3, 10.0, 20, 30)
	bias := arrayOf(g, "bias", 0.5, 0, 0)
	stages, err := layers.ScaledDotProductStages(&layers.Build{}, query, key, value, layers.AttentionOptions{
		Softcap: 2, Mask: layers.Mask{Bias: bias, KeyLengths: arrayOf(g, "lengths", 2)},
	})
	check(err)
	values := evaluate(G.Must(G.Concat(1, stages.Scores, stages.Capped, stages.Masked, stages.Weights, stages.Output)))
	fmt.Printf("scores %.2f, capped %.2f, masked %.2f, weights %.2f, output %.2f\n", values[:3], values[3:6], values[6:9], values[9:12], values[12:])
	// Output: scores [1.00 3.00 2.00], capped [0.92 1.81 1.52], masked [1.42 1.81 -Inf], weights [0.40 0.60 0.00], output [15.95]
}

// With a Cache, a decoder continues a sequence one token at a time. Package decode does this for you.
func ExampleCache() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	decoder, err := layers.NewDecoder(params, layers.ModelConfig{Vocab: 10, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1, Positions: layers.Rotary{}})
	check(err)
	tokens := []int{3, 1, 4, 1, 5}

	whole := G.NewGraph()
	full := evaluate(G.Must(decoder.Forward(&layers.Build{}, arrayOf(whole, "ids", tokens...), layers.Mask{})))

	cache, err := layers.NewCache(1, 100)
	check(err)
	g := G.NewGraph()
	id := []int{0} // the node's value
	logits, err := decoder.Next(&layers.Build{Cache: cache}, arrayOf(g, "id", id...), layers.Mask{})
	check(err)
	var value G.Value
	G.Read(logits, &value)
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	for _, id[0] = range tokens {
		check(cache.Extend(1))
		check(vm.RunAll())
		vm.Reset()
		cache.Commit()
	}
	fmt.Printf("%.3f\n%.3f\n", full[40:45], value.Data().([]float64)[:5])
	// Output:
	// [-0.766 -0.194 1.314 -0.922 -0.450]
	// [-0.766 -0.194 1.314 -0.922 -0.450]
}

func ExampleActivation() {
	x := arrayOf(G.NewGraph(), "x", -100.0, -1, 0, 1, 100)
	fmt.Printf("%v %.3f\n", layers.SiLU, evaluate(G.Must(layers.SiLU.Forward(&layers.Build{}, x))))
	// Output: silu [-0.000 -0.269 0.000 0.731 100.000]
}

// SwiGLU is a gated feed-forward layer with SiLU. With two thirds of the hidden width it has the same number of weights
// as a layer without a gate.
func ExampleFeedForward() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	_, err = layers.NewFeedForward(params.Scope("plain"), 6, layers.FeedForwardConfig{Hidden: 24, NoBias: true})
	check(err)
	plain := params.Count()
	swiGLU, err := layers.NewFeedForward(params.Scope("gated"), 6, layers.FeedForwardConfig{
		Hidden: 16, Activation: layers.SiLU, Gated: true, NoBias: true,
	})
	check(err)
	fmt.Println(plain, "weights and", params.Count()-plain)

	x := G.NewMatrix(G.NewGraph(), tensor.Float32, G.WithName("x"), G.WithShape(3, 6))
	y, err := swiGLU.Forward(&layers.Build{}, x)
	check(err)
	fmt.Println(x.Shape(), "to", y.Shape())
	// Output:
	// 288 weights and 288
	// (3, 6) to (3, 6)
}
