package data

import "errors"

// KindText predicts the symbol that follows.
const KindText Kind = "text"

var languageModel = kind{coder: newCharacters}

// characters is the Coder of KindText: the target of each symbol is the one that follows. Of a source longer than
// MaxLen the end counts. An answer is a symbol, the target of a source's last one; if it is left out, Ignore is.
type characters struct{ coder }

func newCharacters(c coder) (Coder, error) {
	n := c.source.Len()
	c.layout = Layout{Tokens: n, Classes: n, Len: c.rule.MaxLen, TargetLen: c.rule.MaxLen, Start: -1, End: -1}
	return &characters{c}, nil
}

func (c *characters) Batch(examples []Example) (Batch, error) {
	return c.batch(examples, func(b *Batch, row int, e Example) error {
		source, err := c.source.Encode(e.Source)
		if err != nil {
			return err
		}
		if len(source) == 0 {
			return errors.New("the input is empty: give the text that the next character should follow")
		}
		answer := []int{Ignore}
		if e.Answer != "" {
			if answer, err = c.source.Encode(e.Answer); err != nil {
				return err
			}
			if len(answer) != 1 {
				return errors.New("the answer must be the one symbol that follows")
			}
		}
		source = source[max(0, len(source)-b.Len):]
		b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
		copy(b.Targets[row*b.Len:], append(source[1:], answer...))
		return nil
	})
}

func (c *characters) Answer(targets []int) (string, error) { return c.read(targets) }
