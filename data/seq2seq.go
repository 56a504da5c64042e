package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/heed-go/heed/data/tokenizer"
)

// KindSeq2Seq writes an answer symbol by symbol. The answer may be longer than the source.
const KindSeq2Seq Kind = "seq2seq"

// seq2seqCoder is the Coder of KindSeq2Seq, for a model with an encoder and a decoder. The decoder gets the source and
// the answer so far, which is the batch's DecoderInputs. Its target is the next symbol:
//
//	source  7 . 3 . 2 4 · ·
//	before  ⏵ 2 0 2 4 - 0 3 - 0 7
//	target  2 0 2 4 - 0 3 - 0 7 ⏎
//
// If the rule has a Target, sources and answers have separate ids, and also separate ids for padding. With Published,
// the ids are the model's, and the end of an answer is one of the special tokens that its tokenizer adds.
//
// DecoderInputs needs no lengths: its padding comes last, so causal attention from valid positions doesn't see it, and
// the targets of padding are Ignore.
type seq2seqCoder struct {
	coder
	special []int // ids that end an answer or, with Published, aren't part of its text
}

func newSeq2SeqCoder(c coder) (Coder, error) {
	if p := c.rule.Published; c.published != nil {
		target, ok := c.target.(*tokenizer.Pipeline)
		if !ok || c.rule.Target == nil || p.Start < 0 || c.rule.MaxAnswer < 1 {
			return nil, fmt.Errorf("a rule of kind seq2seq with Published needs a Target of type *tokenizer.Pipeline, a Start and a MaxAnswer of at least 1, got a %T, %d and %d", c.rule.Target, p.Start, c.rule.MaxAnswer)
		}
		c.cuts, c.published = true, c.published.WithLimit(c.rule.MaxLen)
		n, pad := cmp.Or(p.Targets, p.Tokens), max(0, p.Pad)
		c.layout = Layout{Tokens: p.Tokens, TargetTokens: n, Classes: n, Len: c.rule.MaxLen, TargetLen: c.rule.MaxAnswer, Start: p.Start, End: -1, Pad: min(pad, p.Tokens-1), TargetPad: min(pad, n-1)}
		return &seq2seqCoder{c, slices.Collect(maps.Values(target.Special()))}, nil
	}
	n, source := c.target.Len(), c.source.Len()
	c.layout = Layout{
		Tokens: n + 3, TargetTokens: n + 3, Classes: n + 3, Len: c.rule.MaxLen, TargetLen: c.rule.MaxAnswer + 1,
		Start: n + 2, End: n, Pad: n + 1, TargetPad: n + 1,
	}
	if c.rule.Target != nil { // each side has its own ids
		c.layout.Tokens, c.layout.Pad = source+1, source
	}
	return &seq2seqCoder{c, []int{c.layout.End, c.layout.TargetPad, c.layout.Start}}, nil
}

func (p *seq2seqCoder) Batch(examples []Example) (Batch, error) {
	return p.batch(examples, func(b *Batch, row int, e Example) error {
		source, answer, err := p.encode(e)
		if err != nil {
			return err
		}
		if p.published != nil && e.Answer == "" {
			answer = answer[:min(len(answer), p.rule.MaxAnswer)]
		}
		if len(answer) > p.rule.MaxAnswer {
			return p.errorf("an answer must have at most %d symbols, got %.100q, the answer to %.100q", p.rule.MaxAnswer, e.Answer, e.Source)
		}
		b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
		before := b.DecoderInputs[row*b.TargetLen:][:b.TargetLen]
		before[0] = p.layout.Start
		copy(before[1:], answer)
		if p.published == nil {
			answer = append(answer, p.layout.End)
		}
		copy(b.Targets[row*b.TargetLen:], answer)
		return nil
	})
}

// Answer reads the targets up to the first special token, or all targets if there is none. With Published, it leaves out
// special tokens, and ids without a token.
func (p *seq2seqCoder) Answer(targets []int) (string, error) {
	special := func(id int) bool { return slices.Contains(p.special, id) }
	if p.published != nil {
		return p.read(slices.DeleteFunc(slices.Clone(targets), func(id int) bool { return special(id) || id >= p.target.Len() }))
	}
	if i := slices.IndexFunc(targets, special); i >= 0 {
		targets = targets[:i]
	}
	return p.read(targets)
}
