package data

import (
	"errors"
	"slices"
)

// KindTagging predicts one symbol of the answer at every position of a source. The answer can't be longer than the
// source.
const KindTagging Kind = "tagging"

var tagging = kind{target: true, coder: newTaggingCoder}

// taggingCoder is the Coder of KindTagging.
//
// A row's inputs are the symbols of the source, then the end token. Its targets are the symbols of the answer, then end
// tokens, up to the position of the inputs' end token. The rest of the row is padding, and its targets are Ignore:
//
//	input   l a m p ⏎ · ·
//	target  p m a l ⏎
//
// The rule add pads numbers with zeros, so that digits of the same weight always have the same position:
//
//	input   0 7 + 3 5 ⏎
//	target  0 0 0 4 2 ⏎
//
// If a rule has a Target, each symbol of the source has one tag, and there is no end token:
//
//	input   the dog  runs ·
//	target  DET NOUN VERB
type taggingCoder struct{ coder }

func newTaggingCoder(c coder) (Coder, error) {
	if c.rule.Source != nil && c.rule.Target == nil {
		return nil, errors.New("a rule of kind tagging with a Source needs a Target, the tokenizer of the tags")
	}
	n := c.source.Len()
	c.layout = Layout{Tokens: n + 2, Classes: n + 1, Len: c.rule.MaxLen + 1, TargetLen: c.rule.MaxLen + 1, Start: -1, End: n, Pad: n + 1}
	if c.rule.Target != nil {
		c.layout = Layout{Tokens: n + 1, Classes: c.target.Len(), Len: c.rule.MaxLen, TargetLen: c.rule.MaxLen, Start: -1, End: -1, Pad: n}
	}
	return &taggingCoder{c}, nil
}

func (t *taggingCoder) Batch(examples []Example) (Batch, error) {
	return t.batch(examples, func(b *Batch, row int, e Example) error {
		source, answer, err := t.encode(e)
		if err != nil {
			return err
		}
		if t.rule.Target != nil {
			if len(answer) != len(source) && e.Answer != "" {
				return t.errorf("each symbol of a source needs one tag, but %.100q has %d symbols and %.100q has %d tags", e.Source, len(source), e.Answer, len(answer))
			}
			b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
			copy(b.Targets[row*b.TargetLen:], answer)
			return nil
		}
		if len(answer) > len(source) {
			return t.errorf("for kind tagging, an answer can't be longer than its source: the answer to %q has at most %d symbols, got %q; for longer answers, use kind seq2seq",
				e.Source, len(source), e.Answer)
		}
		b.Lengths[row] = copy(b.Inputs[row*b.Len:], append(source, t.layout.End))
		targets := b.Targets[row*b.Len:][:b.Lengths[row]]
		for i := copy(targets, answer); i < len(targets); i++ {
			targets[i] = t.layout.End
		}
		return nil
	})
}

// Answer reads the targets up to the first end token, or all targets if there is none.
func (t *taggingCoder) Answer(targets []int) (string, error) {
	if i := slices.Index(targets, t.layout.End); i >= 0 {
		targets = targets[:i]
	}
	return t.read(targets)
}
