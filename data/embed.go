package data

import (
	"errors"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/text"
)

// KindEmbed makes a vector of a text. Texts with similar meanings shall get similar vectors. A rule's Texts says which
// texts an Example has. In a batch, each text has a row of its own: row i·Texts is the source of example i, and the
// texts of its answer follow. Their targets are numbers that are equal if and only if the texts are. With Scored, the
// number of a source's row is the score.
const KindEmbed Kind = "embed"

// embeddingCoder is the Coder of KindEmbed. A row's inputs are the symbols of a text, then padding. Without answers, a
// batch has only the sources, and all targets are Ignore.
type embeddingCoder struct{ coder }

func newEmbeddingCoder(c coder) (Coder, error) {
	c.layout = c.sequenceLayout(0)
	c.layout.Texts, c.layout.Number = c.rule.Texts, c.rule.Scored
	return &embeddingCoder{c}, nil
}

func (l *embeddingCoder) Batch(examples []Example) (Batch, error) {
	each := 1
	if slices.ContainsFunc(examples, func(e Example) bool { return e.Answer != "" }) {
		each = max(1, l.rule.Texts)
	}
	var texts []Example
	for _, e := range examples {
		parts := e.Texts(each)
		if len(parts) < each {
			return Batch{}, l.errorf("an answer must have %d texts with tabs between them, got %.100q", each-1, e.Answer)
		}
		for _, text := range parts {
			texts = append(texts, Example{Source: text})
		}
	}
	b, err := l.answers(texts, func(*Batch, int, string, string) error { return nil })
	if err != nil || each == 1 {
		return b, err
	}
	numbers := map[string]int{}
	for i, e := range texts {
		if _, known := numbers[e.Source]; !known {
			numbers[e.Source] = i
		}
		b.Targets[i] = numbers[e.Source]
	}
	for i, e := range examples {
		if !l.rule.Scored {
			break
		}
		score, err := text.Number(e.Answer[strings.LastIndexByte(e.Answer, '\t')+1:])
		if err != nil {
			return Batch{}, l.errorf("the score of %.100q: %w", e.Source, err)
		}
		b.Numbers[i*each] = float32(score)
	}
	return b, nil
}

func (l *embeddingCoder) Answer([]int) (string, error) {
	return "", errors.New("a rule of kind embed has no answers: a model makes a vector of a source")
}
