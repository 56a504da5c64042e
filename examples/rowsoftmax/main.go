// Rowsoftmax shows why the softmax of attention is taken row by row,
//
//	a_ij = exp(s_ij) / Σ_j exp(s_ij)   and not   exp(s_ij) / Σ_i Σ_j exp(s_ij)
//
// on the numbers of the notebook "Self Attention in Transformers". Its first softmax divides by the sum of the whole matrix:
// all weights together sum to 1, and those of a word to 0.08 up to 0.36. So each new value is shrunk by another factor, and
// what one word attends to changes with the scores of every other word, a word after it included, mask or none. (The
// notebook's complete function, at its end, has it right.)
//
// The library has only the right one. The wrong one is, in its terms, a single query that attends to all pairs (i, j).
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

const L, dK, dV = 4, 8, 8 // words, width of queries and keys, width of values

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	r, err := attend()
	if err != nil {
		return err
	}
	r.scores.Print(w)
	fmt.Fprintln(w, "\nSoftmax over the whole matrix, which is wrong:")
	r.whole.Print(w)
	fmt.Fprintln(w, "\nSoftmax of each row, which is right:")
	r.rows.Print(w)
	return nil
}

// results are the stages of three graphs.
type results struct{ scores, whole, rows *notebook.Stages }

func attend() (r results, err error) {
	inf := math.Inf(-1)
	mask := notebook.Matrix(L, L,
		0, inf, inf, inf,
		0, 0, inf, inf,
		0, 0, 0, inf,
		0, 0, 0, 0)
	if r.scores, err = score(mask); err != nil {
		return r, err
	}
	if r.whole, err = wholeMatrix(r.scores.Get("Q·Kᵀ/√d_k"), mask); err != nil {
		return r, err
	}
	r.rows, err = byRows()
	return r, err
}

// score goes from Q and K to the masked scores.
func score(mask *tensor.Dense) (*notebook.Stages, error) {
	g := G.NewGraph()
	q := notebook.Input(g, "Q", notebook.Printed(printedQ, L, dK))
	k := notebook.Input(g, "K", notebook.Printed(printedK, L, dK))
	product := G.Must(G.Mul(q, G.Must(G.Transpose(k))))            // (L, dK) x (L, dK)ᵀ -> (L, L)
	scaled := G.Must(G.Div(product, G.NewConstant(math.Sqrt(dK)))) // (L, L)

	var s notebook.Stages
	s.Add("Q", q)
	s.Add("K", k)
	s.Add("Q·Kᵀ", product)
	s.Add("var(Q)", notebook.Variance(q))
	s.Add("var(K)", notebook.Variance(k))
	s.Add("var(Q·Kᵀ)", notebook.Variance(product))
	s.Add("var(Q·Kᵀ/√d_k)", notebook.Variance(scaled))
	s.Add("Q·Kᵀ/√d_k", scaled)
	s.Add("Q·Kᵀ/√d_k + M", G.Must(G.Add(scaled, notebook.Input(g, "M", mask))))
	return &s, s.Run()
}

// wholeMatrix is the notebook's first softmax: one query whose keys are the L·L pairs, with the scores as they are.
func wholeMatrix(scores, mask *tensor.Dense) (*notebook.Stages, error) {
	flat := func(t *tensor.Dense) *tensor.Dense { return notebook.Matrix(1, L*L, t.Data().([]float64)...) }
	g := G.NewGraph()
	pairs := notebook.Input(g, "I", notebook.Eye(L*L))
	_, weights, err := layers.ScaledDotProductWeights(&layers.Build{}, notebook.Input(g, "scores", flat(scores)), pairs, pairs,
		layers.AttentionOptions{Scale: 1, Mask: layers.Mask{Bias: notebook.Input(g, "M", flat(mask))}}) // (1, L·L)
	if err != nil {
		return nil, err
	}
	var s notebook.Stages
	s.Add("Weights", weights)
	if err := s.Run(); err != nil {
		return nil, err
	}

	g = G.NewGraph()
	a := notebook.Input(g, "weights", notebook.Matrix(L, L, s.Values("Weights")...))
	v := notebook.Input(g, "V", notebook.Printed(printedV, L, dV))
	return mix(a, G.Must(G.Mul(a, v))) // (L, L) x (L, dV) -> (L, dV)
}

// byRows is attention.
func byRows() (*notebook.Stages, error) {
	g := G.NewGraph()
	q := notebook.Input(g, "Q", notebook.Printed(printedQ, L, dK))
	k := notebook.Input(g, "K", notebook.Printed(printedK, L, dK))
	v := notebook.Input(g, "V", notebook.Printed(printedV, L, dV))
	newV, weights, err := layers.ScaledDotProductWeights(&layers.Build{}, q, k, v, layers.AttentionOptions{Mask: layers.Mask{Causal: true}})
	if err != nil {
		return nil, err
	}
	return mix(weights, newV)
}

// mix runs a graph for its weights, what each row of them sums to, and the new values.
func mix(weights, newV *G.Node) (*notebook.Stages, error) {
	var s notebook.Stages
	s.Add("Weights", weights)
	s.Add("Row sums", G.Must(G.Sum(weights, 1)))
	s.Add("New V", newV)
	return &s, s.Run()
}
