// Sentence shows every step of attention, from the words to a table of weights. The sentence and the shapes come from
// the notebook "Self Attention in Transformers":
//
//	tokens (6) -> X (6, 512) -> Q, K, V (6, 64) -> softmax(Q·Kᵀ/√64) (6, 6) -> output (6, 64)
//
// First it uses random embeddings and weights, so the table means nothing yet. Then it starts from the notebook's table
// of scores. The notebook's weights for "cat" (0.05, 0.15, 0.65, 0.03, 0.07, 0.05) are only an illustration. The
// softmax of its scores gives "sat" only 0.21, not 0.65, because the scores divided by √64 are close together. The
// program shows both sets of weights. With each set, it writes the output of "cat" as a weighted sum of the random
// values.
//
// Flags change the sentence, the seed and the sizes:
//
//	go run ./examples/sentence --sentence "a rose is a rose" --word rose --seed 2
package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/examples/internal/picture"
	"github.com/heed-go/heed/layers"
)

func main() { example.Main(run) }

// printedEmbeddings are two embeddings as the notebook prints them.
const printedEmbeddings = `"cat" → [0.2, -0.1, 0.8, 0.3, ..., 0.5]  (d_model = 512 dimensions)
"sat" → [0.1, 0.4, -0.2, 0.7, ..., -0.3] (d_model = 512 dimensions)`

func run(w io.Writer, args []string) error {
	flags, seed := example.New("sentence")
	sentence := flags.String("sentence", "The cat sat on the mat", "`SENTENCE`: words separated by spaces, in quotes")
	word := flags.String("word", "", "show the output of this `WORD` as a sum (default the second word)")
	dim := flags.Size("dim", 512, 1024, "width of an embedding, d_model")
	dK := flags.Size("dk", 64, 512, "width of queries, keys and values")
	out := flags.Picture("the attention weights")
	if err := flags.Parse(args); err != nil {
		return err
	}
	tokens := strings.Fields(*sentence)
	if len(tokens) == 0 || len(tokens) > 32 {
		return flags.Wrong(fmt.Errorf("expected a sentence of 1 to 32 words, got %d", len(tokens)))
	}
	if *word == "" {
		*word = tokens[min(1, len(tokens)-1)]
	}
	row := slices.Index(tokens, *word)
	if row < 0 {
		return flags.Wrong(fmt.Errorf("expected a word of the sentence %q, got %q", *sentence, *word))
	}
	s, err := attend(*seed, tokens, *dim, *dK)
	if err != nil {
		return err
	}
	printSteps(w, tokens, s)
	if !flags.Own() {
		fmt.Fprintf(w, "The notebook's embeddings are an illustration, not results. The ones above are random:\n%s\n", printedEmbeddings)
	}
	n := len(tokens)
	decompose(w, tokens, row, s.Values("weights")[row*n:][:n], s.Get("V"))
	untrained := picture.Layer("Untrained", tokens, tokens, s.Values("weights"))
	if flags.Own() {
		return picture.Draw(*out, *sentence, untrained)
	}

	scored, err := notebook.AttendScores(notebook.Printed(printedScores, 6, 6), 1./8) // 1/√64
	if err != nil {
		return err
	}
	byScores := picture.Layer("By the notebook's scores", tokens, tokens, scored.Values("Attention"))
	if err := picture.Draw(*out, *sentence, untrained, byScores); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe notebook's scores:")
	notebook.Table(w, tokens, tokens, scored.Values("Q·Kᵀ"), 1)
	fmt.Fprintln(w, "Scaled, scores/√64:")
	notebook.Table(w, tokens, tokens, scored.Values("Q·Kᵀ/√d_k"), 4)
	fmt.Fprintln(w, "Their attention weights, softmax(scores/√64):")
	notebook.Table(w, tokens, tokens, scored.Values("Attention"), 2)
	decompose(w, tokens, row, scored.Values("Attention")[row*n:][:n], s.Get("V"))
	fmt.Fprintln(w, "\nThe notebook's illustration, which isn't the softmax of its scores:")
	decompose(w, tokens, row, illustration, s.Get("V"))
	return nil
}

// printSteps prints the tokens, the shape of each stage, and the attention weights.
func printSteps(w io.Writer, tokens []string, s *notebook.Stages) {
	quoted := make([]string, len(tokens))
	for i, token := range tokens {
		quoted[i] = strconv.Quote(token)
	}
	fmt.Fprintf(w, "Input sentence: %q\n", strings.Join(tokens, " "))
	fmt.Fprintf(w, "Tokens: [%s]\nToken positions: [%s]\n", strings.Join(quoted, ", "), strings.Join(picture.Count("", len(tokens)), ", "))
	x, dim := s.Values("X"), s.Get("X").Shape()[1]
	for i, token := range quoted {
		fmt.Fprintf(w, "%s → [%.1f, ..., %.1f]  (d_model = %d dimensions)\n", token, x[i*dim], x[(i+1)*dim-1], dim)
	}
	for _, name := range []string{"X", "Q", "K", "V"} {
		fmt.Fprintf(w, "%s has shape %v\n", name, s.Get(name).Shape())
	}
	fmt.Fprintf(w, "W_q, W_k, W_v have shape %v\n", tensor.Shape{dim, s.Get("Q").Shape()[1]})
	fmt.Fprintf(w, "Attention_Scores has shape %v\n", s.Get("weights").Shape()[2:])
	fmt.Fprintln(w, "| Token | Original Embedding | Query Vector | Key Vector | Value Vector |")
	for _, token := range quoted {
		fmt.Fprintf(w, "| %s | [%d dims] → |", token, dim)
		for _, name := range []string{"Q", "K", "V"} {
			fmt.Fprintf(w, " [%d dims] |", s.Get(name).Shape()[1])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "Attention weights, untrained:")
	notebook.Table(w, tokens, tokens, s.Values("weights"), 2)
	fmt.Fprintf(w, "Output has shape %v\n", s.Get("output").Shape())
}

// decompose prints one token's attention weights, and its output as a sum of weighted values. It prints the first
// numbers of each term and of the sum.
func decompose(w io.Writer, tokens []string, row int, weights []float64, v *tensor.Dense) {
	dK := v.Shape()[1]
	shown := min(dK, 6)
	fmt.Fprintf(w, "Attention weights for %q looking at all tokens:\n", tokens[row])
	terms, labels, sum := []float64{}, []string{}, 0.0
	output := make([]float64, shown)
	for j, token := range tokens {
		fmt.Fprintf(w, "%q → %.2f\n", token, weights[j])
		sum += weights[j]
		labels = append(labels, fmt.Sprintf("%.2f * V_%q", weights[j], token))
		for i := range shown {
			term := weights[j] * v.Data().([]float64)[j*dK+i]
			terms = append(terms, term)
			output[i] += term
		}
	}
	fmt.Fprintf(w, "Sum = %.2f\n%s_output (the first %d of %d numbers) as a sum:\n", sum, tokens[row], shown, dK)
	notebook.Table(w, append(labels, tokens[row]+"_output"), picture.Count("", shown), append(terms, output...), 4)
}

// attend embeds the tokens and computes self-attention over them.
func attend(seed uint64, tokens []string, dim, dK int) (*notebook.Stages, error) {
	var vocabulary []string
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		if !slices.Contains(vocabulary, t) {
			vocabulary = append(vocabulary, t) // "The" and "the" differ
		}
		ids[i] = slices.Index(vocabulary, t)
	}

	p := example.Must(layers.NewParams(tensor.Float64, seed))
	embedding := example.Must(layers.NewEmbedding(p.Scope("embedding"), len(vocabulary), dim, layers.Normal(1)))
	attention := example.Must(layers.NewMultiHeadAttention(p.Scope("attention"), dim, layers.AttentionConfig{
		HeadDim: dK, NoBias: true, NoOutput: true, // one head
	}))

	b := &layers.Build{CaptureWeights: true}
	inputs := notebook.Input(G.NewGraph(), "ids", tensor.New(tensor.WithShape(len(ids)), tensor.WithBacking(ids)))
	x := G.Must(embedding.Forward(b, inputs))                      // (n) -> (n, dim)
	output := G.Must(attention.Forward(b, x, x, x, layers.Mask{})) // (n, dim) -> (n, dK)

	var s notebook.Stages
	s.Add("X", x)
	s.Add("weights", b.AttentionWeights()[0].Weights) // (1, 1, n, n)
	s.Add("output", output)
	s.AddProjections(b, attention, x) // (n, dim) x (dK, dim)ᵀ -> (n, dK)
	return &s, s.Run()
}

// illustration has the notebook's illustrative attention weights for "cat".
var illustration = []float64{0.05, 0.15, 0.65, 0.03, 0.07, 0.05}

// printedScores are the notebook's scores.
const printedScores = `[[2.1 1.2 0.8 0.9 2.0 0.7]
 [1.1 3.2 4.1 0.6 1.0 1.8]
 [0.9 4.0 2.8 2.1 0.8 2.2]
 [0.7 1.5 2.3 1.9 1.1 3.1]
 [1.8 1.0 0.9 1.2 2.1 0.8]
 [0.6 2.1 1.9 2.8 0.7 2.5]]`
