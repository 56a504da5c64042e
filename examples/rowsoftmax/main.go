// Rowsoftmax shows why attention needs a softmax for each row of scores:
//
//	a_ij = exp(s_ij) / Σ_j exp(s_ij)   and not   exp(s_ij) / Σ_i Σ_j exp(s_ij)
//
// It uses the numbers of the notebook "Self Attention in Transformers". The notebook's first softmax divides by the sum
// over the whole matrix. So all weights together sum to 1, and the weights of one word sum to only 0.08 to 0.36. Each
// new value is too small, by a factor that differs from word to word. The weights of a word depend on the scores of all
// other words, even hidden words. The library has only the right softmax. To get the wrong one, the program uses a
// single query that attends to all pairs (i, j).
//
// The notebook's closing cell takes the softmax of each row, with new inputs. Its output is cut off before the new
// values and the weights. The weights follow from the printed queries and keys. Only the first four numbers of the
// first new value can be computed: the first word sees only itself, so its new value is its old one, and the notebook
// prints four numbers of that.
//
// With a flag, it draws random inputs:
//
//	go run ./examples/rowsoftmax --seed 2 --words 5
package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/examples/internal/picture"
	"github.com/heed-go/heed/layers"
)

func main() { example.Main(run) }

//go:embed printed.txt
var printedText string

// The notebook's printed numbers, rounded to 8 decimals. Its output is cut off in the 15th number of V, after 0.788.
// The other numbers of V were computed from the printed New V: row i of New V is a mixture of rows 0 to i of V, with
// weights that follow from the printed Q and K. The last cell draws new inputs, and its output is cut off after the
// first four numbers of row 0 of V.
var printed = notebook.Sections(printedText)

// printedInputs returns the notebook's queries, keys and values.
func printedInputs() (q, k, v *tensor.Dense) {
	return notebook.Printed(printed["Q"], 4, 8), notebook.Printed(printed["K"], 4, 8), notebook.Printed(printed["V"], 4, 8)
}

// causal hides later words from each word.
var causal = layers.AttentionOptions{Mask: layers.Mask{Causal: true}}

func run(w io.Writer, args []string) error {
	flags, seed := example.New("rowsoftmax")
	words := flags.Size("words", 4, 64, "words of the sentence")
	dK := flags.Size("dk", 8, 512, "width of queries and keys")
	dV := flags.Size("dv", 8, 512, "width of values")
	out := flags.Picture("both kinds of weights")
	if err := flags.Parse(args); err != nil {
		return err
	}
	q, k, v := printedInputs()
	if flags.Own() {
		rng := notebook.Source(*seed)
		q, k, v = notebook.Randn(rng, *words, *dK), notebook.Randn(rng, *words, *dK), notebook.Randn(rng, *words, *dV)
	}
	rows, err := notebook.Attend(q, k, v, causal)
	if err != nil {
		return err
	}
	right, err := mix(rows.Get("Attention"), v)
	if err != nil {
		return err
	}
	wrong, err := wholeMatrix(rows.Get("Q·Kᵀ/√d_k + M"), v)
	if err != nil {
		return err
	}
	rows.Print(w, "Q", "K")
	if !flags.Own() {
		fmt.Fprintln(w, "The notebook prints 14 numbers of V. The others were computed from its new values below.")
	}
	rows.Print(w, "V", "Q·Kᵀ", "var(Q)", "var(K)", "var(Q·Kᵀ)", "var(Q·Kᵀ/√d_k)", "Q·Kᵀ/√d_k")
	notebook.Print(w, "mask", notebook.Causal(*words, 0, 1)) // here 1 means hidden
	rows.Print(w, "M", "Q·Kᵀ/√d_k + M")
	fmt.Fprintln(w, "\nSoftmax over the whole matrix, which is wrong:")
	wrong.Print(w)
	fmt.Fprintln(w, "\nSoftmax of each row, which is right:")
	right.Print(w)
	labels, columns := picture.Count("word ", *words), picture.Count("", *words)
	err = picture.Draw(*out, "Where the softmax is taken",
		picture.Layer("Over the whole matrix", labels, columns, wrong.Values("Weights")),
		picture.Layer("Over each row", labels, columns, right.Values("Weights")))
	if err != nil || flags.Own() {
		return err
	}

	closing, err := notebook.Attend(notebook.Printed(printed["closing Q"], 4, 8), notebook.Printed(printed["closing K"], 4, 8), firstRow(4), causal)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe notebook's closing cell takes the softmax of each row, with other inputs. It prints four numbers of V.")
	fmt.Fprintln(w, "They are also the first four numbers of the new V, because the first word sees only itself.")
	closing.Print(w, "Q", "K")
	fmt.Fprintf(w, "V, first numbers\n%s\nNew V, first numbers\n%s\n", printed["closing V"], notebook.Format(closing.Values("New V")[:4], 1, 4))
	notebook.Print(w, "Weights", closing.Get("Attention"))
	return nil
}

// firstRow returns the closing cell's values, (L, 4). Numbers that the notebook doesn't print are NaN, which makes
// every result that depends on them NaN.
func firstRow(words int) *tensor.Dense {
	v := notebook.Causal(words, math.NaN(), math.NaN())
	copy(v.Data().([]float64), notebook.Printed(printed["closing V"], 1, 4).Data().([]float64))
	return v
}

// wholeMatrix computes the notebook's first softmax with one query. Its keys are the L·L pairs. Their scores are in
// masked.
func wholeMatrix(masked, values *tensor.Dense) (*notebook.Stages, error) {
	words := masked.Shape()[0]
	g := G.NewGraph()
	zero := notebook.Input(g, "0", notebook.Matrix(1, 1, 0)) // the query; Bias adds its scores
	keys := notebook.Input(g, "keys", notebook.Matrix(words*words, 1, make([]float64, words*words)...))
	bias := notebook.Input(g, "masked scores", notebook.Matrix(1, words*words, masked.Data().([]float64)...))
	attention, err := layers.ScaledDotProductStages(&layers.Build{}, zero, keys, keys, layers.AttentionOptions{Mask: layers.Mask{Bias: bias}})
	if err != nil {
		return nil, err
	}
	var pairs notebook.Stages
	pairs.Add("Weights", attention.Weights) // (1, L·L)
	if err := pairs.Run(); err != nil {
		return nil, err
	}

	return mix(notebook.Matrix(words, words, pairs.Values("Weights")...), values)
}

// mix computes the sum of each row of the weights, and the new values.
func mix(weights, values *tensor.Dense) (*notebook.Stages, error) {
	g := G.NewGraph()
	a, v := notebook.Input(g, "weights", weights), notebook.Input(g, "V", values)
	var s notebook.Stages
	s.Add("Weights", a)
	s.Add("Row sums", G.Must(G.Sum(a, 1)))
	s.Add("New V", G.Must(G.Mul(a, v))) // (L, L) x (L, dV) -> (L, dV)
	return &s, s.Run()
}
