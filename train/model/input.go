package model

import (
	"errors"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/oov"
)

// encode returns a batch that has only this input, and an Answer without Text: the fields that don't need the model.
func (m *Model) encode(input string) (data.Batch, Answer) {
	b, err := m.Coder.Batch([]data.Example{{Source: m.source(input)}})
	return b, m.unanswered(input, err)
}

// source returns an input with what a published translator reads before it.
func (m *Model) source(input string) string {
	if m.published != nil && m.Config.about().decoder {
		return m.language + m.prompt + input
	}
	return input
}

// unanswered returns an Answer without Text to an input. If the model can't read it, the error says why.
func (m *Model) unanswered(input string, err error) Answer {
	source, _ := m.Coder.Tokenizers()
	if m.Config.Published() {
		source = m.Config.Task.SourceTokenizer() // counts special tokens, too
	}
	ids, some, _ := oov.Count(source, m.source(input))
	unknown := oov.Strange(source, ids, some)
	if err != nil {
		unknown = unknown && source.Unknown() >= 0 || errors.As(err, new(*tokenizer.UnknownSymbolError))
		return Answer{Input: input, Unknown: unknown, Err: &InputError{input, err}}
	}
	return Answer{Input: input, Unknown: unknown && source.Unknown() >= 0, Cut: ids > m.layout.Len}
}

// queries returns the queries of an input: one, unless the network reads it in windows. If the model can't read the
// input, there are none, and the Answer has the error.
func (m *Model) queries(input string) ([]query, Answer) {
	if m.Config.about().windows || m.Config.opensTags() {
		windows, err := m.Config.Task.Windows(input)
		list := make([]query, len(windows))
		for i := range windows {
			list[i] = query{ids: windows[i].IDs, window: &windows[i], number: i}
		}
		a := m.unanswered(input, err)
		a.Cut = false
		return list, a
	}
	list, err := m.symbols(input)
	a := m.unanswered(input, err)
	a.Cut = a.Cut && len(list) == 1
	return list, a
}

// symbols returns the query of an input that the network doesn't read in windows. If the input is too long and its
// symbols have tags, there is a query for each of its parts.
func (m *Model) symbols(input string) ([]query, error) {
	b, err := m.Coder.Batch([]data.Example{{Source: m.source(input)}})
	if err == nil {
		return []query{m.query(b)}, nil
	}
	if list := m.parts(input); list != nil {
		return list, nil
	}
	return nil, err
}

// parts returns the queries of an input for tags of symbols that is longer than the model's context. It returns nil for
// others, and if the model can't read a part.
func (m *Model) parts(input string) (list []query) {
	if m.Config.Task.Kind != data.KindTagging || m.Config.Task.Target == nil {
		return nil
	}
	parts, err := m.Config.Task.TaggedParts(input)
	if err != nil || len(parts) == 1 {
		return nil
	}
	for _, part := range parts {
		b, err := m.Coder.Batch([]data.Example{{Source: part.Source}})
		if err != nil {
			return nil
		}
		q, symbol := m.query(b), part.First
		for i, t := range q.targets {
			if t == data.Ignore {
				continue
			}
			if symbol < part.From || symbol >= part.To {
				q.targets[i] = data.Ignore
			}
			symbol++
		}
		if symbol != part.End {
			return nil
		}
		q.number, q.first, q.keep = len(list), part.From, true
		list = append(list, q)
	}
	return list
}

// Cuts reports whether the model answers an input, but ignores a part of it, because the input is longer than the
// model's context of MaxLen symbols. If an answer is one label or number, it ignores the end or, as Describe says,
// the beginning: of the input or, for pairs, of the longer text.
func (m *Model) Cuts(input string) bool {
	_, a := m.queries(input)
	return a.Cut
}
