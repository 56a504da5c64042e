// Sharedprojection shows attention from the tokens X on, with one weight for queries and keys, as the notebook on
// learning contextualised embeddings has it:
//
//	Q = X·W_qk   K = X·W_qk   V = X·W_v   X' = softmax(Q·Kᵀ/√d_k)·V
//
// for 3 tokens of width 4, queries and keys of width 6 and values of width 5. W_q = W_k is one Param in two places: it is
// learned once, its gradient is the sum of both uses, and the scores are symmetric.
//
// The notebook's cells were run out of order: inputs and projections are of its cells 10 to 13, but the scores, the
// attention weights and the context vectors below them are of cells 8 and 9, which ran before on other tokens and weights.
// So its numbers don't all agree with each other:
//   - Q, K and V follow from the printed tokens and weights;
//   - the printed scores don't follow from the printed Q and K: they begin with 5.068, where Q·Kᵀ begins with 5.993;
//   - the printed attention weights do follow from the printed scores;
//   - the printed context vectors follow from nothing else that is printed. Attention only averages, so that a column of X'
//     lies between the least and the greatest value of that column of V; printed is 1.35 where V has 0.82 at most.
//
// This program prints each table of the notebook that follows from something, and the scores, weights and context vectors
// that are right for the printed tokens.
package main

import (
	"fmt"
	"io"
	"log"
	"math"
	"os"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
)

const n, d, dK, dV = 3, 4, 6, 5 // tokens, their width, width of queries and keys, width of values

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	right, params, err := attend()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Learned: %s\n", params)
	right.Print(w)

	earlier, err := attendScores()
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nOf the notebook's earlier run, on tokens that it doesn't print:")
	earlier.Print(w)
	return nil
}

// attend goes from the printed tokens and weights to the context vectors. It also says which parameters the graph has.
func attend() (*notebook.Stages, []string, error) {
	p, err := layers.NewParams(tensor.Float64, 1)
	if err != nil {
		return nil, nil, err
	}
	a, err := layers.NewMultiHeadAttention(p, layers.MultiHeadConfig{
		Dim: d, HeadDim: dK, ValueDim: dV, Heads: 1, NoBias: true, NoOutput: true,
		TieQueryKey: true, // one W for both
	})
	if err != nil {
		return nil, nil, err
	}
	if err := setTransposed(a.Query.Weight, notebook.Printed(printedWqk, d, dK)); err != nil {
		return nil, nil, err
	}
	if err := setTransposed(a.Value.Weight, notebook.Printed(printedWv, d, dV)); err != nil {
		return nil, nil, err
	}

	b := &layers.Build{}
	x := notebook.Input(G.NewGraph(), "X", notebook.Printed(printedX, n, d))
	context, weights, err := a.ForwardWeights(b, x, x, x, layers.Mask{}) // (n, dV) and (1, 1, n, n)
	if err != nil {
		return nil, nil, err
	}

	// The stages inside, to look at: a weight that the graph has is bound once, so these are projections by the same nodes.
	q, err := a.Query.Forward(b, x) // (n, d) x (dK, d)ᵀ -> (n, dK)
	if err != nil {
		return nil, nil, err
	}
	k, err := a.Key.Forward(b, x) // (n, d) x (dK, d)ᵀ -> (n, dK)
	if err != nil {
		return nil, nil, err
	}
	v, err := a.Value.Forward(b, x) // (n, d) x (dV, d)ᵀ -> (n, dV)
	if err != nil {
		return nil, nil, err
	}

	var s notebook.Stages
	s.Add("Input tokens", x)
	s.Add("Query vectors", q)
	s.Add("Key vectors", k)
	s.Add("Value vectors", v)
	s.Add("Similarity scores", G.Must(G.Mul(q, G.Must(G.Transpose(k))))) // (n, dK) x (n, dK)ᵀ -> (n, n)
	s.Add("Attention weights", weights)
	s.Add("Context vectors", context)
	var names []string
	for _, node := range b.Learnables() {
		names = append(names, node.Name())
	}
	return &s, names, s.Run()
}

// attendScores goes from the printed scores to the printed attention weights.
func attendScores() (*notebook.Stages, error) {
	g := G.NewGraph()
	scores := notebook.Input(g, "scores", notebook.Printed(printedScores, n, n))
	eye := notebook.Input(g, "I", notebook.Eye(n))
	_, weights, err := layers.ScaledDotProductWeights(&layers.Build{}, scores, eye, eye, layers.AttentionOptions{Scale: 1 / math.Sqrt(dK)})
	if err != nil {
		return nil, err
	}
	var s notebook.Stages
	s.Add("Similarity scores", scores)
	s.Add("Attention weights", weights)
	return &s, s.Run()
}

// setTransposed fills the weight of a Linear, which is (out, in) and is used as x·Wᵀ, with one of shape (in, out) that the
// notebook uses as x·W.
func setTransposed(p *layers.Param, w *tensor.Dense) error {
	t, err := tensor.Transpose(w) // a copy: w stays as it is
	if err != nil {
		return err
	}
	return notebook.Set(p, t.(*tensor.Dense))
}
