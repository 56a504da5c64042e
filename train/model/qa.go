package model

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// spanHead answers a question with a part of its context.
type spanHead struct{ bare }

func (spanHead) about() facts {
	return facts{kind: data.KindQA, use: "predict", rows: true, pairs: true, top: MaxBeam, units: "characters, tokens, words, bpe"}
}

func (spanHead) suit(m *pretrained.Config) error {
	if m.Head != "spans" {
		*m = m.States()
	}
	return nil
}

func (spanHead) published(m *pretrained.Config, r *data.Rule) bool {
	if m.Head != "spans" {
		return false
	}
	r.About, r.Pairs, r.MaxLen = "the answer to a question in a context", true, min(r.MaxLen, data.UsualWindow)
	return true
}

func (spanHead) describe(_ *Config, d *Description) {
	place := map[string]any{"type": "integer", "minimum": 0, "description": "the answer's bytes in the context, in UTF-8, go from start up to but not including end"}
	part := map[string]any{
		"answer": map[string]any{"type": "string", "description": "a part of the context, or empty if the context has no answer"},
		"start":  place, "end": place,
		"probability": map[string]any{"type": "number", "minimum": 0, "description": "the answer's probability in its part of the context; if it is in several places or parts, their sum"},
	}
	d.Columns = []string{"start", "end"}
	d.Schema = maps.Clone(part)
	d.Schema["alternatives"] = map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": part}, "description": "with top: the likeliest answers; the first is the answer"}
	d.NoAnswer = true
}

func (spanHead) network(m *Model) (network, error) {
	net, err := layers.NewEncoder(m.Params, m.Config.Model)
	return spanner{reader{m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Len, 2)
	}}}, err
}

// A spanner is a network with two logits for each token: that the answer begins there, and that it ends there.
type spanner struct{ reader }

// longestAnswer is the greatest number of tokens of an answer.
const longestAnswer = 15

func (s spanner) predictor(shape batchShape) (predictor, error) {
	return s.chooser(s, shape, func(logits []float32, q *query) {
		var p [2][]float64 // of each token of the context, and then of the first token, which stands for no answer
		n, first := len(q.reading.Tokens), q.reading.Template || s.Config.Task.Unanswered || !s.Config.Published()
		for side := range p {
			for i := range n {
				p[side] = append(p[side], float64(logits[2*(q.reading.Context+i)+side]))
			}
			none := math.Inf(-1)
			if first {
				none = float64(logits[side])
			}
			p[side] = softmax(append(p[side], none))
		}
		q.choices, q.none = nil, p[0][n]*p[1][n]
		for i := range n {
			for j := i; j < min(i+longestAnswer, n); j++ {
				q.choices = append(q.choices, choice{start: i, end: j, number: p[0][i] * p[1][j]})
			}
		}
		slices.SortStableFunc(q.choices, func(a, b choice) int { return cmp.Compare(b.number, a.number) })
		q.choices = slices.Clone(q.choices[:min(len(q.choices), 2*max(1, q.top)+10)]) // some of them may be the same words
		for i, c := range q.choices {
			q.choices[i].start, q.choices[i].end = wholeWords(q.reading, c.start, c.end)
		}
	})
}

// softmax replaces logits by their probabilities.
func softmax(x []float64) []float64 {
	largest, sum := slices.Max(x), 0.0
	for i := range x {
		x[i] = math.Exp(x[i] - largest)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
	return x
}

// wholeWords returns the bytes of the context that the tokens from first to last come from, with the rest of their
// words in the window.
func wholeWords(w *data.Window, first, last int) (start, end int) {
	if w.Words != nil {
		for first > 0 && w.Words[first-1] == w.Words[first] {
			first--
		}
		for last+1 < len(w.Words) && w.Words[last+1] == w.Words[last] {
			last++
		}
	}
	return w.Tokens[first].Start, w.Tokens[last].End
}

// windows returns the queries of an input.
func (s spanner) windows(input string) ([]query, error) {
	windows, err := s.Config.Task.Windows(input)
	list := make([]query, len(windows))
	for i := range windows {
		list[i] = query{ids: windows[i].IDs, window: window{start: i}, reading: &windows[i]}
	}
	return list, err
}

// join completes an answer from the windows of its input, as the reference library's pipeline does: the same text,
// whatever its case, is one answer, whose probabilities add up. No answer is as likely as in the window where it is
// least likely.
func (s spanner) join(windows []query, o PredictOptions, a *Answer) error {
	_, context, _ := strings.Cut(a.Input, "\t")
	none := math.Inf(1)
	var found []choice
	index := map[string]int{}
	for _, q := range windows {
		none = min(none, q.none)
		for _, c := range q.choices {
			if q.reading.Words == nil { // tokens may begin or end with spaces
				text := context[c.start:c.end]
				c.start += len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
				c.end = max(c.start, c.end-len(text)+len(strings.TrimRightFunc(text, unicode.IsSpace)))
			}
			key := strings.ToLower(context[c.start:c.end])
			i, known := index[key]
			if !known {
				i = len(found)
				index[key], found = i, append(found, choice{start: c.start, end: c.end})
			}
			found[i].number += c.number
		}
	}
	if o.NoAnswer || s.Config.Task.Unanswered {
		found = append(found, choice{number: none})
	}
	slices.SortStableFunc(found, func(a, b choice) int { return cmp.Compare(b.number, a.number) })
	for i, c := range found[:min(max(1, o.Top), len(found))] {
		next := Alternative{context[c.start:c.end], math.Log(c.number), &Part{c.start, c.end}}
		if i == 0 {
			a.Text, a.LogProb, a.Part = next.Text, next.LogProb, next.Part
		}
		if o.Top > 0 {
			a.Top = append(a.Top, next)
		}
	}
	return nil
}

// answer does nothing, because join completes answers.
func (spanner) answer(choice, *Answer) error { return nil }
