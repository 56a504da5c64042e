package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/text"
)

// KindTagging predicts one symbol of the answer at every position of a source. The answer can't be longer than the
// source.
const KindTagging Kind = "tagging"

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
//
// If the rule also has Published, each word of the source has one tag; words are split as the unit words does. The
// model reads the words with spaces between them. The target of a word's first piece is its tag. Other pieces and
// special tokens have no target:
//
//	input   [CLS] the dach ##s runs .   [SEP] ·
//	target        DET NOUN     VERB PUNCT
//
// Without an answer, each of these tags is 0, so that the targets still say which positions have one.
//
// With Published and Classes, each piece and each special token has one of the Classes, and rows have no targets.
type taggingCoder struct{ coder }

func newTaggingCoder(c coder) (Coder, error) {
	switch tags := c.rule.Classes; {
	case tags != nil && (c.published == nil || c.rule.Target != nil):
		return nil, errors.New("a rule of kind tagging with Classes needs Published, and no Target")
	case tags != nil:
		c.layout = c.sequenceLayout(len(tags))
		c.layout.TargetLen, c.layout.Segments, c.layout.Separator = c.layout.Len, 0, 0 // one text has one segment
		return &taggingCoder{c}, nil
	case c.rule.Source != nil && c.rule.Target == nil:
		return nil, errors.New("a rule of kind tagging with a Source needs a Target, the tokenizer of the tags")
	}
	n := c.source.Len()
	c.layout = Layout{Tokens: n + 2, Classes: n + 1, Len: c.rule.MaxLen + 1, TargetLen: c.rule.MaxLen + 1, Start: -1, End: n, Pad: n + 1}
	if c.rule.Target != nil {
		c.layout = c.sequenceLayout(c.target.Len())
		c.layout.TargetLen = c.layout.Len
	}
	return &taggingCoder{c}, nil
}

func (t *taggingCoder) Batch(examples []Example) (Batch, error) {
	return t.batch(examples, func(b *Batch, row int, e Example) error {
		source, answer, err := t.encode(e)
		if err != nil {
			return err
		}
		if t.rule.Classes != nil {
			b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
			return nil
		}
		if t.rule.Target != nil {
			_, places, err := t.rule.Tagged(e.Source)
			if err != nil {
				return t.errorf("source %.100q: %w", e.Source, err)
			}
			if e.Answer == "" && len(answer) == 0 {
				answer = make([]int, len(places))
			}
			if len(answer) != len(places) {
				return t.errorf("each symbol of a source needs one tag, but %.100q has %d symbols and %.100q has %d tags", e.Source, len(places), e.Answer, len(answer))
			}
			b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
			for i, place := range places {
				b.Targets[row*b.TargetLen+place] = answer[i]
			}
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

// Tagged returns the parts of a source that have a tag each, for a rule of kind tagging with a Source and a Target, and
// the position of the input at which the model gives the tag. The parts are the symbols of the Source. With Published,
// they are words as the unit words splits them, but a character that can't be seen belongs to the word before it; their
// positions are where their first pieces stand. Then it is an error if there is no word, or if the tokenizer drops all
// characters of one.
func (r *Rule) Tagged(source string) (symbols []tokenizer.Token, places []int, err error) {
	symbols, places, _, err = r.tagged(source)
	return symbols, places, err
}

// tagged is like Tagged, and returns also the number of tokens of the input.
func (r *Rule) tagged(source string) (symbols []tokenizer.Token, places []int, tokens int, err error) {
	if r.Published == (Published{}) {
		symbols, err = r.Source.Tokenize(source, tokenizer.Options{})
		for i := range symbols {
			places = append(places, i)
		}
		return symbols, places, len(symbols), err
	}
	p, ok := r.Source.(*tokenizer.Pipeline)
	if !ok {
		return nil, nil, 0, fmt.Errorf("a rule with Published needs a Source of type *tokenizer.Pipeline, got a %T", r.Source)
	}
	input, err := r.Input(p.WithLimit(0), source)
	if err != nil {
		return nil, nil, 0, err
	}
	place := 0
	for start, end := range text.Places(source, text.VisibleWords(source)) {
		for place < len(input.Tokens) && input.Tokens[place].End <= start { // special tokens end at 0
			place++
		}
		if place == len(input.Tokens) || input.Tokens[place].Start >= end {
			return nil, nil, 0, fmt.Errorf("the tokenizer has no piece for word %d, %.100q: remove it", len(places)+1, source[start:end])
		}
		symbols, places = append(symbols, tokenizer.Token{ID: input.Tokens[place].ID, Start: start, End: end}), append(places, place)
		place++
	}
	if places == nil {
		err = errors.New("there are no words in it")
	}
	return symbols, places, len(input.Tokens), err
}

// Answer reads the targets up to the first end token, or all targets if there is none.
func (t *taggingCoder) Answer(targets []int) (string, error) {
	if t.rule.Classes != nil {
		tags := make([]string, len(targets))
		for i, id := range targets {
			if id < 0 || id >= len(t.rule.Classes) {
				return "", fmt.Errorf("a tag must be from 0 to %d, got %d", len(t.rule.Classes)-1, id)
			}
			tags[i] = t.rule.Classes[id]
		}
		return strings.Join(tags, " "), nil
	}
	if i := slices.Index(targets, t.layout.End); i >= 0 {
		targets = targets[:i]
	}
	return t.read(targets)
}

// A TaggedPart is a part of a source whose symbols have a tag each. It has the symbols from First up to End of the
// source. Their tags from From up to To count; neighbouring parts have the other ones, farther from their ends.
type TaggedPart struct {
	Source               string
	First, End, From, To int
}

// TaggedParts divides a source, for a rule as in Tagged, into parts of at most MaxLen tokens, which overlap.
func (r *Rule) TaggedParts(source string) ([]TaggedPart, error) {
	symbols, places, tokens, err := r.tagged(source)
	if err != nil {
		return nil, err
	}
	n, room := len(symbols), r.MaxLen
	if p, ok := r.Source.(*tokenizer.Pipeline); ok && r.Published != (Published{}) {
		special, err := p.WithLimit(0).Input("")
		if err != nil {
			return nil, err
		}
		tokens += places[0] - len(special.Tokens) // without the special tokens at the end
		room -= len(special.Tokens) + 1           // the first word of a part may have one more piece
	}
	places = append(places, tokens)
	var parts []TaggedPart
	for first, from, end := 0, 0, 0; end < n; {
		for end = first + 1; end < n && places[end+1]-places[first] <= room; {
			end++
		}
		parts = append(parts, TaggedPart{source[symbols[first].Start:symbols[end-1].End], first, end, from, end})
		if end == n {
			break
		}
		shared := min(maxStride, (end-first)/2)
		first, from = end-shared, end-shared/2
		parts[len(parts)-1].To = from
	}
	return parts, nil
}
