package bench

import (
	"fmt"
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// All returns the benchmarks, models first.
func All() []Benchmark {
	var list []Benchmark
	add := func(name, form string, steps int, prepare func() (Step, error)) {
		list = append(list, Benchmark{Name: name, Form: form, Steps: steps, Prepare: prepare})
	}
	for _, c := range []gptConfig{
		nanogpt,
		{"tiny", 32, 16, 32, 2, 1, 12},
		{"deep", 2, 64, 64, 4, 96, 65},
		{"baby", 4, 256, 384, 6, 6, 65},
		{"wide", 8, 128, 512, 8, 4, 1000},
		{"gpt2", 1, 256, 768, 12, 12, 50257},
	} {
		small := c.dim*c.blocks <= 512
		steps := 15
		if small {
			steps = 50
		}
		add(c.name, "fused", steps, func() (Step, error) { return c.prepare(false) })
		if small {
			add(c.name, "composed", steps, func() (Step, error) { return c.prepare(true) })
		}
		add(c.name, "forward", steps, c.prepareForward)
	}
	for _, batch := range []int{1, 8} {
		add(fmt.Sprintf("decode-%d", batch), "", 50, gptConfig{"decode", batch, 1024, 768, 12, 12, 50257}.prepareDecode)
	}
	add(embedder.name, "", 50, prepareEmbed)
	for _, t := range []int{1024, 4096, 16384} {
		for _, form := range []string{"fused", "composed"} {
			if form == "composed" && t > 4096 {
				continue
			}
			steps := max(3, 15*1024/t)
			add(fmt.Sprintf("long-%d", t), form, steps, func() (Step, error) { return prepareLong(t, form == "composed") })
		}
	}
	for _, n := range []int{64, 128, 256, 512, 1024} {
		add(fmt.Sprintf("gemm-%d", n), "", max(50, 2*(1<<30/(n*n*n))), func() (Step, error) { return prepareGemm(n), nil })
	}
	return list
}

// gptConfig describes a GPT and its batch. The GPT is pre-norm, with learned positions, a ReLU layer of width 4·dim and
// a linear head.
type gptConfig struct {
	name                                     string
	batch, length, dim, heads, blocks, vocab int
}

var nanogpt = gptConfig{"nanogpt", 12, 64, 128, 4, 4, 65}

func (c gptConfig) model(p *layers.Params) (*layers.Decoder, error) {
	return layers.NewDecoder(p, layers.ModelConfig{
		Vocab: c.vocab, Dim: c.dim, Layers: c.blocks,
		Positions: layers.Learned{MaxLen: c.length, Init: layers.Normal(0.02)},
		Block:     layers.BlockConfig{Attention: layers.AttentionConfig{Heads: c.heads}},
		Init:      layers.Normal(0.02), EmbeddingInit: layers.Normal(0.02),
		Tied: c.tied(),
	})
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
	p, err := layers.NewParams(tensor.Float32, 1)
	if err != nil {
		return Step{}, err
	}
	model, err := c.model(p)
	if err != nil {
		return Step{}, err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	g := G.NewGraph()
	b := &layers.Build{Mode: layers.Training, Composed: composed, Buffers: &layers.Buffers{}}
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
	grads, err := G.Grad(loss, b.Learnables()...)
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
		if err := vm.RunAll(); err != nil {
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

// prepareLong builds causal attention on random queries, keys and values, with 4 heads of width 64, and its gradients.
func prepareLong(length int, composed bool) (Step, error) {
	const heads, width = 4, 64
	rng := rand.New(rand.NewPCG(1, 1))
	g := G.NewGraph()
	var inputs G.Nodes
	for _, name := range []string{"q", "k", "v"} {
		values := make([]float32, heads*length*width)
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		inputs = append(inputs, G.NewTensor(g, tensor.Float32, 4, G.WithShape(1, heads, length, width), G.WithName(name),
			G.WithValue(tensor.New(tensor.WithShape(1, heads, length, width), tensor.WithBacking(values)))))
	}
	b := &layers.Build{Composed: composed}
	out, err := layers.ScaledDotProduct(b, inputs[0], inputs[1], inputs[2], layers.AttentionOptions{Mask: layers.Mask{Causal: true}})
	if err != nil {
		return Step{}, err
	}
	cost, err := ops.Sum(&ops.Env{}, out)
	if err != nil {
		return Step{}, err
	}
	if _, err := G.Grad(cost, inputs...); err != nil {
		return Step{}, err
	}
	if err := layers.CheckGraph(g); err != nil {
		return Step{}, err
	}
	vm := G.NewTapeMachine(g)
	step := func() error {
		defer vm.Reset()
		return vm.RunAll()
	}
	// The forward pass has two products and the backward pass four. Causal attention needs half of each.
	return Step{Run: step, Tokens: length, Flops: 6 * 2 * heads * float64(length) * float64(length) * width / 2}, nil
}

// prepareGemm returns a product of two random n×n matrices.
func prepareGemm(n int) Step {
	rng := rand.New(rand.NewPCG(1, 1))
	a, b, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	for i := range a {
		a[i], b[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
	}
	step := func() error {
		kernel.Gemm(0, false, false, n, n, n, 1, a, n, b, n, 0, c, n)
		return nil
	}
	return Step{Run: step, Flops: 2 * float64(n) * float64(n) * float64(n)}
}
