package bench

import (
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// gptConfig describes a GPT and its batch. The GPT is pre-norm, with learned positions, a ReLU layer of width 4·dim and
// a linear head.
type gptConfig struct {
	name                                     string
	batch, length, dim, heads, blocks, vocab int
}

var nanogpt = gptConfig{"nanogpt", 12, 64, 128, 4, 4, 65}

// model makes the GPT and its parameters.
func (c gptConfig) model() (*layers.Decoder, *layers.Params, error) {
	p, err := layers.NewParams(tensor.Float32, 1)
	if err != nil {
		return nil, nil, err
	}
	model, err := layers.NewDecoder(p, layers.ModelConfig{
		Vocab: c.vocab, Dim: c.dim, Layers: c.blocks,
		Positions: layers.Learned{MaxLen: c.length, Init: layers.Normal(0.02)},
		Block:     layers.BlockConfig{Attention: layers.AttentionConfig{Heads: c.heads}},
		Init:      layers.Normal(0.02), EmbeddingInit: layers.Normal(0.02),
		Tied: c.tied(),
	})
	return model, p, err
}

// tied reports whether the head shares its weights with the embeddings, as in models with a large vocabulary.
func (c gptConfig) tied() bool { return c.vocab > 1000 }

// sizes returns the number of elements of each of the model's tensors.
func (c gptConfig) sizes() []int {
	d := c.dim
	sizes := []int{c.vocab * d, c.length * d, d, d} // embeddings, positions, last norm
	if !c.tied() {
		sizes = append(sizes, d*c.vocab, c.vocab)
	}
	for range c.blocks {
		sizes = append(sizes, d, d, d, d) // two norms
		for range 4 {
			sizes = append(sizes, d*d, d)
		}
		sizes = append(sizes, 4*d*d, 4*d, 4*d*d, d)
	}
	return sizes
}

// tokens returns random sequences of ids.
func (c gptConfig) tokens(rng *rand.Rand, sequences int) *tensor.Dense {
	ids := make([]int, sequences*c.length)
	for i := range ids {
		ids[i] = rng.IntN(c.vocab)
	}
	return tensor.New(tensor.WithShape(sequences, c.length), tensor.WithBacking(ids))
}

// flops returns the floating-point operations per step. A product (n, k) x (k, m) takes 2·n·m·k operations, and so does
// each of its two gradients. Per token, a block has products with 12·dim² weights, and scores and weighted sums with
// 2·length·dim multiplications, even if attention is causal.
func (c gptConfig) flops() float64 {
	perToken := c.blocks*(12*c.dim*c.dim+2*c.length*c.dim) + c.dim*c.vocab
	return 6 * float64(c.batch*c.length) * float64(perToken)
}

// prepare builds a training step on random tokens: forward, backward, AdamW.
func (c gptConfig) prepare(composed bool) (Step, error) {
	model, _, err := c.model()
	if err != nil {
		return Step{}, err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	g := G.NewGraph()
	b := &layers.Build{Training: true, Composed: composed, Buffers: &layers.Buffers{}}
	x := G.NewMatrix(g, tensor.Int, G.WithShape(c.batch, c.length), G.WithName("x"), G.WithValue(c.tokens(rng, c.batch)))
	y := G.NewMatrix(g, tensor.Int, G.WithShape(c.batch, c.length), G.WithName("y"), G.WithValue(c.tokens(rng, c.batch)))
	logits, err := model.Forward(b, x, layers.Mask{})
	if err != nil {
		return Step{}, err
	}
	loss, err := layers.CrossEntropy(b, logits, y, layers.CrossEntropyOptions{})
	if err != nil {
		return Step{}, err
	}
	grads, err := G.Grad(loss.Mean, b.Learnables()...)
	if err != nil {
		return Step{}, err
	}
	weights := optim.Gradients(b.Learnables(), grads)
	if err := layers.CheckGraph(g); err != nil {
		return Step{}, err
	}
	vm := G.NewTapeMachine(g)
	solver := optim.NewAdamW(1e-3)
	step := func() error {
		if err := ops.Run(vm); err != nil {
			return err
		}
		if err := solver.Step(weights); err != nil {
			return err
		}
		vm.Reset()
		return nil
	}
	return Step{Run: step, Tokens: c.batch * c.length, Flops: c.flops()}, nil
}
