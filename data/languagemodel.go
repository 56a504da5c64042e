package data

import (
	"errors"
	"fmt"
)

// KindText predicts the next symbol of a text.
const KindText Kind = "text"

// textCoder is the Coder of KindText. The target of each symbol is the next symbol. Only the last MaxLen symbols of a
// source are used. The answer is one symbol, the target of the source's last symbol. Without an answer, that target is
// Ignore. A published model doesn't cut a source, and an empty source is its first token.
type textCoder struct{ coder }

func newTextCoder(c coder) (Coder, error) {
	n := c.source.Len()
	if c.published != nil {
		n = c.rule.Published.Tokens
	}
	c.layout = Layout{Tokens: n, Classes: n, Len: c.rule.MaxLen, TargetLen: c.rule.MaxLen, Start: -1, End: -1}
	return &textCoder{c}, nil
}

func (c *textCoder) Batch(examples []Example) (Batch, error) {
	return c.batch(examples, func(b *Batch, row int, e Example) error {
		source, err := c.ids(e.Source)
		if err != nil {
			return err
		}
		if p := c.rule.Published; c.published != nil && len(source) == 0 && p.Start >= 0 {
			source = []int{p.Start}
		}
		if n := len(source); c.published != nil && n > b.Len {
			return fmt.Errorf("the input has %d tokens, but the model reads at most %d (max_position_embeddings): give a shorter one", n, b.Len)
		}
		if len(source) == 0 {
			return errors.New("the input is empty: give a text, and the model predicts the character after it")
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

func (c *textCoder) Answer(targets []int) (string, error) { return c.read(targets) }
