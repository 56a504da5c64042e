// Projections shows where queries, keys and values come from. Each is a token's embedding times a learned weight of
// shape (attention_dim, embed_dim), for one head and for three:
//
//	Q = X·W_qᵀ   K = X·W_kᵀ   V = X·W_vᵀ   weighted sum = softmax(Q·Kᵀ/√d)·V
//
// The shapes are from the notebook "Self Attention Mechanism": 10 tokens of width 16. The second token is the same as
// the first. The notebook doesn't print its embeddings, weights and values, so its weighted sums and the queries of its
// three heads can't be checked: the program prints them beside its own. The notebook does print scores and their
// softmax, and the program computes the softmax of the five complete rows of scores. For everything else, it draws
// random embeddings and weights from a seed. As in the notebook, weighted_sum[1] equals weighted_sum[0].
//
// Flags change the seed and the sizes:
//
//	go run ./examples/projections --seed 2 --tokens 4 --dim 6 --heads 2
package main

import (
	_ "embed"
	"fmt"
	"io"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
)

func main() { example.Main(run) }

//go:embed printed.txt
var printedText string

// The notebook's numbers: the scaled attention scores, of which it prints five of ten rows in full, the start of the
// sixth row, where its output is cut off, and numbers that don't follow from those that it prints. Each of these but
// the second token's sum, "second", is cut off at its end.
var printed = notebook.Sections(printedText)

// sizes are T, D and H. As in the notebook, each head is as wide as an embedding: attention_dim = embed_dim.
type sizes struct{ tokens, dim, heads int }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("projections")
	tokens := flags.Size("tokens", 10, 64, "tokens")
	dim := flags.Size("dim", 16, 256, "width of an embedding, and of a head")
	heads := flags.Size("heads", 3, 16, "heads in the part with several heads")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !flags.Own() {
		softmax, err := notebook.AttendScores(notebook.Printed(printed["scores"], 5, 10), 1) // they are scaled
		if err != nil {
			return err
		}
		fmt.Fprintln(w, "The notebook's printed scores, and the softmax of the rows that it prints in full:")
		fmt.Fprintf(w, "Attention Scores\n%s\n%s...\n", printed["scores"][:len(printed["scores"])-1], printed["broken row"])
		notebook.Print(w, "Attention Weights", softmax.Get("Attention"))
		fmt.Fprintln(w, "\nIts other numbers don't follow from those that it prints. With random numbers from this program's seed:")
	}
	beside := func(table string) {
		if !flags.Own() {
			fmt.Fprintf(w, "The notebook's, which don't follow from the numbers that it prints:\n%s\n", table)
		}
	}
	n := sizes{*tokens, *dim, *heads}
	one, err := oneHead(*seed, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "One head:\nembed_size: %d\n", n.dim)
	for _, name := range []string{"w_q", "w_k", "w_v", "Q", "K", "V"} {
		fmt.Fprintf(w, "%s Shape : %v\n", name, one.Get(name).Shape())
	}
	for _, name := range []string{"Attention Scores", "Attention Weights", "Weighted Sum"} {
		one.Print(w, name)
		if name == "Attention Weights" {
			beside(printed["last weights"] + "...")
		} else if name == "Weighted Sum" {
			beside(printed["sum"] + "...")
		}
		fmt.Fprintf(w, "Shape : %v\n", one.Get(name).Shape())
	}
	if n.tokens > 1 {
		fmt.Fprintln(w, "Weighted sum of the second token, which equals the first, because the tokens are the same")
		fmt.Fprintln(w, notebook.Format(one.Values("Weighted Sum")[n.dim:2*n.dim], n.dim))
		beside(printed["second"])
	}

	several, err := severalHeads(*seed, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nHeads: %d\nembeddings Shape : %v\n", n.heads, several.Get("embeddings").Shape())
	for _, name := range []string{"Queries", "Keys", "Values"} {
		split := splitHeads(several.Get(name[:1]), n.heads)
		if name == "Queries" { // the notebook's output is cut off here
			notebook.Print(w, name, split)
			beside(printed["queries"] + "...")
		}
		fmt.Fprintf(w, "%s Shape : %v\n", name, split.Shape())
	}
	weights := several.Get("Attention Weights").Shape()[1:] // without the axis for the batch
	fmt.Fprintf(w, "Attention Weights Shape : %v\n", weights)
	fmt.Fprintf(w, "Weighted Sum Shape : %v, the heads side by side\n", several.Get("Weighted Sum").Shape())
	return nil
}

// embed adds the tokens' embeddings to a graph: (T, D), small random numbers. Tokens 0 and 1 are the same.
func embed(b *layers.Build, p *layers.Params, n sizes) *G.Node {
	table := example.Must(layers.NewEmbedding(p.Scope("embedding"), n.tokens, n.dim, layers.Uniform(0.05)))
	ids := make([]int, n.tokens) // 0, 0, 1, 2, …
	for i := 1; i < n.tokens; i++ {
		ids[i] = i - 1
	}
	inputs := notebook.Input(G.NewGraph(), "ids", tensor.New(tensor.WithShape(n.tokens), tensor.WithBacking(ids)))
	return G.Must(table.Forward(b, inputs)) // (T) -> (T, D)
}

// oneHead computes attention with one head and a Linear each for queries, keys and values.
func oneHead(seed uint64, n sizes) (*notebook.Stages, error) {
	p := example.Must(layers.NewParams(tensor.Float64, seed))
	b := &layers.Build{}
	x := embed(b, p, n)

	var s notebook.Stages
	var qkv [3]*G.Node
	for i, name := range []string{"q", "k", "v"} {
		l := example.Must(layers.NewLinear(p.Scope(name), n.dim, n.dim, layers.LinearConfig{NoBias: true, Init: layers.Normal(1)}))
		qkv[i] = G.Must(l.Forward(b, x))                      // (T, D) x (D, D)ᵀ -> (T, D)
		s.Add("w_"+name, G.Must(b.Bind(x.Graph(), l.Weight))) // the same node as in Forward
	}
	attention, err := layers.ScaledDotProductStages(b, qkv[0], qkv[1], qkv[2], layers.AttentionOptions{})
	if err != nil {
		return nil, err
	}
	s.Add("embeddings", x)
	s.Add("Q", qkv[0])
	s.Add("K", qkv[1])
	s.Add("V", qkv[2])
	s.Add("Attention Scores", attention.Scores)   // (T, T), scaled
	s.Add("Attention Weights", attention.Weights) // (T, T)
	s.Add("Weighted Sum", attention.Output)       // (T, D)
	return &s, s.Run()
}
