package decode_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// words is a Model in which each word depends only on the word before it. A table has the probabilities.
type words struct {
	names []string
	next  [][]float64 // probabilities of the next word, by the last word
	last  []int       // last word of each sequence
}

func newWords(batch int) *words {
	return &words{
		names: []string{".", "the", "cat", "dog", "sleeps"},
		next: [][]float64{
			{0, 1, 0, 0, 0},
			{0, 0, .6, .4, 0},
			{.55, 0, 0, 0, .45},
			{.1, 0, 0, 0, .9},
			{1, 0, 0, 0, 0},
		},
		last: make([]int, batch),
	}
}

func (w *words) Batch() int   { return len(w.last) }
func (w *words) Vocab() int   { return len(w.names) }
func (w *words) Room(int) int { return math.MaxInt }

func (w *words) Step(tokens [][]int) ([][]float64, error) {
	logits := make([][]float64, len(tokens))
	for i, row := range tokens {
		if len(row) == 0 {
			continue
		}
		w.last[i] = row[len(row)-1]
		for _, p := range w.next[w.last[i]] {
			logits[i] = append(logits[i], math.Log(p))
		}
	}
	return logits, nil
}

func (w *words) Reorder(parents []int) error {
	last := make([]int, len(parents))
	for i, parent := range parents {
		last[i] = w.last[parent]
	}
	w.last = last
	return nil
}

func (w *words) text(tokens []int) string {
	var s []string
	for _, id := range tokens {
		s = append(s, w.names[id])
	}
	return strings.Join(s, " ")
}

// Generate continues two prompts of different lengths at the same time.
func ExampleGenerate() {
	model := newWords(2)
	results, err := decode.Generate(context.Background(), model, [][]int{{0}, {1, 3}}, decode.Options{
		Sampler:   decode.Sampler{Temperature: 0.8, TopP: 0.95},
		Seed:      1,
		MaxTokens: 10,
		End:       []int{0},
	})
	check(err)
	for _, r := range results {
		fmt.Printf("%s (%v, probability %.2f)\n", model.text(r.Tokens), r.Stop, math.Exp(r.LogProb))
	}
	// Output:
	// the cat (end token, probability 0.33)
	// sleeps (end token, probability 0.90)
}

// OnToken receives each token as soon as Generate chooses it, and can end the sequence.
func ExampleGenerate_streaming() {
	model := newWords(1)
	_, err := decode.Generate(context.Background(), model, [][]int{{0}}, decode.Options{
		MaxTokens: 10,
		OnToken: func(_, token int) bool {
			fmt.Println(model.names[token])
			return model.names[token] != "cat"
		},
	})
	check(err)
	// Output:
	// the
	// cat
}

// The likeliest sentence doesn't begin with the likeliest word.
func ExampleBeam() {
	for _, width := range []int{1, 3} {
		model := newWords(width)
		found, err := decode.Beam(context.Background(), model, [][]int{{0}}, decode.BeamOptions{Width: width, MaxTokens: 10, End: []int{0}})
		check(err)
		fmt.Println("width", width)
		for _, h := range found[0] {
			fmt.Printf("%.2f %s\n", math.Exp(h.LogProb), model.text(h.Tokens))
		}
	}
	// Output:
	// width 1
	// 0.33 the cat
	// width 3
	// 0.36 the dog sleeps
	// 0.33 the cat
	// 0.27 the cat sleeps
}

// An untrained language model continues two prompts. Each step computes only the new tokens, because the Session keeps
// the keys and values of earlier tokens.
func ExampleSession() {
	params, err := layers.NewParams(tensor.Float64, 3)
	check(err)
	model, err := layers.NewDecoder(params, layers.ModelConfig{Vocab: 10, Positions: layers.Learned{MaxLen: 16}, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 2})
	check(err)

	session, err := decode.New(model, decode.Config{Batch: 2})
	check(err)
	defer session.Close()
	results, err := decode.Generate(context.Background(), session, [][]int{{1, 2, 3, 4}, {7}}, decode.Options{MaxTokens: 6})
	check(err)
	for i, r := range results {
		fmt.Println(r.Tokens, "and room for", session.Room(i))
	}
	// Output:
	// [6 6 1 2 2 4] and room for 7
	// [2 2 2 6 6 1] and room for 10
}

// Beam finds the two best answers to a source. The encoder reads the source once.
func ExampleSeq2Seq() {
	const start, end = 0, 1
	params, err := layers.NewParams(tensor.Float64, 6)
	check(err)
	model, err := layers.NewEncoderDecoder(params, layers.EncoderDecoderConfig{
		Model: layers.ModelConfig{Vocab: 6, Positions: layers.Learned{MaxLen: 8}, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1},
	})
	check(err)

	const width = 2
	session, err := decode.NewSeq2Seq(model, decode.Seq2SeqConfig{Width: width})
	check(err)
	defer session.Close()
	check(session.Read([][]int{{2, 3, 4, 5}}))
	found, err := decode.Beam(context.Background(), session, [][]int{{start}}, decode.BeamOptions{Width: width, MaxTokens: 7, End: []int{end}})
	check(err)
	for _, h := range found[0] {
		fmt.Printf("%.3f %v\n", math.Exp(h.LogProb), h.Tokens)
	}
	// Output:
	// 0.139 [3]
	// 0.056 [3 5]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
