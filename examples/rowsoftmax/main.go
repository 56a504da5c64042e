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
	"fmt"
	"io"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/examples/internal/picture"
	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/layers"
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("rowsoftmax")
	words := flags.Size("words", 4, 64, "words of the sentence")
	dK := flags.Size("dk", 8, 512, "width of queries and keys")
	dV := flags.Size("dv", 8, 512, "width of values")
	out := flags.Picture("both kinds of weights")
	if err := flags.Parse(args); err != nil {
		return err
	}
	in := printedInputs()
	if flags.Own() {
		rng := notebook.Source(*seed)
		in = inputs{notebook.Randn(rng, *words, *dK), notebook.Randn(rng, *words, *dK), notebook.Randn(rng, *words, *dV)}
	}
	rows, err := byRows(in)
	if err != nil {
		return err
	}
	whole, err := wholeMatrix(rows.Get("Q·Kᵀ/√d_k + M"), in.v)
	if err != nil {
		return err
	}
	rows.Print(w, "Q", "K")
	if !flags.Own() {
		fmt.Fprintln(w, "The notebook prints 14 numbers of V. The others were computed from its new values below.")
	}
	rows.Print(w, "V", "Q·Kᵀ", "var(Q)", "var(K)", "var(Q·Kᵀ)", "var(Q·Kᵀ/√d_k)", "Q·Kᵀ/√d_k", "mask", "M", "Q·Kᵀ/√d_k + M")
	fmt.Fprintln(w, "\nSoftmax over the whole matrix, which is wrong:")
	whole.Print(w)
	fmt.Fprintln(w, "\nSoftmax of each row, which is right:")
	rows.Print(w, "Weights", "Row sums", "New V")
	labels, columns := picture.Count("word ", *words), picture.Count("", *words)
	err = picture.Write(*out, heatmap.Figure{Title: "Where the softmax is taken", Layers: []heatmap.Layer{
		picture.Layer("Over the whole matrix", labels, columns, whole.Values("Weights")),
		picture.Layer("Over each row", labels, columns, rows.Values("Weights")),
	}})
	if err != nil || flags.Own() {
		return err
	}

	closing, err := byRows(inputs{notebook.Printed(closingQ, 4, 8), notebook.Printed(closingK, 4, 8), firstRow(4)})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe notebook's closing cell takes the softmax of each row, with other inputs. It prints four numbers of V.")
	fmt.Fprintln(w, "They are also the first four numbers of the new V, because the first word sees only itself.")
	closing.Print(w, "Q", "K")
	fmt.Fprintf(w, "V, first numbers\n%s\nNew V, first numbers\n%s\n", closingV, notebook.Format(closing.Values("New V")[:4], 1, 4))
	closing.Print(w, "Weights")
	return nil
}

// firstRow returns the closing cell's values, (L, 4). Numbers that the notebook doesn't print are NaN, which makes
// every result that depends on them NaN.
func firstRow(words int) *tensor.Dense {
	v := notebook.Causal(words, math.NaN(), math.NaN())
	copy(v.Data().([]float64), notebook.Printed(closingV, 1, 4).Data().([]float64))
	return v
}

// inputs are queries, keys (L, dK) and values (L, dV).
type inputs struct{ q, k, v *tensor.Dense }

// byRows computes attention, with a softmax for each row.
func byRows(inputs inputs) (*notebook.Stages, error) {
	words := inputs.q.Shape()[0] // L
	g := G.NewGraph()
	q, k, v := notebook.Input(g, "Q", inputs.q), notebook.Input(g, "K", inputs.k), notebook.Input(g, "V", inputs.v)
	attention, err := layers.ScaledDotProductStages(&layers.Build{}, q, k, v, layers.AttentionOptions{Mask: layers.Mask{Causal: true}})
	if err != nil {
		return nil, err
	}
	product := G.Must(G.Mul(q, G.Must(G.Transpose(k)))) // (L, dK) x (L, dK)ᵀ -> (L, L)

	var s notebook.Stages
	s.Add("Q", q)
	s.Add("K", k)
	s.Add("V", v)
	s.Add("Q·Kᵀ", product)
	s.Add("var(Q)", notebook.Variance(q))
	s.Add("var(K)", notebook.Variance(k))
	s.Add("var(Q·Kᵀ)", notebook.Variance(product))
	s.Add("var(Q·Kᵀ/√d_k)", notebook.Variance(attention.Scores))
	s.Add("Q·Kᵀ/√d_k", attention.Scores)
	s.Add("mask", notebook.Input(g, "mask", notebook.Causal(words, 0, 1))) // here 1 means hidden
	s.Add("M", notebook.Input(g, "M", notebook.Causal(words, 0, math.Inf(-1))))
	s.Add("Q·Kᵀ/√d_k + M", attention.Masked)
	mix(&s, attention.Weights, attention.Output)
	return &s, s.Run()
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

	g = G.NewGraph()
	weights := notebook.Input(g, "weights", notebook.Matrix(words, words, pairs.Values("Weights")...))
	var s notebook.Stages
	mix(&s, weights, G.Must(G.Mul(weights, notebook.Input(g, "V", values)))) // (L, L) x (L, dV) -> (L, dV)
	return &s, s.Run()
}

// mix adds the weights, the sum of each of their rows, and the new values.
func mix(s *notebook.Stages, weights, newV *G.Node) {
	s.Add("Weights", weights)
	s.Add("Row sums", G.Must(G.Sum(weights, 1)))
	s.Add("New V", newV)
}
