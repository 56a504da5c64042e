package main

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
)

// headWeights draws multiHead_W_q, multiHead_W_k and multiHead_W_v, each with one weight per head: (H, D, D).
func headWeights(seed uint64, n sizes) [3]*tensor.Dense {
	rng := notebook.Source(seed)
	var w [3]*tensor.Dense
	for i := range w {
		w[i] = notebook.Randn(rng, n.heads, n.dim, n.dim)
	}
	return w
}

// severalHeads computes the notebook's heads with MultiHeadAttention. A weight of shape (H·D, D) stacks the heads'
// weights, so the values of an (H, D, D) tensor have the same order.
func severalHeads(seed uint64, n sizes) (*notebook.Stages, error) {
	p := example.Must(layers.NewParams(tensor.Float64, seed))
	b := &layers.Build{CaptureWeights: true}
	x := embed(b, p, n)
	a := example.Must(layers.NewMultiHeadAttention(p, n.dim, layers.AttentionConfig{Heads: n.heads, HeadDim: n.dim, NoBias: true, NoOutput: true}))
	for i, l := range []*layers.Linear{a.Query, a.Key, a.Value} {
		notebook.Set(l.Weight, headWeights(seed, n)[i])
	}
	sum := G.Must(a.Forward(b, x, x, x, layers.Mask{})) // (T, D) -> (T, H·D)

	var s notebook.Stages
	s.Add("embeddings", x)
	s.Add("Attention Weights", b.AttentionWeights()[0].Weights) // (1, H, T, T)
	s.Add("Weighted Sum", sum)
	s.AddProjections(b, a, x) // (T, D) x (H·D, D)ᵀ -> (T, H·D)
	return &s, s.Run()
}

// splitHeads converts the layer's layout, with the heads side by side, to the notebook's layout, with one matrix per
// head: (T, H·D) -> (H, T, D).
func splitHeads(x *tensor.Dense, heads int) *tensor.Dense {
	apart := tensor.New(tensor.WithShape(x.Shape()[0], heads, x.Shape()[1]/heads), tensor.WithBacking(x.Float64s()))
	return example.Must(tensor.Transpose(apart, 1, 0, 2)).(*tensor.Dense)
}
