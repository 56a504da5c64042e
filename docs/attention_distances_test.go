package docs

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// A model whose scores have products with distances reads rows of any length.
func Example_distances() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	model := layers.ModelConfig{
		Vocab: 30, Dim: 8, Layers: 2, Tied: true,
		Positions: layers.Disentangled{Buckets: 4, MaxDistance: 16}, // 8 vectors, for any length
		Block:     layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}},
	}
	encoder, err := layers.NewEncoder(params, model)
	check(err)

	ids := tensor.New(tensor.WithShape(2, 100), tensor.Of(tensor.Int))
	x := G.NewTensor(G.NewGraph(), tensor.Int, 2, G.WithShape(2, 100), G.WithName("ids"), G.WithValue(ids))
	logits, err := encoder.Forward(&layers.Build{}, x, layers.Mask{})
	check(err)
	fmt.Println(params.Get("positions.weight").Value.Shape(), logits.Shape())
	// Output:
	// (8, 8) (2, 100, 30)
}
