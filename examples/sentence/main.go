// Sentence shows attention from words to a table of who attends to whom, on the sentence of the notebook "Self Attention in
// Transformers", in its shapes:
//
//	tokens (6) -> X (6, 512) -> Q, K, V (6, 64) -> softmax(Q·Kᵀ/√64) (6, 6) -> output (6, 64)
//
// first with embeddings and weights that nobody has trained, so that the table means nothing yet; then from the table of
// scores that the notebook gives. The notebook's weights for "cat" (0.05, 0.15, 0.65, 0.03, 0.07, 0.05) are an
// illustration: they are not the softmax of its scores, which divided by √64 are near each other and give 0.21 to "sat".
package main

import (
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
)

const (
	sentence = "The cat sat on the mat"
	n        = 6   // tokens
	dModel   = 512 // width of an embedding
	dK       = 64  // width of queries, keys and values
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	tokens := strings.Fields(sentence)
	s, err := attend(tokens)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Input sentence: %q\nTokens: %q\n", sentence, tokens)
	for _, name := range []string{"X", "Q", "K", "V"} {
		fmt.Fprintf(w, "%s has shape %v\n", name, s.Get(name).Shape())
	}
	fmt.Fprintln(w, "Attention weights, untrained:")
	notebook.Table(w, tokens, tokens, s.Get("weights"))
	fmt.Fprintf(w, "Output has shape %v\n", s.Get("output").Shape())

	if s, err = attendScores(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe notebook's scores:")
	notebook.Table(w, tokens, tokens, s.Get("scores"))
	fmt.Fprintln(w, "Their attention weights, softmax(scores/√64):")
	notebook.Table(w, tokens, tokens, s.Get("weights"))
	return nil
}

// attend embeds the tokens and lets them attend to each other.
func attend(tokens []string) (*notebook.Stages, error) {
	var vocabulary []string
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		if !slices.Contains(vocabulary, t) {
			vocabulary = append(vocabulary, t) // "The" and "the" are two
		}
		ids[i] = slices.Index(vocabulary, t)
	}

	p, err := layers.NewParams(tensor.Float64, 1)
	if err != nil {
		return nil, err
	}
	embedding, err := layers.NewEmbedding(p.Scope("embedding"), layers.EmbeddingConfig{
		Vocab: len(vocabulary), Dim: dModel, Init: layers.Normal(1),
	})
	if err != nil {
		return nil, err
	}
	attention, err := layers.NewMultiHeadAttention(p.Scope("attention"), layers.MultiHeadConfig{
		Dim: dModel, HeadDim: dK, NoBias: true, NoOutput: true, // one head
	})
	if err != nil {
		return nil, err
	}

	b := &layers.Build{}
	g := G.NewGraph()
	in := notebook.Input(g, "ids", tensor.New(tensor.WithShape(n), tensor.WithBacking(ids)))
	x, err := embedding.Forward(b, in) // (n) -> (n, dModel)
	if err != nil {
		return nil, err
	}
	output, weights, err := attention.ForwardWeights(b, x, x, x, layers.Mask{}) // (n, dK) and (1, 1, n, n)
	if err != nil {
		return nil, err
	}

	var s notebook.Stages
	s.Add("X", x)
	s.Add("weights", weights)
	s.Add("output", output)
	names := [3]string{"Q", "K", "V"}
	for i, l := range []*layers.Linear{attention.Query, attention.Key, attention.Value} {
		projected, err := l.Forward(b, x) // (n, dModel) x (dK, dModel)ᵀ -> (n, dK)
		if err != nil {
			return nil, err
		}
		s.Add(names[i], projected)
	}
	return &s, s.Run()
}

// attendScores goes from the notebook's scores to attention weights: the scores are the queries, and the keys are I.
func attendScores() (*notebook.Stages, error) {
	g := G.NewGraph()
	scores := notebook.Input(g, "scores", notebook.Matrix(n, n,
		2.1, 1.2, 0.8, 0.9, 2.0, 0.7,
		1.1, 3.2, 4.1, 0.6, 1.0, 1.8,
		0.9, 4.0, 2.8, 2.1, 0.8, 2.2,
		0.7, 1.5, 2.3, 1.9, 1.1, 3.1,
		1.8, 1.0, 0.9, 1.2, 2.1, 0.8,
		0.6, 2.1, 1.9, 2.8, 0.7, 2.5))
	eye := notebook.Input(g, "I", notebook.Eye(n))
	_, weights, err := layers.ScaledDotProductWeights(&layers.Build{}, scores, eye, eye, layers.AttentionOptions{Scale: 1 / math.Sqrt(dK)})
	if err != nil {
		return nil, err
	}
	var s notebook.Stages
	s.Add("scores", scores)
	s.Add("weights", weights)
	return &s, s.Run()
}
