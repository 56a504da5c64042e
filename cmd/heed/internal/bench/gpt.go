package bench

import (
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// A GPT describes a GPT and its batch. The GPT is pre-norm, with learned positions, a ReLU layer of width 4·Dim and a
// linear head.
type GPT struct {
	Name                                     string
	Batch, Length, Dim, Heads, Blocks, Vocab int
}

// The GPTs that are also built of Gorgonia's own ops.
var (
	NanoGPT = GPT{"nanogpt", 12, 64, 128, 4, 4, 65}
	Tiny    = GPT{"tiny", 32, 16, 32, 2, 1, 12}
)

// model makes the GPT and its parameters.
func (c GPT) model() (*layers.Decoder, *layers.Params, error) { return newDecoder(c.config()) }

// newDecoder makes a decoder and its parameters.
func newDecoder(c layers.ModelConfig) (*layers.Decoder, *layers.Params, error) {
	p, err := layers.NewParams(tensor.Float32, 1)
	if err != nil {
		return nil, nil, err
	}
	model, err := layers.NewDecoder(p, c)
	return model, p, err
}

func (c GPT) config() layers.ModelConfig {
	return layers.ModelConfig{
		Vocab: c.Vocab, Dim: c.Dim, Layers: c.Blocks,
		Positions: layers.Learned{MaxLen: c.Length, Init: layers.Normal(0.02)},
		Block:     layers.BlockConfig{Attention: layers.AttentionConfig{Heads: c.Heads}},
		Init:      layers.Normal(0.02), EmbeddingInit: layers.Normal(0.02),
		Tied: c.tied(),
	}
}

// tied reports whether the head shares its weights with the embeddings, as in models with a large vocabulary.
func (c GPT) tied() bool { return c.Vocab > 1000 }

// sizes returns the number of elements of each of the model's tensors.
func (c GPT) sizes() []int {
	d := c.Dim
	sizes := []int{c.Vocab * d, c.Length * d, d, d} // embeddings, positions, last norm
	if !c.tied() {
		sizes = append(sizes, d*c.Vocab, c.Vocab)
	}
	for range c.Blocks {
		sizes = append(sizes, d, d, d, d) // two norms
		for range 4 {
			sizes = append(sizes, d*d, d)
		}
		sizes = append(sizes, 4*d*d, 4*d, 4*d*d, d)
	}
	return sizes
}

// Tokens returns random sequences of ids.
func (c GPT) Tokens(rng *rand.Rand, sequences int) *tensor.Dense {
	ids := make([]int, sequences*c.Length)
	for i := range ids {
		ids[i] = rng.IntN(c.Vocab)
	}
	return tensor.New(tensor.WithShape(sequences, c.Length), tensor.WithBacking(ids))
}

// Flops returns the floating-point operations per step. A product (n, k) x (k, m) takes 2·n·m·k operations, and so
// does each of its two gradients. Per token, a block has products with 12·Dim² weights, and scores and weighted sums
// with 2·Length·Dim multiplications, even if attention is causal.
func (c GPT) Flops() float64 {
	perToken := c.Blocks*(12*c.Dim*c.Dim+2*c.Length*c.Dim) + c.Dim*c.Vocab
	return 6 * float64(c.Batch*c.Length) * float64(perToken)
}

// prepare builds a training step on random tokens: forward, backward, AdamW.
func (c GPT) prepare(composed bool, precision layers.Precision) (Step, error) {
	model, _, err := c.model()
	if err != nil {
		return Step{}, err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	g := G.NewGraph()
	b := &layers.Build{Training: true, Composed: composed, Precision: precision, Buffers: &layers.Buffers{}}
	x := G.NewMatrix(g, tensor.Int, G.WithShape(c.Batch, c.Length), G.WithName("x"), G.WithValue(c.Tokens(rng, c.Batch)))
	y := G.NewMatrix(g, tensor.Int, G.WithShape(c.Batch, c.Length), G.WithName("y"), G.WithValue(c.Tokens(rng, c.Batch)))
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
	return Step{Run: step, Tokens: c.Batch * c.Length, Flops: c.Flops()}, nil
}
