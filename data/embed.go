package data

import "errors"

// KindEmbed makes a vector of a whole source. An Example has no answer.
const KindEmbed Kind = "embed"

var embedding = kind{cuts: true, coder: newEmbeddingCoder}

// embeddingCoder is the Coder of KindEmbed. A row's inputs are the symbols of the source, then padding. Its only target
// is Ignore.
type embeddingCoder struct{ coder }

func newEmbeddingCoder(c coder) (Coder, error) {
	c.layout = c.sequenceLayout(0)
	return &embeddingCoder{c}, nil
}

func (l *embeddingCoder) Batch(examples []Example) (Batch, error) {
	return l.batch(examples, func(b *Batch, row int, e Example) error {
		source, _, err := l.spell(&e)
		if err != nil {
			return err
		}
		b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
		return nil
	})
}

func (l *embeddingCoder) Answer([]int) (string, error) {
	return "", errors.New("a rule of kind embed has no answers: a model makes a vector of a source")
}
