// Projections shows where queries, keys and values come from: every token's embedding times learned weights of shape
// (attention_dim, embed_dim), for one head and for three,
//
//	Q = X·W_qᵀ   K = X·W_kᵀ   V = X·W_vᵀ   weighted sum = softmax(Q·Kᵀ/√d)·V
//
// on the shapes of the notebook "Self Attention Mechanism": 10 tokens of width 16, the second the same as the first. The
// notebook prints neither its embeddings nor its weights nor its values, so that its weighted sums and the queries of its
// three heads can't be computed again: four rows of sums say too little about ten rows of values. What it prints of
// numbers that follow from one another are the scores and their softmax, and the program turns the one into the other.
// Everything else it computes for embeddings and weights of its own, drawn from a seed as the notebook draws them: the
// shapes are the notebook's, and so is that weighted_sum[1] equals weighted_sum[0].
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
)

const (
	tokens, embedDim = 10, 16 // T, D
	attentionDim     = embedDim
	heads            = 3 // H; each is attentionDim wide
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	printed, err := attendScores()
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "The notebook's scores, as far as it prints them, and their softmax:")
	printed.Print(w)

	one, err := oneHead()
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nOne head:")
	fmt.Fprintf(w, "embed_size: %d\n", embedDim)
	for _, name := range []string{"w_q", "w_k", "w_v", "Q", "K", "V"} {
		fmt.Fprintf(w, "%s Shape : %v\n", name, one.Get(name).Shape())
	}
	one.Print(w, "Attention Weights", "Weighted Sum")
	sum := one.Values("Weighted Sum")
	fmt.Fprintf(w, "Weighted sum of the second token, which is that of the first, as the tokens are the same\n%s\n",
		notebook.Format(sum[embedDim:2*embedDim], embedDim))

	three, err := threeHeads()
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThree heads:")
	for _, name := range []string{"Queries", "Keys", "Values"} {
		split, err := splitHeads(three.Get(name))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s Shape : %v\n", name, split.Shape())
	}
	fmt.Fprintf(w, "Attention Weights Shape : %v\n", three.Get("Attention Weights").Shape()[1:]) // without the batch of 1
	fmt.Fprintf(w, "Weighted Sum Shape : %v, the heads side by side\n", three.Get("Weighted Sum").Shape())
	return nil
}

// attendScores turns the printed scores into attention weights: they are the queries, the keys are I, and the scores were
// scaled before they were printed.
func attendScores() (*notebook.Stages, error) {
	g := G.NewGraph()
	scores := notebook.Input(g, "scores", notebook.Printed(printedScores, 5, tokens))
	eye := notebook.Input(g, "I", notebook.Eye(tokens))
	_, weights, err := layers.ScaledDotProductWeights(&layers.Build{}, scores, eye, eye, layers.AttentionOptions{Scale: 1})
	if err != nil {
		return nil, err
	}
	var s notebook.Stages
	s.Add("Attention Scores", scores)
	s.Add("Attention Weights", weights)
	return &s, s.Run()
}

// embed adds the embeddings of the tokens to a graph: (T, D), small numbers as a fresh embedding has. Token 1 is token 0.
func embed(b *layers.Build, p *layers.Params, g *G.ExprGraph) (*G.Node, error) {
	table, err := layers.NewEmbedding(p.Scope("embedding"), layers.EmbeddingConfig{
		Vocab: tokens, Dim: embedDim, Init: layers.Uniform(0.05),
	})
	if err != nil {
		return nil, err
	}
	ids := tensor.New(tensor.WithShape(tokens), tensor.WithBacking([]int{0, 0, 1, 2, 3, 4, 5, 6, 7, 8}))
	return table.Forward(b, notebook.Input(g, "ids", ids)) // (T) -> (T, D)
}

// oneHead projects and attends with a Linear for each of queries, keys and values.
func oneHead() (*notebook.Stages, error) {
	p, err := layers.NewParams(tensor.Float64, 1)
	if err != nil {
		return nil, err
	}
	b := &layers.Build{}
	x, err := embed(b, p, G.NewGraph())
	if err != nil {
		return nil, err
	}

	var s notebook.Stages
	var qkv [3]*G.Node
	for i, name := range []string{"q", "k", "v"} {
		l, err := layers.NewLinear(p.Scope(name), layers.LinearConfig{
			In: embedDim, Out: attentionDim, NoBias: true, WeightInit: layers.Normal(1),
		})
		if err != nil {
			return nil, err
		}
		if qkv[i], err = l.Forward(b, x); err != nil { // (T, D) x (attentionDim, D)ᵀ -> (T, attentionDim)
			return nil, err
		}
		weight, err := b.Bind(x.Graph(), l.Weight) // the node that Forward made
		if err != nil {
			return nil, err
		}
		s.Add("w_"+name, weight)
	}
	sum, weights, err := layers.ScaledDotProductWeights(b, qkv[0], qkv[1], qkv[2], layers.AttentionOptions{})
	if err != nil {
		return nil, err
	}
	s.Add("embeddings", x)
	s.Add("Q", qkv[0])
	s.Add("K", qkv[1])
	s.Add("V", qkv[2])
	s.Add("Attention Weights", weights) // (T, T)
	s.Add("Weighted Sum", sum)          // (T, attentionDim)
	return &s, s.Run()
}
