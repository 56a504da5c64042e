package bench

import (
	"fmt"
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// All returns the benchmarks that run in a precision, models first. Decoding and attention alone run in float32.
func All(precision layers.Precision) []Benchmark {
	var list []Benchmark
	add := func(name, form string, steps int, prepare func() (Step, error)) {
		list = append(list, Benchmark{Name: name, Form: form, Precision: precision, Steps: steps, Prepare: prepare})
	}
	for _, c := range []GPT{
		NanoGPT,
		Tiny,
		{"deep", 2, 64, 64, 4, 96, 65},
		{"baby", 4, 256, 384, 6, 6, 65},
		{"wide", 8, 128, 512, 8, 4, 1000},
		{"gpt2", 1, 256, 768, 12, 12, 50257},
	} {
		small := c.Dim*c.Blocks <= 512
		steps := 15
		if small {
			steps = 50
		}
		add(c.Name, "fused", steps, func() (Step, error) { return c.prepare(false, precision) })
		if small {
			add(c.Name, "composed", steps, func() (Step, error) { return c.prepare(true, precision) })
		}
		add(c.Name, "forward", steps, func() (Step, error) { return c.prepareForward(precision) })
	}
	add(embedder.Name, "", 50, func() (Step, error) { return prepareEmbed(precision) })
	for _, n := range []int{64, 128, 256, 512, 1024} {
		add(fmt.Sprintf("gemm-%d", n), "", max(50, 2*(1<<30/(n*n*n))), func() (Step, error) { return prepareGemm(n, precision), nil })
	}
	if precision != layers.Float32 {
		return list
	}
	gpt2 := GPT{Length: 1024, Dim: 768, Heads: 12, Blocks: 12, Vocab: 50257}.config()
	for _, batch := range []int{1, 8} {
		add(fmt.Sprintf("decode-%d", batch), "", 50, func() (Step, error) { return prepareDecode(gpt2, batch, false) })
	}
	add("prompt", "", 15, func() (Step, error) { return preparePrompt(gpt2) })
	add("smollm2", "prompt", 15, func() (Step, error) { return preparePrompt(smolLM2) })
	add("smollm2", "token", 50, func() (Step, error) { return prepareDecode(smolLM2, 1, false) })
	add("smollm2", "int8", 50, func() (Step, error) { return prepareDecode(smolLM2, 1, true) })
	for _, t := range []int{1024, 4096, 16384} {
		for _, form := range []string{"fused", "composed"} {
			if form == "composed" && t > 4096 {
				continue
			}
			steps := max(3, 15*1024/t)
			add(fmt.Sprintf("long-%d", t), form, steps, func() (Step, error) { return prepareLong(t, form == "composed") })
		}
	}
	return list
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
	run, err := machine(g)
	// The forward pass has two products and the backward pass four. Causal attention needs half of each.
	return Step{Run: run, Tokens: length, Flops: 6 * 2 * heads * float64(length) * float64(length) * width / 2}, err
}

// prepareGemm returns a product of two random n×n matrices.
func prepareGemm(n int, precision layers.Precision) Step {
	rng := rand.New(rand.NewPCG(1, 1))
	a, b, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	for i := range a {
		a[i], b[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
	}
	step := func() error {
		if precision == layers.BFloat16 {
			kernel.GemmBFloat16(0, false, false, n, n, n, 1, a, n, b, n, 0, c, n, nil, nil)
		} else {
			kernel.Gemm(0, false, false, n, n, n, 1, a, n, b, n, 0, c, n)
		}
		return nil
	}
	return Step{Run: step, Flops: 2 * float64(n) * float64(n) * float64(n)}
}
