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
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// spanHead answers a question with a part of its context.
type spanHead struct{}

func (spanHead) about() facts {
	return facts{kind: data.KindQA, use: "predict", rows: true, pairs: true, windows: true, top: MaxBeam, units: "characters, tokens, words, bpe"}
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
	d.Parts, d.Columns = []string{"Question", "Context"}, []string{"start", "end"}
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
		n, first := len(q.window.Tokens), q.window.Template || s.Config.Task.Unanswered || !s.Config.Published()
		for side := range p {
			for i := range n {
				p[side] = append(p[side], float64(logits[2*(q.window.Context+i)+side]))
			}
			without := math.Inf(-1)
			if first {
				without = float64(logits[side])
			}
			p[side] = logit.Probabilities(append(p[side], without))
		}
		q.choices, q.without = nil, p[0][n]*p[1][n]
		for i := range n {
			for j := i; j < min(i+longestAnswer, n); j++ {
				if both := p[0][i] * p[1][j]; both > 0 {
					q.choices = append(q.choices, choice{start: i, end: j, number: both})
				}
			}
		}
		slices.SortStableFunc(q.choices, func(a, b choice) int { return cmp.Compare(b.number, a.number) })
		q.choices = slices.Clone(q.choices[:min(len(q.choices), 2*max(1, q.top)+10)]) // some of them may be the same words
		for i, c := range q.choices {
			q.choices[i].start, q.choices[i].end = wholeWords(q.window, c.start, c.end)
		}
	})
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

// join answers as the reference library's pipeline does: the same text, whatever its case, is one answer, whose
// probabilities add up. No answer is as likely as in the window where it is least likely.
func (s spanner) join(rows []query, o PredictOptions, a *Answer) error {
	_, context, _ := strings.Cut(a.Input, "\t")
	joined := rows[0]
	joined.choices = nil
	index := map[string]int{}
	for _, q := range rows {
		joined.without = min(joined.without, q.without)
		for _, c := range q.choices {
			if q.window.Words == nil { // tokens may begin or end with spaces
				text := context[c.start:c.end]
				c.start += len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
				c.end -= len(text) - len(strings.TrimRightFunc(text, unicode.IsSpace))
				c.end = max(c.start, c.end)
			}
			key := strings.ToLower(context[c.start:c.end])
			i, known := index[key]
			if !known {
				i = len(joined.choices)
				index[key], joined.choices = i, append(joined.choices, choice{start: c.start, end: c.end})
			}
			joined.choices[i].number += c.number
		}
	}
	if o.NoAnswer || s.Config.Task.Unanswered || len(joined.choices) == 0 {
		joined.choices = append(joined.choices, choice{number: joined.without})
	}
	slices.SortStableFunc(joined.choices, func(a, b choice) int { return cmp.Compare(b.number, a.number) })
	for i, c := range joined.choices {
		joined.choices[i].logProb = math.Log(c.number)
	}
	return s.Model.join([]query{joined}, o, a)
}

func (s spanner) answer(c choice, a *Answer) error {
	_, context, _ := strings.Cut(a.Input, "\t")
	a.Text, a.Part = context[c.start:c.end], &Part{c.start, c.end}
	return nil
}
