// Sharedprojection shows attention with one weight for queries and keys, as in the notebook on learning contextualised
// embeddings. It starts from the tokens X:
//
//	Q = X·W_qk   K = X·W_qk   V = X·W_v   X' = softmax(Q·Kᵀ/√d_k)·V
//
// There are 3 tokens of width 4, queries and keys of width 6, and values of width 5. W_q = W_k is one Param with two
// uses: it is learned once, its gradient is the sum over both uses, and the scores are symmetric.
//
// The notebook's cells were run out of order. Cells 10 to 13 print the inputs and projections. The scores, attention
// weights and context vectors below them come from cells 8 and 9, which ran earlier with other tokens and weights. So
// some of the notebook's numbers contradict each other:
//   - Q, K and V follow from the printed tokens and weights;
//   - the printed scores don't follow from the printed Q and K: they begin with 5.068, but Q·Kᵀ begins with 5.993;
//   - the printed attention weights do follow from the printed scores;
//   - the printed context vectors follow from no other printed numbers. Attention averages the rows of V, so a column
//     of X' is between the minimum and maximum of the same column of V; but X' has 1.35, and V at most 0.82.
//
// This program prints each table of the notebook, and the right scores, weights and context vectors for the printed
// tokens. With a flag, it draws random tokens and weights:
//
//	go run ./examples/sharedprojection --seed 2 --tokens 4 --dim 3
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

// The notebook's printed numbers, rounded to 8 decimals. The earlier scores, weights and context are from a run with
// other inputs.
var printed = notebook.Sections(printedText)

// printedInputs returns the notebook's tokens and weights.
func printedInputs() inputs {
	return inputs{notebook.Printed(printed["X"], 3, 4), notebook.Printed(printed["W_qk"], 4, 6), notebook.Printed(printed["W_v"], 4, 5)}
}

func run(w io.Writer, args []string) error {
	flags, seed := example.New("sharedprojection")
	tokens := flags.Size("tokens", 3, 64, "tokens")
	dim := flags.Size("dim", 4, 512, "width of a token")
	dK := flags.Size("dk", 6, 512, "width of queries and keys")
	dV := flags.Size("dv", 5, 512, "width of values")
	out := flags.Picture("the attention weights")
	if err := flags.Parse(args); err != nil {
		return err
	}
	in := printedInputs()
	if flags.Own() {
		rng := notebook.Source(*seed)
		in = inputs{notebook.Rand(rng, *tokens, *dim), notebook.Rand(rng, *dim, *dK), notebook.Rand(rng, *dim, *dV)}
	}
	s, learned, err := attend(in)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Learned: %s\n", learned)
	for _, t := range [][3]string{ // a stage, and the notebook's headings
		{"X", "Input tokens", "input tokens"},
		{"W_qk", "Weights for query and key projections vectors", "weights for query and key  projection vectors"},
		{"W_v", "Weights for value  projection vector", "weights for value projection vector"},
		{"Q", "Query vectors", "query vectors"},
		{"K", "Key vectors", "key vectors"},
		{"V", "Value vectors", "value vectors"},
		{"Q·Kᵀ", "Similarity scores", "similarity scores"},
		{"weights", "Attention weights", "attention weights"},
		{"context", "Context vectors", "context vectors"},
	} {
		notebook.Print(w, t[1], s.Get(t[0]))
		shape := s.Get(t[0]).Shape() // the weights are (1, 1, n, n), with batch and heads first
		fmt.Fprintf(w, "Shape of %s:  %v\n", t[2], shape[len(shape)-2:])
	}
	err = picture.Draw(*out, "One weight for queries and keys",
		picture.Layer("Attention weights", picture.Count("token ", *tokens), picture.Count("", *tokens), s.Values("weights")))
	if err != nil || flags.Own() {
		return err
	}

	earlier, err := notebook.AttendScores(notebook.Printed(printed["earlier scores"], 3, 3), 1/math.Sqrt(6))
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe notebook's scores, from an earlier run with tokens that it doesn't print, and the weights that follow from them:")
	notebook.Print(w, "Similarity scores", earlier.Get("Q·Kᵀ"))
	notebook.Print(w, "Attention weights", earlier.Get("Attention"))
	fmt.Fprintf(w, "Its context vectors, also from that run, which don't follow from its printed numbers\n%s\n", printed["earlier context"])
	return nil
}

// inputs are the tokens (n, d), the weight for queries and keys (d, dK), and the weight for values (d, dV).
type inputs struct{ x, wQK, wV *tensor.Dense }

// attend computes the stages from tokens to context vectors. It also returns the names of the graph's learnables.
func attend(inputs inputs) (*notebook.Stages, []string, error) {
	p := example.Must(layers.NewParams(tensor.Float64, 1))
	a := example.Must(layers.NewMultiHeadAttention(p, inputs.x.Shape()[1], layers.AttentionConfig{
		HeadDim: inputs.wQK.Shape()[1], ValueDim: inputs.wV.Shape()[1], Heads: 1, NoBias: true, NoOutput: true,
		TieQueryKey: true, // one W for both
	}))
	// The notebook's weights have shape (in, out) for x·W, and a Linear's (out, in) for x·Wᵀ.
	notebook.Set(a.Query.Weight, example.Must(tensor.Transpose(inputs.wQK)).(*tensor.Dense))
	notebook.Set(a.Value.Weight, example.Must(tensor.Transpose(inputs.wV)).(*tensor.Dense))

	b := &layers.Build{CaptureWeights: true}
	g := G.NewGraph()
	x := notebook.Input(g, "X", inputs.x)
	context := G.Must(a.Forward(b, x, x, x, layers.Mask{})) // (n, d) -> (n, dV)
	weights := b.AttentionWeights()[0].Weights              // (1, 1, n, n)

	// Add the inner stages. A graph binds each weight once, so these projections use the same nodes as attention.
	var s notebook.Stages
	s.Add("X", x)
	s.Add("W_qk", G.Must(G.Transpose(G.Must(b.Bind(g, a.Query.Weight)))))       // (dK, d) -> (d, dK)
	s.Add("W_v", G.Must(G.Transpose(G.Must(b.Bind(g, a.Value.Weight)))))        // (dV, d) -> (d, dV)
	s.AddProjections(b, a, x)                                                   // (n, d) x (dK or dV, d)ᵀ -> (n, dK) or (n, dV)
	s.Add("Q·Kᵀ", G.Must(G.Mul(s.Node("Q"), G.Must(G.Transpose(s.Node("K")))))) // (n, dK) x (n, dK)ᵀ -> (n, n)
	s.Add("weights", weights)
	s.Add("context", context)
	var names []string
	for _, node := range b.Learnables() {
		names = append(names, node.Name())
	}
	return &s, names, s.Run()
}
