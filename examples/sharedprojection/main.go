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
	for _, t := range [][2]string{ // the notebook's headings
		{"Input tokens", "input tokens"},
		{"Weights for query and key projections vectors", "weights for query and key  projection vectors"},
		{"Weights for value  projection vector", "weights for value projection vector"},
		{"Query vectors", "query vectors"},
		{"Key vectors", "key vectors"},
		{"Value vectors", "value vectors"},
		{"Similarity scores", "similarity scores"},
		{"Attention weights", "attention weights"},
		{"Context vectors", "context vectors"},
	} {
		s.Print(w, t[0])
		shape := s.Get(t[0]).Shape() // the weights are (1, 1, n, n), with batch and heads first
		fmt.Fprintf(w, "Shape of %s:  %v\n", t[1], shape[len(shape)-2:])
	}
	err = picture.Write(*out, heatmap.Figure{Title: "One weight for queries and keys", Layers: []heatmap.Layer{
		picture.Layer("Attention weights", picture.Count("token ", *tokens), picture.Count("", *tokens), s.Values("Attention weights")),
	}})
	if err != nil || flags.Own() {
		return err
	}

	earlier, err := attendScores(notebook.Printed(printedScores, 3, 3), 6)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe notebook's scores, from an earlier run with tokens that it doesn't print, and the weights that follow from them:")
	earlier.Print(w)
	fmt.Fprintf(w, "Its context vectors, also from that run, which don't follow from its printed numbers\n%s\n", printedContext)
	return nil
}

// inputs are the tokens (n, d), the weight for queries and keys (d, dK), and the weight for values (d, dV).
type inputs struct{ x, wQK, wV *tensor.Dense }

// attend computes the stages from tokens to context vectors. It also returns the names of the graph's learnables.
func attend(inputs inputs) (*notebook.Stages, []string, error) {
	p, err := layers.NewParams(tensor.Float64, 1)
	if err != nil {
		return nil, nil, err
	}
	a, err := layers.NewMultiHeadAttention(p, inputs.x.Shape()[1], layers.AttentionConfig{
		HeadDim: inputs.wQK.Shape()[1], ValueDim: inputs.wV.Shape()[1], Heads: 1, NoBias: true, NoOutput: true,
		TieQueryKey: true, // one W for both
	})
	if err != nil {
		return nil, nil, err
	}
	if err := setTransposed(a.Query.Weight, inputs.wQK); err != nil {
		return nil, nil, err
	}
	if err := setTransposed(a.Value.Weight, inputs.wV); err != nil {
		return nil, nil, err
	}

	b := &layers.Build{CaptureWeights: true}
	g := G.NewGraph()
	x := notebook.Input(g, "X", inputs.x)
	context, err := a.Forward(b, x, x, x, layers.Mask{}) // (n, d) -> (n, dV)
	if err != nil {
		return nil, nil, err
	}
	weights := b.AttentionWeights()[0].Weights // (1, 1, n, n)

	// Add the inner stages. A graph binds each weight once, so these projections use the same nodes as attention.
	var s notebook.Stages
	s.Add("Input tokens", x)
	var projected [3]*G.Node
	for i, l := range []*layers.Linear{a.Query, a.Key, a.Value} {
		if projected[i], err = l.Forward(b, x); err != nil { // (n, d) x (dK or dV, d)ᵀ -> (n, dK) or (n, dV)
			return nil, nil, err
		}
	}
	for i, name := range []string{"Weights for query and key projections vectors", "Weights for value  projection vector"} {
		weight, err := b.Bind(g, []*layers.Linear{a.Query, a.Value}[i].Weight)
		if err != nil {
			return nil, nil, err
		}
		s.Add(name, G.Must(G.Transpose(weight))) // (dK, d) -> (d, dK)
	}
	s.Add("Query vectors", projected[0])
	s.Add("Key vectors", projected[1])
	s.Add("Value vectors", projected[2])
	product := G.Must(G.Mul(projected[0], G.Must(G.Transpose(projected[1])))) // (n, dK) x (n, dK)ᵀ -> (n, n)
	s.Add("Similarity scores", product)
	s.Add("Attention weights", weights)
	s.Add("Context vectors", context)
	var names []string
	for _, node := range b.Learnables() {
		names = append(names, node.Name())
	}
	return &s, names, s.Run()
}

// attendScores computes attention weights from scores, (n, n). It uses the scores as queries and I as keys.
func attendScores(similarity *tensor.Dense, dK int) (*notebook.Stages, error) {
	g := G.NewGraph()
	scores := notebook.Input(g, "scores", similarity)
	eye := notebook.Input(g, "I", notebook.Eye(similarity.Shape()[0]))
	attention, err := layers.ScaledDotProductStages(&layers.Build{}, scores, eye, eye, layers.AttentionOptions{Scale: 1 / math.Sqrt(float64(dK))})
	if err != nil {
		return nil, err
	}
	var s notebook.Stages
	s.Add("Similarity scores", scores)
	s.Add("Attention weights", attention.Weights)
	return &s, s.Run()
}

// setTransposed copies the notebook's weight, which has shape (in, out) for x·W, into a Linear's weight, which has
// shape (out, in) for x·Wᵀ.
func setTransposed(p *layers.Param, w *tensor.Dense) error {
	t, err := tensor.Transpose(w) // a copy of w
	if err != nil {
		return err
	}
	return notebook.Set(p, t.(*tensor.Dense))
}
