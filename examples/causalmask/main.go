// Causalmask shows scaled dot-product attention, stage by stage, on the numbers of the notebook "Self-Attention":
//
//	Attention(Q, K, V) = softmax(Q·Kᵀ/√d_k + M)·V
//
// for a sentence of 4 words with queries, keys and values of width 8: what the scaling does to the variance of the
// scores, what the mask M hides, the attention weights and the new values. M lets a word see itself and those before it.
package main

import (
	"fmt"
	"io"
	"log"
	"math"
	"os"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	s, err := attend()
	if err != nil {
		return err
	}
	s.Print(w, "Q", "K", "V", "Q·Kᵀ")

	fmt.Fprintln(w, "\nDividing by √d_k keeps the variance of the scores near that of what goes in.")
	s.Print(w, "var(Q)", "var(K)", "var(Q·Kᵀ)", "var(Q·Kᵀ/√d_k)", "Q·Kᵀ/√d_k")

	fmt.Fprintln(w, "\nThe mask hides from every word what comes after it.")
	s.Print(w, "M", "Q·Kᵀ/√d_k + M")

	fmt.Fprintln(w, "\nThe softmax of each row says which words it attends to, and the new values mix theirs.")
	s.Print(w, "Attention", "New V")
	return nil
}

// attend builds the graph and runs it. The attention is layers.ScaledDotProduct; the stages that it goes through on the
// way are built beside it from Gorgonia's own operations, to be looked at.
func attend() (*notebook.Stages, error) {
	const L, dK, dV = 4, 8, 8 // words, width of queries and keys, width of values
	inf := math.Inf(-1)
	g := G.NewGraph()
	q := notebook.Input(g, "Q", notebook.Printed(printedQ, L, dK))
	k := notebook.Input(g, "K", notebook.Printed(printedK, L, dK))
	v := notebook.Input(g, "V", notebook.Printed(printedV, L, dV))
	m := notebook.Input(g, "M", notebook.Matrix(L, L,
		0, inf, inf, inf,
		0, 0, inf, inf,
		0, 0, 0, inf,
		0, 0, 0, 0))

	product := G.Must(G.Mul(q, G.Must(G.Transpose(k))))            // (L, dK) x (L, dK)ᵀ -> (L, L)
	scaled := G.Must(G.Div(product, G.NewConstant(math.Sqrt(dK)))) // (L, L)
	masked := G.Must(G.Add(scaled, m))                             // (L, L)

	// Mask{Bias: m} would add m as it stands; Causal says the same without a matrix.
	newV, weights, err := layers.ScaledDotProductWeights(&layers.Build{}, q, k, v, layers.AttentionOptions{
		Mask: layers.Mask{Causal: true}, // the scale is 1/√dK unless Scale says otherwise
	}) // (L, L) x (L, dV) -> (L, dV)
	if err != nil {
		return nil, err
	}

	var s notebook.Stages
	s.Add("Q", q)
	s.Add("K", k)
	s.Add("V", v)
	s.Add("Q·Kᵀ", product)
	s.Add("var(Q)", notebook.Variance(q))
	s.Add("var(K)", notebook.Variance(k))
	s.Add("var(Q·Kᵀ)", notebook.Variance(product))
	s.Add("Q·Kᵀ/√d_k", scaled)
	s.Add("var(Q·Kᵀ/√d_k)", notebook.Variance(scaled))
	s.Add("M", m)
	s.Add("Q·Kᵀ/√d_k + M", masked)
	s.Add("Attention", weights)
	s.Add("New V", newV)
	return &s, s.Run()
}
