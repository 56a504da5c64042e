package main

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

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
	p, err := layers.NewParams(tensor.Float64, seed)
	if err != nil {
		return nil, err
	}
	b := &layers.Build{CaptureWeights: true}
	x, err := embed(b, p, n)
	if err != nil {
		return nil, err
	}
	a, err := layers.NewMultiHeadAttention(p, n.dim, layers.AttentionConfig{Heads: n.heads, HeadDim: n.dim, NoBias: true, NoOutput: true})
	if err != nil {
		return nil, err
	}
	for i, l := range []*layers.Linear{a.Query, a.Key, a.Value} {
		if err := notebook.Set(l.Weight, headWeights(seed, n)[i]); err != nil {
			return nil, err
		}
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
func splitHeads(x *tensor.Dense, heads int) (*tensor.Dense, error) {
	x = x.Clone().(*tensor.Dense)
	if err := x.Reshape(x.Shape()[0], heads, x.Shape()[1]/heads); err != nil {
		return nil, err
	}
	t, err := tensor.Transpose(x, 1, 0, 2)
	if err != nil {
		return nil, err
	}
	return t.(*tensor.Dense), nil
}
