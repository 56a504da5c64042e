package data

import "slices"

// KindSeq2Seq writes an answer symbol by symbol. The answer may be longer than the source.
const KindSeq2Seq Kind = "seq2seq"

// seq2seqCoder is the Coder of KindSeq2Seq, for a model with an encoder and a decoder. The decoder gets the source and
// the answer so far, which is the batch's DecoderInputs. Its target is the next symbol:
//
//	source  7 . 3 . 2 4 · ·
//	before  ⏵ 2 0 2 4 - 0 3 - 0 7
//	target  2 0 2 4 - 0 3 - 0 7 ⏎
//
// If the rule has a Target, sources and answers have separate ids, and also separate ids for padding.
//
// DecoderInputs needs no lengths: its padding comes last, so causal attention from valid positions doesn't see it, and
// the targets of padding are Ignore.
type seq2seqCoder struct{ coder }

func newSeq2SeqCoder(c coder) (Coder, error) {
	n, source := c.target.Len(), c.source.Len()
	c.layout = Layout{
		Tokens: n + 3, TargetTokens: n + 3, Classes: n + 3, Len: c.rule.MaxLen, TargetLen: c.rule.MaxAnswer + 1,
		Start: n + 2, End: n, Pad: n + 1, TargetPad: n + 1,
	}
	if c.rule.Target != nil { // each side has its own ids
		c.layout.Tokens, c.layout.Pad = source+1, source
	}
	return &seq2seqCoder{c}, nil
}

func (p *seq2seqCoder) Batch(examples []Example) (Batch, error) {
	return p.batch(examples, func(b *Batch, row int, e Example) error {
		source, answer, err := p.encode(e)
		if err != nil {
			return err
		}
		if len(answer) > p.rule.MaxAnswer {
			return p.errorf("an answer must have at most %d symbols, got %.100q, the answer to %.100q", p.rule.MaxAnswer, e.Answer, e.Source)
		}
		b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
		before := b.DecoderInputs[row*b.TargetLen:]
		before[0] = p.layout.Start
		copy(before[1:], answer)
		copy(b.Targets[row*b.TargetLen:], append(answer, p.layout.End))
		return nil
	})
}

// Answer reads the targets up to the first special token, or all targets if there is none.
func (p *seq2seqCoder) Answer(targets []int) (string, error) {
	special := []int{p.layout.End, p.layout.TargetPad, p.layout.Start}
	if i := slices.IndexFunc(targets, func(id int) bool { return slices.Contains(special, id) }); i >= 0 {
		targets = targets[:i]
	}
	return p.read(targets)
}
