package layers_test

import (
	"encoding/json"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// nearby is an example of your own position scheme: each position sees itself and a few positions before it.
type nearby struct {
	layers.NoPositions // doesn't change embeddings, queries and keys

	reach int // number of visible positions before each position
}

func (n nearby) New(*layers.Params, int, layers.AttentionConfig) (layers.Positions, error) {
	return n, nil
}

func (n nearby) Score(_ *layers.Build, _, _, _ *G.Node, m layers.Mask) (layers.Mask, error) {
	m.Window = &layers.Window{Left: n.reach, Right: 0}
	return m, nil
}

// A position scheme of your own implements only the hooks that it needs. It works with a Cache too.
func ExamplePositions() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	decoder, err := layers.NewDecoder(params, layers.ModelConfig{Vocab: 10, Dim: 8, Layers: 1, Positions: nearby{reach: 1}})
	check(err)

	// last returns the prediction at the last of 4 positions.
	last := func(ids ...int) float64 {
		logits, err := decoder.Forward(&layers.Build{}, arrayOf(G.NewGraph(), "ids", ids...), layers.Mask{})
		check(err)
		return evaluate(logits)[3*10]
	}
	fmt.Println("2 before:", last(1, 2, 3, 4) != last(1, 9, 3, 4), "1 before:", last(1, 2, 3, 4) != last(1, 2, 9, 4))
	// Output: 2 before: false 1 before: true
}

// You can set the Positions of attention outside a model.
func ExampleMultiHeadAttention_positions() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	attention, err := layers.NewMultiHeadAttention(params, 4, layers.AttentionConfig{Heads: 2})
	check(err)
	forward := func(values ...float64) []float64 {
		x := matrixOf(G.NewGraph(), "x", 3, values...) // (T, D)
		return evaluate(G.Must(attention.Forward(&layers.Build{}, x, x, x, layers.Mask{})))
	}
	for _, positions := range []layers.Positions{nil, layers.Rotary{}} {
		attention.Positions = positions
		one := forward(1, 2, 3, 4, 0, 0, 0, 0, 4, 3, 2, 1)
		swapped := forward(1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 0, 0)
		fmt.Printf("%T: %.3f %.3f\n", positions, one[0], swapped[0]) // at the first of the three positions
	}
	// Output:
	// <nil>: 0.834 0.834
	// layers.Rotary: 1.400 1.246
}

// A JSON file describes a model.
func ExampleModelConfig_json() {
	var config layers.ModelConfig
	check(json.Unmarshal([]byte(`{
		"vocab": 65, "dim": 32, "layers": 2,
		"positions": {"kind": "rotary", "base": 50000},
		"block": {
			"attention": {"heads": 4, "key_value_heads": 2},
			"feed_forward": {"hidden": 88, "activation": "silu", "gated": true},
			"norm": {"kind": "rms"}
		},
		"tied": true
	}`), &config))
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	_, err = layers.NewDecoder(params, config)
	check(err)
	fmt.Println(config.Positions.(layers.Rotary).Base, params.Count())
	fmt.Println(json.Unmarshal([]byte(`{"positions": {"kind": "rotary", "bass": 3}}`), &config))
	// Output:
	// 50000 25888
	// a model's configuration: positions of kind rotary: unknown key "bass"; did you mean base?
}

// Image patches or time series need no vocabulary: a linear layer turns them into embeddings.
func ExampleEncoder_embeddings() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	patches, err := layers.NewLinear(params.Scope("patches"), 16, 8, layers.LinearConfig{})
	check(err)
	classifier, err := layers.NewSequenceClassifier(params, layers.SequenceClassifierConfig{Model: layers.ModelConfig{
		Dim: 8, Layers: 1, Outputs: 10, Positions: layers.Learned{MaxLen: 9},
	}})
	check(err)

	images := G.NewTensor(G.NewGraph(), tensor.Float32, 3, G.WithName("images"), G.WithShape(2, 9, 16)) // 9 patches of 4×4
	b := &layers.Build{Training: true}
	x, err := patches.Forward(b, images) // (B, T, 16) -> (B, T, D)
	check(err)
	logits, err := classifier.Forward(b, x, layers.Mask{})
	check(err)
	fmt.Println(logits.Shape())
	// Output: (2, 10)
}

// The product of a query and a key depends only on the distance between them, not on their positions.
func ExampleRotary() {
	product := func(queryAt, keyAt int) float64 {
		g := G.NewGraph()
		vector := func(name string, v []float64, position int) *G.Node {
			return G.Must(layers.Rotary{Offset: position}.Rotate(&layers.Build{}, matrixOf(g, name, 1, v...), 1, nil)) // (T, K)
		}
		query := vector("query", []float64{1, 2, 3, 4}, queryAt)
		key := vector("key", []float64{4, 3, 2, 1}, keyAt)
		return evaluate(G.Must(G.Sum(G.Must(G.HadamardProd(query, key)))))[0]
	}
	fmt.Printf("3 apart: %.6f %.6f\n", product(3, 0), product(1003, 1000))
	fmt.Printf("4 apart: %.6f\n", product(4, 0))
	// Output:
	// 3 apart: -1.615580 -1.615580
	// 4 apart: 10.623696
}

// A model with ALiBi reads sequences of any length.
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

// By default, positions count from 0. Here the second call starts at position 2.
func ExampleLearned() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	positions, err := layers.Learned{MaxLen: 4}.New(params.Scope("positions"), 1, layers.AttentionConfig{})
	check(err)
	copy(params.Get("positions.weight").Value.Float64s(), []float64{0, 10, 20, 30})

	g := G.NewGraph()
	x := matrixOf(g, "x", 2, 1.0, 2) // (T, D)
	b := &layers.Build{}
	fmt.Println(evaluate(G.Must(positions.Embed(b, x, nil))))
	fmt.Println(evaluate(G.Must(positions.Embed(b, x, arrayOf(g, "from", 2)))))
	// Output:
	// [1 12]
	// [21 32]
}

func ExampleSinusoidal() {
	g := G.NewGraph()
	x := matrixOf(g, "x", 2, make([]float64, 8)...) // (T, D)
	waves := G.Must(layers.Sinusoidal{}.Embed(&layers.Build{}, x, nil))
	fmt.Printf("%.3f\n", evaluate(waves))
	// Output: [0.000 1.000 0.000 1.000 0.841 0.540 0.010 1.000]
}

// Llama 3.1 was trained on sequences of 8,192 tokens. With slower rotation, the model reads sequences 8 times as long.
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

// T5 learns one number for each head and each of 32 buckets of distances. All blocks share these numbers. T5 doesn't
// scale scores.
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
