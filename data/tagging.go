package data

import (
	"errors"
	"slices"
)

// KindTagging labels every position of a source with a symbol of the answer, which is no longer than the source.
const KindTagging Kind = "tagging"

var tagging = kind{target: true, coder: newTags}

// tags is the Coder of KindTagging.
//
// A row's inputs are the symbols of the source, then the end token. Its targets are the symbols of the answer, then the
// end token at every position left up to that of the inputs' end. What follows is padding, with targets Ignore:
//
//	input   l a m p ⏎ · ·
//	target  p m a l ⏎
//
// Sums are spelled in columns, so that digits of one weight always stand in one place:
//
//	input   0 7 + 3 5 ⏎
//	target  0 0 0 4 2 ⏎
//
// Padding is never a target.
//
// Where a rule has a Target, each symbol of the source has a tag of its own, and there is no end token:
//
//	input   the dog  runs ·
//	target  DET NOUN VERB
type tags struct{ coder }

func newTags(c coder) (Coder, error) {
	if c.rule.Source != nil && c.rule.Target == nil {
		return nil, errors.New("a rule of kind tagging with a Source needs a Target, which has the tags")
	}
	n := c.source.Len()
	c.layout = Layout{Tokens: n + 2, Classes: n + 1, Len: c.rule.MaxLen + 1, TargetLen: c.rule.MaxLen + 1, Start: -1, End: n, Pad: n + 1}
	if c.rule.Target != nil {
		c.layout = Layout{Tokens: n + 1, Classes: c.target.Len(), Len: c.rule.MaxLen, TargetLen: c.rule.MaxLen, Start: -1, End: -1, Pad: n}
	}
	return &tags{c}, nil
}

func (t *tags) Batch(examples []Example) (Batch, error) {
	return t.batch(examples, func(b *Batch, row int, e Example) error {
		source, answer, err := t.encode(e)
		if err != nil {
			return err
		}
		if t.rule.Target != nil {
			if len(answer) != len(source) && e.Answer != "" {
				return t.errorf("each symbol of a source has a tag, but %.100q has %d and its tags %.100q are %d", e.Source, len(source), e.Answer, len(answer))
			}
			b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
			copy(b.Targets[row*b.TargetLen:], answer)
			return nil
		}
		if len(answer) > len(source) {
			return t.errorf("a rule of kind tagging writes an answer over its source: the answer to %q has at most %d symbols, got %q; kind seq2seq has answers of any length",
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

// Answer takes the targets up to the first end token, or all of them if there is none.
func (t *tags) Answer(targets []int) (string, error) {
	if i := slices.Index(targets, t.layout.End); i >= 0 {
		targets = targets[:i]
	}
	return t.read(targets)
}
