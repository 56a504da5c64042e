package layers_test

import (
	"fmt"
	"log"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// An EncoderDecoder learns to reverse a sequence. Token 6 starts a target and token 7 ends it. After training, the
// encoder reads the source once. The decoder then generates the answer token by token, in a new graph for each length.
func ExampleEncoderDecoder() {
	const start, end = 6, 7
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	model, err := layers.NewEncoderDecoder(params, layers.EncoderDecoderConfig{
		Model: layers.ModelConfig{Vocab: 8, Positions: layers.Learned{MaxLen: 8}, Dim: 16, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1},
	})
	check(err)
	source := []int{3, 1, 4, 5, 2}

	g := G.NewGraph()
	b := &layers.Build{Training: true}
	logits, err := model.Forward(b, arrayOf(g, "source", source...), arrayOf(g, "target", start, 2, 5, 4, 1, 3), layers.Mask{})
	check(err)
	loss, err := layers.CrossEntropy(b, logits, arrayOf(g, "next", 2, 5, 4, 1, 3, end), layers.CrossEntropyOptions{})
	check(err)
	_, err = G.Grad(loss.Mean, b.Learnables()...)
	check(err)
	vm := G.NewTapeMachine(g, G.BindDualValues(b.Learnables()...))
	defer vm.Close()
	solver := G.NewAdamSolver(G.WithLearnRate(0.01))
	for range 60 {
		check(vm.RunAll())
		check(solver.Step(G.NodesToValueGrads(b.Learnables())))
		vm.Reset()
	}

	memory, err := model.Encode(&layers.Build{}, arrayOf(G.NewGraph(), "source", source...), layers.Mask{}) // (S, Dim)
	check(err)
	encoded := tensor.New(tensor.WithShape(memory.Shape()...), tensor.WithBacking(evaluate(memory)))
	written := []int{start}
	for written[len(written)-1] != end && len(written) < 8 {
		g := G.NewGraph()
		memory := G.NodeFromAny(g, encoded, G.WithName("memory"))
		logits, err := model.Decode(&layers.Build{}, arrayOf(g, "target", written...), memory, layers.Mask{}, layers.Mask{}) // (T, V)
		check(err)
		values := evaluate(logits)
		last := values[len(values)-8:]
		written = append(written, slices.Index(last, slices.Max(last)))
	}
	fmt.Println(written)
	// Output: [6 2 5 4 1 3 7]
}

// A classifier gives logits for three classes to each of two sequences, one of them padded.
func ExampleSequenceClassifier() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	classifier, err := layers.NewSequenceClassifier(params, layers.SequenceClassifierConfig{
		Model: layers.ModelConfig{Vocab: 100, Positions: layers.Learned{MaxLen: 16}, Dim: 32, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}}, Layers: 2, Outputs: 3},
	})
	check(err)
	g := G.NewGraph()
	ids := matrixOf(g, "ids", 2, 11, 12, 13, 14, 21, 22, 0, 0)
	logits, err := classifier.Forward(&layers.Build{}, ids, layers.Mask{KeyLengths: arrayOf(g, "lengths", 4, 2)})
	check(err)
	fmt.Println(logits.Shape())
	// Output: (2, 3)
}

// Load reads the weights of a PyTorch module with embeddings, an nn.TransformerEncoder and a head.
func ExampleParams_Load_pyTorch() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	_, err = layers.NewSequenceClassifier(params, layers.SequenceClassifierConfig{
		Model: layers.ModelConfig{Vocab: 7, Positions: layers.Learned{MaxLen: 5}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}}, Layers: 1, Outputs: 3},
	})
	check(err)
	table := layers.PyTorch(params)
	for _, t := range table {
		switch t.Names[0] {
		case "encoder.embedding.weight": // an nn.Embedding
			t.Names[0] = "embedding.weight"
		case "encoder.positions.weight": // an nn.Parameter
			t.Names[0] = "positions"
		} // others stay, such as encoder.layers.0.self_attn.in_proj_weight
	}
	_, err = params.Load("testdata/torch_classifier.safetensors", layers.LoadOptions{Tensors: table})
	check(err)
	fmt.Printf("%.3f\n", params.Get("head.bias").Value.Float32s())

	_, err = params.Load("testdata/torch_classifier.safetensors", layers.LoadOptions{Tensors: layers.PyTorch(params)})
	problem, _, _ := strings.Cut(err.Error(), ";")
	fmt.Println(problem)
	// Output:
	// [-0.273 -0.541 0.666]
	// testdata/torch_classifier.safetensors: the weights don't fit the model: missing: "encoder.embedding.weight" of shape (7, 4), "encoder.positions.weight" of shape (5, 4)
}

// An encoder labels each token of two sequences, one of them padded.
func ExampleEncoder() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	encoder, err := layers.NewEncoder(params, layers.ModelConfig{
		Vocab: 100, Positions: layers.Learned{MaxLen: 16}, Dim: 32, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}, FeedForward: layers.FeedForwardConfig{Activation: layers.GELU}}, Layers: 2, Outputs: 5,
	})
	check(err)
	g := G.NewGraph()
	ids := matrixOf(g, "ids", 2, 11, 12, 13, 14, 21, 22, 0, 0)

	b := &layers.Build{CaptureWeights: true}
	logits, err := encoder.Forward(b, ids, layers.Mask{KeyLengths: arrayOf(g, "lengths", 4, 2)})
	check(err)
	fmt.Println(params.Count(), "parameters")
	fmt.Println("logits", logits.Shape())
	for _, c := range b.AttentionWeights() {
		fmt.Println(c.Layer, c.Weights.Shape())
	}
	// Output:
	// 29349 parameters
	// logits (2, 4, 5)
	// blocks.0.attention (2, 4, 4, 4)
	// blocks.1.attention (2, 4, 4, 4)
}

// A language model learns one sentence. It then generates the sentence token by token, in a new graph for each length.
func ExampleDecoder() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	decoder, err := layers.NewDecoder(params, layers.ModelConfig{Vocab: 8, Positions: layers.Learned{MaxLen: 8}, Dim: 16, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1})
	check(err)
	sentence := []int{3, 1, 4, 1, 5, 2, 6}

	g := G.NewGraph()
	ids, next := arrayOf(g, "ids", sentence[:6]...), arrayOf(g, "next", sentence[1:]...)
	b := &layers.Build{Training: true}
	logits, err := decoder.Forward(b, ids, layers.Mask{})
	check(err)
	loss := G.Must(mean(layers.CrossEntropy(b, logits, next, layers.CrossEntropyOptions{})))
	if _, err := G.Grad(loss, b.Learnables()...); err != nil {
		log.Fatal(err)
	}
	vm := G.NewTapeMachine(g, G.BindDualValues(b.Learnables()...))
	defer vm.Close()
	solver := G.NewAdamSolver(G.WithLearnRate(0.01))
	for range 60 {
		check(vm.RunAll())
		check(solver.Step(G.NodesToValueGrads(b.Learnables())))
		vm.Reset()
	}

	written := []int{3}
	for len(written) < len(sentence) {
		written = append(written, likeliest(decoder, written))
	}
	fmt.Println(written)
	// Output: [3 1 4 1 5 2 6]
}
