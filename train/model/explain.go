package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// A Contribution says what a word of an input did to an answer. The word is Input[Start:End].
type Contribution struct {
	Word  string  `json:"word"`
	Start int     `json:"start"`
	End   int     `json:"end"`
	Value float64 `json:"value"` // above 0 if the word spoke for the label
}

// Explain computes gradients at explainSteps inputs, explainRows at once. More at once need more memory.
const explainSteps, explainRows = 16, 4

// Explain returns what each word of an input did to a label. It is for models that classify whole inputs.
//
// The values are integrated gradients (Sundararajan et al., 2017). A logit counts only in comparison with others, so
// Explain takes the logit of the label minus the logit of the label against or, if against is empty, minus the mean of
// all logits. If an answer may have several labels, an empty against stands for the label's logit alone. It computes
// the gradient of this difference at 16 inputs on the way from average embeddings to those of the input. The value of a
// token is the mean gradient times the distance of its embedding from the average one. So the values add up, nearly, to
// what the words changed in the difference of the logits. The gradient at the input alone says little about models with
// norms, because norms cancel most of what changes an embedding's length. If the answers are mixed with those of a
// linear model (Config.Mix), the value of a word is the mean, with their weights, of this value and of what leaving the
// word out changes in the difference of the linear model's scores.
//
// A word is a run of characters without white space. Its value is the sum over its tokens. The value of white space
// belongs to the next word. Words that the model ignores, because the input is longer than its context, aren't in the
// result. The error is an *InputError if the task doesn't allow the input.
func (m *Model) Explain(input, label, against string) ([]Contribution, error) {
	weights, err := m.contrast(label, against)
	if err != nil {
		return nil, err
	}
	b, encoded := m.encode(input)
	if encoded.Err != nil {
		return nil, encoded.Err
	}
	tokens, err := m.tokens(input, b.Inputs[:b.Lengths[0]])
	if err != nil {
		return nil, &InputError{input, err}
	}
	b.Len, b.Inputs = b.Lengths[0], b.Inputs[:b.Lengths[0]]
	values := make([]float64, b.Len)
	if m.Mixture.Linear < 1 {
		if values, err = m.attribute(b, weights); err != nil {
			return nil, err
		}
	}
	words := contributions(input, tokens, values)
	if m.Mixture.Linear > 0 {
		err = m.addBaseline(words, input, weights)
	}
	return words, err
}

// addBaseline makes the value of each word of an input the mean of it and of what leaving it out changes in the
// baseline's scores.
func (m *Model) addBaseline(words []Contribution, input string, weights []float64) error {
	texts := []string{input}
	for _, w := range words {
		texts = append(texts, input[:w.Start]+input[w.End:])
	}
	scores, err := m.Linear.SourceScores(context.Background(), &m.Config.Task, linear.Texts(texts))
	if err != nil {
		return err
	}
	for i := range words {
		value := 0.0
		for class, weight := range weights {
			value += weight * float64(scores[0][class]-scores[i+1][class])
		}
		words[i].Value = m.Mixture.Number(words[i].Value, value)
	}
	return nil
}

// contrast returns the weight of each class's logit in the difference that Explain explains.
func (m *Model) contrast(label, against string) ([]float64, error) {
	classes := m.Config.Task.Classes
	if err := m.Config.Describe().Explain; err != nil {
		return nil, err
	}
	weights := make([]float64, len(classes))
	add := func(name string, weight float64) error {
		i := slices.Index(classes, name)
		if i < 0 {
			return setting.Errorf("the model has no label %q%s", name, text.DidYouMean(name, classes))
		}
		weights[i] += weight
		return nil
	}
	if against != "" {
		return weights, cmp.Or(add(label, 1), add(against, -1))
	}
	for i := range weights {
		if m.Config.Task.Separator == "" { // otherwise labels don't exclude each other
			weights[i] = -1 / float64(len(weights))
		}
	}
	return weights, add(label, 1)
}

// tokens returns the tokens of an input, given the ids that the model reads of it. The separator of a pair is its tab.
func (m *Model) tokens(input string, ids []int) ([]tokenizer.Token, error) {
	source, _ := m.Coder.Tokenizers()
	if p, ok := source.(*tokenizer.Pipeline); ok && m.Config.Published() {
		read, err := m.Config.Task.Input(p.WithLimit(m.layout.Len), input)
		return read.Tokens, err
	}
	parts, start := m.Config.Task.Parts(input), 0
	var tokens []tokenizer.Token
	for i, part := range parts {
		some, err := source.Tokenize(part, tokenizer.Options{})
		if err != nil {
			return nil, err
		}
		n := len(ids) // number of ids of this part
		if i+1 < len(parts) {
			n = slices.Index(ids, m.layout.Separator)
		}
		for _, t := range some[:n] {
			tokens = append(tokens, tokenizer.Token{ID: t.ID, Start: start + t.Start, End: start + t.End})
		}
		start += len(part)
		if i+1 < len(parts) {
			tokens = append(tokens, tokenizer.Token{ID: ids[n], Start: start, End: start + 1})
			start, ids = start+1, ids[n+1:]
		}
	}
	return tokens, nil
}

// attribute returns the integrated gradient of each position of a batch of one row. It is the gradient of the output,
// weighted by weights, with respect to the embeddings.
func (m *Model) attribute(batch data.Batch, weights []float64) ([]float64, error) {
	read := batch.Lengths[0] // the network can't tell padding by its embedding, and a causal model sees nothing after what it reads
	for pad := m.Config.Head.Pad; pad != nil && read > 1 && batch.Inputs[read-1] == *pad; {
		read--
	}
	rows := data.Batch{Size: explainRows, Len: batch.Len, Inputs: slices.Repeat(batch.Inputs, explainRows), Lengths: slices.Repeat([]int{read}, explainRows)}
	dim := m.table.Value.Shape()[1]
	gradient, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, out G.Nodes, err error) {
		inputs = m.Network.Inputs(g, rows.Size, data.Layout{Len: rows.Len})
		x := G.NewTensor(g, tensor.Float32, 3, G.WithShape(rows.Size, rows.Len, dim), G.WithName("embeddings"))
		output, err := m.Network.Forward(b, append(G.Nodes{x}, inputs[1:]...)) // (Size, Classes)
		if err != nil {
			return nil, nil, err
		}
		sum, err := ops.WeightedSum(b.Env(), output, slices.Repeat(weights, rows.Size), fmt.Sprint("explained ", weights))
		if err != nil {
			return nil, nil, err
		}
		out, err = G.Grad(sum, x)
		return append(inputs, x), append(out, output), err
	})
	if err != nil {
		return nil, err
	}
	start, way := m.way(batch.Inputs)
	x := tensor.New(tensor.WithShape(rows.Size, rows.Len, dim), tensor.Of(tensor.Float32))
	values := append(m.Network.Values(rows), x)
	sums := make([]float64, batch.Len)
	for step := 0; step < explainSteps; step += rows.Size {
		for i := range x.Float32s() {
			part := (float32(step+i/len(way)) + 0.5) / explainSteps
			x.Float32s()[i] = start[i%dim] + part*way[i%len(way)]
		}
		out, err := gradient.Call(values...)
		if err != nil {
			return nil, err
		}
		gradients := out[0].Float32s()
		if err := cmp.Or(logit.CheckFinite(out[1].Float32s()...), logit.CheckFinite(gradients...)); err != nil {
			return nil, err
		}
		for i, g := range gradients {
			j := i % len(way)
			sums[j/dim] += float64(g) * float64(way[j]) / explainSteps
		}
	}
	return sums, nil
}

// way returns the average embedding (Dim), and its distance from the embedding of each id, (Len, Dim).
func (m *Model) way(ids []int) (start, way []float32) {
	table, dim := m.table.Value.Float32s(), m.table.Value.Shape()[1]
	scale := float32(cmp.Or(m.Config.Model.EmbeddingScale, 1))
	start = make([]float32, dim)
	for i, x := range table {
		start[i%dim] += scale * x * float32(dim) / float32(len(table))
	}
	for _, id := range ids {
		for i, x := range table[id*dim:][:dim] {
			way = append(way, scale*x-start[i])
		}
	}
	return start, way
}

// contributions adds up the values of tokens to the words of an input.
func contributions(input string, tokens []tokenizer.Token, values []float64) []Contribution {
	isMark := func(r rune) bool { return !unicode.IsSpace(r) }
	var words []Contribution
	space := 0.0 // value of the white space before the next word
	for i, t := range tokens {
		first := strings.IndexFunc(input[t.Start:t.End], isMark)
		if first < 0 {
			space += values[i]
			continue
		}
		if start := t.Start + first; len(words) == 0 || start >= words[len(words)-1].End {
			start = len(strings.TrimRightFunc(input[:start], isMark))
			end := start + len(input[start:]) - len(strings.TrimLeftFunc(input[start:], isMark))
			words = append(words, Contribution{Word: input[start:end], Start: start, End: end})
		}
		words[len(words)-1].Value += space + values[i]
		space = 0
	}
	if words != nil {
		words[len(words)-1].Value += space
	}
	return words
}
