package docs

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// PyTorch 1.13 gives these numbers for the input torch.arange(48.).reshape(2, 4, 6) / 48, with
// key_padding_mask = [[False] * 4, [False, False, True, True]] and attn_mask = torch.ones(4, 4).triu(1).bool().
func Example_pytorch() {
	values := make([]float64, 2*4*6)
	for i := range values {
		values[i] = float64(i) / 48
	}
	x := tensor.New(tensor.WithShape(2, 4, 6), tensor.WithBacking(values))

	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	attention, err := layers.NewMultiHeadAttention(params, 6, layers.AttentionConfig{Heads: 2})
	check(err)
	_, err = params.Load("../layers/testdata/torch_attention_packed.safetensors", layers.LoadOptions{Tensors: layers.PyTorch(params)})
	check(err)

	attend, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		x := G.NewTensor(g, tensor.Float64, 3, G.WithShape(2, 4, 6), G.WithName("x"))           // (B, T, D)
		tokens := G.NewTensor(g, tensor.Bool, 4, G.WithShape(2, 1, 1, 4), G.WithName("tokens")) // (B, 1, 1, S)
		y, err := attention.Forward(b, x, x, x, layers.Mask{Causal: true, Allow: tokens})
		return G.Nodes{x, tokens}, G.Nodes{y}, err
	})
	check(err)
	tokens := []bool{true, true, true, true, true, true, false, false} // ~key_padding_mask
	y, err := attend.Call(x, tensor.New(tensor.WithShape(2, 1, 1, 4), tensor.WithBacking(tokens)))
	check(err)
	fmt.Printf("%.4f\n", y[0].Float64s()[:6])      // [0, 0]
	fmt.Printf("%.4f\n", y[0].Float64s()[30:][:6]) // [1, 1]
	// Output:
	// [-0.9394 0.6254 -1.1320 0.4695 0.2115 0.0016]
	// [-3.3528 3.2822 -1.2468 -0.4544 -0.7606 0.7444]
}
