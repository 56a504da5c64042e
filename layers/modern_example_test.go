package layers_test

import (
	"encoding/json"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// A row is divided by its root mean square: that of 3 and 4 is √12.5.
func ExampleRMSNorm() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	norm, err := layers.NewRMSNorm(params.Scope("norm"), 2, layers.NormConfig{})
	check(err)

	g := G.NewGraph()
	x := G.NodeFromAny(g, tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{3, 4, -30, -40})), G.WithName("x"))
	y := G.Must(norm.Forward(&layers.Build{}, x))

	vm := G.NewTapeMachine(g)
	defer vm.Close()
	check(vm.RunAll())
	fmt.Printf("%.3f\n", y.Value().Data())
	// Output: [0.849 1.131 -0.849 -1.131]
}

func ExampleActivation() {
	g := G.NewGraph()
	x := G.NodeFromAny(g, tensor.New(tensor.WithBacking([]float64{-100, -1, 0, 1, 100})), G.WithName("x"))
	y := G.Must(layers.SiLU.Forward(&layers.Build{}, x))

	vm := G.NewTapeMachine(g)
	defer vm.Close()
	check(vm.RunAll())
	fmt.Printf("%v %.3f\n", layers.SiLU, y.Value().Data())
	// Output: silu [-0.000 -0.269 0.000 0.731 100.000]
}

// SwiGLU is a gated feed-forward layer with SiLU. Two thirds of the width between give it as many weights as a layer
// without a gate.
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

// Where a query and a key stand doesn't matter to their product, only how far they are apart.
func ExampleRotary() {
	product := func(queryAt, keyAt int) float64 {
		g := G.NewGraph()
		vector := func(name string, v []float64, at int) *G.Node {
			n := G.NodeFromAny(g, tensor.New(tensor.WithShape(1, 4), tensor.WithBacking(v)), G.WithName(name)) // (T, K)
			return G.Must(layers.Rotary{Offset: at}.Turn(&layers.Build{}, n, 1, nil))
		}
		query := vector("query", []float64{1, 2, 3, 4}, queryAt)
		key := vector("key", []float64{4, 3, 2, 1}, keyAt)
		dot := G.Must(G.Sum(G.Must(G.HadamardProd(query, key))))
		vm := G.NewTapeMachine(g)
		defer vm.Close()
		check(vm.RunAll())
		return dot.Value().Data().(float64)
	}
	fmt.Printf("3 apart: %.6f %.6f\n", product(3, 0), product(1003, 1000))
	fmt.Printf("4 apart: %.6f\n", product(4, 0))
	// Output:
	// 3 apart: -1.615580 -1.615580
	// 4 apart: 10.623696
}

// A model that tells positions apart by ALiBi alone reads sequences of any length.
func ExampleALiBi() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	decoder, err := layers.NewDecoder(params, layers.ModelConfig{
		Vocab: 10, Dim: 8, Layers: 1,
		Positions: layers.ALiBi{},
		Block:     layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}},
	})
	check(err)

	for _, length := range []int{3, 300} {
		g := G.NewGraph()
		ids := G.NewVector(g, tensor.Int, G.WithName("ids"), G.WithShape(length))
		logits, err := decoder.Forward(&layers.Build{}, ids, layers.Mask{})
		check(err)
		fmt.Println(logits.Shape())
	}
	slopes, err := layers.ALiBi{}.Slopes(2)
	check(err)
	fmt.Println(slopes)
	// Output:
	// (3, 10)
	// (300, 10)
	// [0.0625 0.00390625]
}

// Rotary positions of Llama 3.1: trained on 8,192 tokens, and slowed down to read sequences 8 times as long.
func ExampleRotaryScaling() {
	config := layers.ModelConfig{
		Vocab: 10, Dim: 8, Layers: 1,
		Positions: layers.Rotary{Base: 500_000, Scaling: layers.RotaryScaling{Kind: "llama3", Factor: 8, OriginalLen: 8192}},
	}
	data, err := json.Marshal(config.Positions)
	check(err)
	fmt.Println(string(data))
	// Output:
	// {"base":500000,"scaling":{"kind":"llama3","factor":8,"original_len":8192}}
}

// T5's positions: a learned number for each head and each of 32 ranges of distances, which all blocks share, and scores
// that aren't scaled.
func ExampleRelativeBias() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	_, err = layers.NewEncoder(params, layers.ModelConfig{
		Vocab: 10, Dim: 8, Layers: 6,
		Positions: layers.RelativeBias{},
		Block:     layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, Scale: 1}},
	})
	check(err)
	fmt.Println(params.Get("positions.weight").Value.Shape())
	// Output:
	// (32, 2)
}
