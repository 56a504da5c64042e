// Causalmask shows scaled dot-product attention, stage by stage, with the numbers of the notebook "Self-Attention":
//
//	Attention(Q, K, V) = softmax(Q·Kᵀ/√d_k + M)·V
//
// There are 4 words, with queries, keys and values of width 8. The program shows the variance of the scores before and
// after scaling, the mask M, the attention weights and the new values. M lets a word see itself and the words before
// it.
//
// With a flag, it draws random inputs:
//
//	go run ./examples/causalmask --seed 2 --words 5 --dk 4 --dv 3
package main

import (
	_ "embed"
	"fmt"
	"io"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/examples/internal/picture"
	"github.com/heed-go/heed/layers"
)

func main() { example.Main(run) }

//go:embed printed.txt
var printedText string

// The notebook's printed numbers, rounded to 8 decimals: its inputs Q, K and V, and its results by stage.
var printed = notebook.Sections(printedText)

// printedInputs returns the notebook's queries, keys and values.
func printedInputs() (q, k, v *tensor.Dense) {
	return notebook.Printed(printed["Q"], 4, 8), notebook.Printed(printed["K"], 4, 8), notebook.Printed(printed["V"], 4, 8)
}

func run(w io.Writer, args []string) error {
	flags, seed := example.New("causalmask")
	words := flags.Size("words", 4, 64, "words of the sentence")
	dK := flags.Size("dk", 8, 512, "width of queries and keys")
	dV := flags.Size("dv", 8, 512, "width of values")
	out := flags.Picture("the attention weights")
	if err := flags.Parse(args); err != nil {
		return err
	}
	q, k, v := printedInputs()
	if flags.Own() {
		rng := notebook.Source(*seed)
		q, k, v = notebook.Randn(rng, *words, *dK), notebook.Randn(rng, *words, *dK), notebook.Randn(rng, *words, *dV)
	}
	// Causal has the same effect as M, without a matrix. Mask{Bias: m} would add M itself. The default scale is 1/√d_k.
	s, err := notebook.Attend(q, k, v, layers.AttentionOptions{Mask: layers.Mask{Causal: true}})
	if err != nil {
		return err
	}
	s.Print(w, "Q", "K", "V", "Q·Kᵀ")

	fmt.Fprintln(w, "\nDividing by √d_k keeps the variance of the scores near the variance of Q and K.")
	s.Print(w, "var(Q)", "var(K)", "var(Q·Kᵀ)", "var(Q·Kᵀ/√d_k)", "Q·Kᵀ/√d_k")

	fmt.Fprintln(w, "\nThe mask hides later words from each word: 1 is visible and 0 hidden. M is added to the scores: 0 is visible and -inf hidden.")
	s.Print(w, "mask", "M", "Q·Kᵀ/√d_k + M")

	fmt.Fprintln(w, "\nThe softmax of a row gives the weights for the words that it attends to; a new value is the weighted sum of their values.")
	s.Print(w, "Attention", "New V")
	return picture.Draw(*out, "A word sees itself and the words before it",
		picture.Layer("Attention weights", picture.Count("word ", *words), picture.Count("", *words), s.Values("Attention")))
}
