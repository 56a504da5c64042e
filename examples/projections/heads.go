package main

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
)

// headWeights are multiHead_W_q, multiHead_W_k and multiHead_W_v: one weight for every head, (H, attentionDim, D).
func headWeights() [3]*tensor.Dense {
	var w [3]*tensor.Dense
	for i := range w {
		w[i] = notebook.Randn(uint64(i), heads, attentionDim, embedDim)
	}
	return w
}

// threeHeads gives MultiHeadAttention the notebook's three heads: its weight of shape (H·attentionDim, D) holds the heads'
// one below the other, so that (H, attentionDim, D) fits in as it lies.
func threeHeads() (*notebook.Stages, error) {
	p, err := layers.NewParams(tensor.Float64, 1)
	if err != nil {
		return nil, err
	}
	b := &layers.Build{}
	x, err := embed(b, p, G.NewGraph())
	if err != nil {
		return nil, err
	}
	a, err := layers.NewMultiHeadAttention(p, layers.MultiHeadConfig{
		Dim: embedDim, Heads: heads, HeadDim: attentionDim, NoBias: true, NoOutput: true,
	})
	if err != nil {
		return nil, err
	}
	sum, weights, err := a.ForwardWeights(b, x, x, x, layers.Mask{}) // (T, H·attentionDim) and (1, H, T, T)
	if err != nil {
		return nil, err
	}

	var s notebook.Stages
	s.Add("embeddings", x)
	s.Add("Attention Weights", weights)
	s.Add("Weighted Sum", sum)
	names := [3]string{"Queries", "Keys", "Values"}
	for i, l := range []*layers.Linear{a.Query, a.Key, a.Value} {
		if err := notebook.Set(l.Weight, headWeights()[i]); err != nil {
			return nil, err
		}
		projected, err := l.Forward(b, x) // (T, D) x (H·attentionDim, D)ᵀ -> (T, H·attentionDim)
		if err != nil {
			return nil, err
		}
		s.Add(names[i], projected)
	}
	return &s, s.Run()
}

// splitHeads is how the notebook lays out what the layer has side by side: (T, H·attentionDim) -> (H, T, attentionDim).
func splitHeads(x *tensor.Dense) (*tensor.Dense, error) {
	x = x.Clone().(*tensor.Dense)
	if err := x.Reshape(tokens, heads, attentionDim); err != nil {
		return nil, err
	}
	t, err := tensor.Transpose(x, 1, 0, 2)
	if err != nil {
		return nil, err
	}
	return t.(*tensor.Dense), nil
}
