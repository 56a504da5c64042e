// Crossattention shows one sequence attending to another. Queries come from the first sequence, X, and keys and values
// from the second, Y:
//
//	softmax((X·W_qᵀ)·(Y·W_kᵀ)ᵀ/√d)·(Y·W_vᵀ)
//
// As in the last part of the notebook "Self Attention Mechanism", 5 tokens attend to 10 others. The weights have a row
// for every query and a column for every key, and the output has a row for every query. The notebook prints only
// shapes, so this program draws its own random inputs from a seed.
//
// Flags change the seed and the sizes:
//
//	go run ./examples/crossattention --seed 2 --queries 3 --keys 4 --dim 2
package main

import (
	"fmt"
	"io"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/examples/internal/picture"
	"github.com/heed-go/heed/layers"
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("crossattention")
	queries := flags.Size("queries", 5, 64, "tokens in the first sequence")
	keys := flags.Size("keys", 10, 64, "tokens in the second sequence")
	dim := flags.Size("dim", 16, 512, "width of a token")
	out := flags.Picture("the attention weights")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := attend(*seed, *queries, *keys, *dim)
	if err != nil {
		return err
	}
	weights, sum := s.Get("Attention Weights"), s.Get("Weighted Sum")
	s.Print(w, "Attention Weights", "Weighted Sum")
	fmt.Fprintf(w, "Attention Weights Shape: %v\n", weights.Shape()[2:]) // without the axes for batch and heads
	fmt.Fprintf(w, "Weighted Sum Shape: %v\n", sum.Shape())
	return picture.Draw(*out, "One sequence asks another",
		picture.Layer("Attention weights", picture.Count("query ", *queries), picture.Count("", *keys), s.Values("Attention Weights")))
}

// attend computes attention from T queries to S keys, all of width D.
func attend(seed uint64, T, S, D int) (*notebook.Stages, error) {
	p := example.Must(layers.NewParams(tensor.Float64, seed))
	// The weights are xavier_uniform. With the notebook's variance of 1, each query would attend to nearly one key.
	a := example.Must(layers.NewMultiHeadAttention(p, D, layers.AttentionConfig{
		KeyInput: D, // may differ from the queries' width
		Heads:    1, NoBias: true, NoOutput: true,
	}))

	g := G.NewGraph()
	rng := notebook.Source(seed)
	first := notebook.Input(g, "sequence 1", notebook.Randn(rng, T, D))
	second := notebook.Input(g, "sequence 2", notebook.Randn(rng, S, D))
	b := &layers.Build{CaptureWeights: true}
	out := G.Must(a.Forward(b, first, second, second, layers.Mask{})) // (T, D)
	var s notebook.Stages
	s.Add("Attention Weights", b.AttentionWeights()[0].Weights) // (1, 1, T, S)
	s.Add("Weighted Sum", out)
	return &s, s.Run()
}
