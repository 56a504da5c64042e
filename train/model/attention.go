package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// An Attention has the attention weights of a model while it answered an input.
type Attention struct {
	Input, Answer string
	Layers        []AttentionLayer
	Key           string // meaning of the marks in labels, such as "· a space"
}

// An AttentionLayer has the attention weights of one layer. Each row and each column is a token.
type AttentionLayer struct {
	Name    string      // name, such as blocks.0.attention
	Meaning string      // meaning of rows and columns, in words
	Rows    []string    // label of each row
	Columns []string    // label of each column
	Heads   [][]float32 // weights of each head: (rows, columns), row-major
}

// Limits for the numbers of attention weights that Attention computes and returns. A long input to a large model has
// more weights than fit in memory.
const (
	maxComputed = 1 << 26
	maxShown    = 1 << 20
)

// Attention returns the attention weights of the model while it answers an input. The argument part selects the layers
// whose name contains it; an empty part selects all layers. Layers of cross-attention come first. If the model reads
// the input in several windows, the weights and the answer belong to the first. The error is an *InputError if the
// task doesn't allow the input, if no layer is selected, or if there are too many weights.
func (m *Model) Attention(input, part string) (*Attention, error) {
	rows, answer := m.queries(input)
	if answer.Err != nil {
		return nil, answer.Err
	}
	if m.Mixture.Linear == 1 && !m.Config.Solved() {
		return nil, &InputError{input, errors.New("the attention of this model answers nothing: its answers are those of the linear model")}
	}
	rows, ctx := rows[:1], context.Background()
	rows[0].mixture = m.Mixture
	var err error
	if m.Mixture.Linear > 0 {
		err = m.addLinear(ctx, []string{input}, rows)
	}
	if err == nil {
		err = m.choose(ctx, rows, 1)
	}
	if err != nil {
		return nil, err
	}
	answers := []Answer{answer}
	if err := m.answer(answers, rows, PredictOptions{}); err != nil {
		return nil, err
	}
	var targets []int
	if len(rows[0].choices) > 0 { // entities have none
		targets = rows[0].choices[0].targets
	}
	r := m.reading(rows[0].ids, targets)
	weights, output, err := m.capture(r.batch, part)
	if err != nil {
		return nil, &InputError{input, err}
	}
	if r.read != nil {
		last, _ := logit.Likeliest(output[len(output)-m.layout.Classes:])
		r.written = append(r.written, r.answers.label(last))
	}
	a := &Attention{Input: input, Answer: answers[0].Text}
	for _, w := range weights {
		l := AttentionLayer{Name: w.layer, Meaning: r.self, Rows: r.source, Columns: r.source}
		switch {
		case r.read == nil && strings.HasSuffix(w.layer, ".cross"):
			l.Meaning = "each position, where the decoder reads the symbol before it (rows), attends to the source (columns)"
		case strings.HasSuffix(w.layer, ".cross"):
			l.Meaning = "each symbol written (rows) attends to the source (columns)"
			l.Rows = r.written
		case r.read != nil && strings.HasPrefix(w.layer, "decoder."):
			l.Meaning = "each symbol written (rows) attends to the start and the symbols before it (columns)"
			l.Rows, l.Columns = r.written, r.read
		}
		l.Heads = slices.Collect(slices.Chunk(w.values, len(l.Rows)*len(l.Columns)))
		a.Layers = append(a.Layers, l)
	}
	a.Key = key(slices.Concat(r.sources.used, r.answers.used), a.Layers)
	return a, nil
}

// A reading is a batch of one input without padding, with the labels of its tokens.
type reading struct {
	batch            data.Batch
	sources, answers *marks
	self             string // Meaning of self-attention among the source's positions

	source  []string // labels of the source's tokens
	read    []string // for seq2seq: labels of the decoder's inputs: the start, then the targets; otherwise nil
	written []string // for seq2seq: labels of the decoder's outputs; Attention adds the last
}

// reading returns the reading of the ids of an input and the targets that the model chose for it.
func (m *Model) reading(ids, targets []int) *reading {
	b := data.Batch{Inputs: ids, Lengths: []int{len(ids)}, Size: 1, Len: len(ids)}
	r := &reading{self: "each position (rows) attends to the whole source (columns)"}
	r.sources, r.answers = newMarks(m.Coder, m.Config.Task.Target == nil)
	r.source = r.sources.labels(b.Inputs)
	if m.Config.about().causal {
		unit := "character"
		if m.Config.Task.Source != nil {
			unit = "token"
		}
		r.self = fmt.Sprintf("each %[1]s (rows) attends to itself and to each %[1]s before it (columns)", unit)
	}
	if m.layout.Start >= 0 {
		r.self = "each position of the source (rows) attends to the whole source (columns)"
		b.DecoderInputs = append([]int{m.layout.Start}, targets...)
		b.TargetLen = len(b.DecoderInputs)
		r.read, r.written = r.answers.labels(b.DecoderInputs), r.answers.labels(targets)
	}
	r.batch = b
	return r
}

// captured has the attention weights of a layer, (1, H, T, S), row-major.
type captured struct {
	layer  string
	values []float32
}

// capture runs the model on a batch of one row. It returns the attention weights of the layers whose name contains
// part, cross-attention first, and the output.
func (m *Model) capture(batch data.Batch, part string) (weights []captured, output []float32, err error) {
	var chosen []layers.AttentionWeights
	model, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, out G.Nodes, err error) {
		b.CaptureWeights = true
		inputs = m.Network.Inputs(g, 1, data.Layout{Len: batch.Len, TargetLen: batch.TargetLen})
		output, err := m.Network.Forward(b, inputs)
		if err != nil {
			return nil, nil, err
		}
		out = G.Nodes{output}
		chosen, err = choose(b.AttentionWeights(), part)
		for _, c := range chosen {
			out = append(out, c.Weights)
		}
		return inputs, out, err
	})
	if err != nil {
		return nil, nil, err
	}
	out, err := model.Call(m.Network.Values(batch)...)
	if err != nil {
		return nil, nil, err
	}
	weights = make([]captured, len(chosen))
	for i, c := range chosen {
		weights[i] = captured{c.Layer, out[1+i].Float32s()}
	}
	return weights, out[0].Float32s(), nil
}

// choose returns the layers whose name contains part, cross-attention first. It returns an error if there is none, or
// if there are too many weights.
func choose(weights []layers.AttentionWeights, part string) ([]layers.AttentionWeights, error) {
	var names []string
	var cross, others []layers.AttentionWeights
	computed, shown := 0, 0
	for _, c := range weights {
		names = append(names, c.Layer)
		size := c.Weights.Shape().TotalSize()
		computed += size
		if !strings.Contains(c.Layer, part) {
			continue
		}
		shown += size
		if strings.HasSuffix(c.Layer, ".cross") {
			cross = append(cross, c)
		} else {
			others = append(others, c)
		}
	}
	switch {
	case shown == 0:
		parts := strings.Split(strings.Join(names, "."), ".")
		return nil, fmt.Errorf("no layer's name contains %q; the layers are %s%s", part, strings.Join(names, ", "), text.DidYouMean(part, append(names, parts...)))
	case computed > maxComputed:
		return nil, fmt.Errorf("the model has %d attention weights for this input, but at most %d are allowed: give a shorter input", computed, maxComputed)
	case shown > maxShown:
		return nil, fmt.Errorf("there are %d attention weights to show, but at most %d are allowed: give a shorter input, or choose a layer by part of its name", shown, maxShown)
	}
	return append(cross, others...), nil
}

// key explains the marks that occur in the labels of the layers.
func key(used []mark, layers []AttentionLayer) string {
	var parts []string
	for _, u := range used {
		has := func(label string) bool { return strings.Contains(label, u.mark) }
		part := u.mark + " " + u.meaning
		if !slices.Contains(parts, part) && slices.ContainsFunc(layers, func(l AttentionLayer) bool {
			return slices.ContainsFunc(l.Rows, has) || slices.ContainsFunc(l.Columns, has)
		}) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
