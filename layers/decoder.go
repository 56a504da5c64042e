package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Decoder is a decoder-only transformer, a language model: every position attends to itself and to those before it, and
// predicts the token that follows (Radford et al., 2019). Make one with NewDecoder.
type Decoder struct {
	*Trunk
	Blocks []*DecoderBlock
}

// NewDecoder makes a Decoder with the scopes embedding, positions, blocks.0, blocks.1, …, norm and head.
func NewDecoder(p *Params, c ModelConfig) (*Decoder, error) {
	return newDecoder(p, c, nil, NewDecoderBlock)
}

// newDecoder makes a Decoder with a table of embeddings, if it isn't nil, and blocks of either kind.
func newDecoder(p *Params, c ModelConfig, table *Param, newBlock func(*Params, int, BlockConfig) (*DecoderBlock, error)) (*Decoder, error) {
	p = p.withInit(c.Init)
	if c.Outputs == 0 && !c.Tied {
		c.Outputs = c.Vocab
	}
	t, err := newTrunk(p, "decoder", c, table)
	if err != nil {
		return nil, err
	}
	d := &Decoder{Trunk: t}
	d.Blocks, err = newBlocks(p, t.name, c.Layers, func(p *Params) (*DecoderBlock, error) {
		block, err := newBlock(p, c.Dim, c.Block)
		if err == nil {
			block.Attention.Positions = t.Positions
		}
		return block, err
	})
	return d, err
}

// Forward maps ids of shape (B, T), of dtype tensor.Int, to logits of shape (B, T, Vocab), and (T) to (T, Vocab). With
// Outputs that is the last axis instead. In place of ids it takes embeddings, as an Encoder does. Attention is always
// causal; the mask adds further limits, and must have no offset. Padding belongs after a sequence, where being causal
// already hides it: it needs no KeyLengths.
//
// With a Cache in the Build, the ids are the new tokens of the sequences that it holds, and the mask is what
// MultiHeadAttention.ForwardCached takes.
func (d *Decoder) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := d.decode(b, x, nil, m, Mask{})
	if err != nil {
		return nil, err
	}
	return d.finish(b, x)
}

// Next does what Forward does for the last token of every sequence alone, and returns the logits of the token that
// follows it, of shape (B, Vocab). The row of a sequence that gets no new tokens means nothing. It needs a Cache in the
// Build.
func (d *Decoder) Next(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := d.decode(b, x, nil, m, Mask{})
	if err != nil {
		return nil, err
	}
	return d.next(b, x)
}

// decode maps an input, of ids (B, T) or of embeddings (B, T, D), to the states after the blocks, (B, T, D). memory is
// an encoder's output, or nil if the blocks don't attend to one or the Cache holds it.
func (d *Decoder) decode(b *Build, x, memory *G.Node, self, cross Mask) (*G.Node, error) {
	tokens, _, err := d.tokens(x)
	if err != nil {
		return nil, err
	}
	positions := b.Positions
	if b.Cache != nil {
		if positions != nil {
			return nil, fmt.Errorf("%s: %w", d.name, errTwoPositions)
		}
		if positions, err = b.Cache.positions(b, x.Graph(), tokens); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	if x, err = d.embed(b, x, positions); err != nil {
		return nil, err
	}
	for _, block := range d.Blocks {
		if x, err = block.Forward(b, x, memory, self, cross); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// next maps the states after the blocks to the logits that follow each sequence's last token: (B, T, D) -> (B, V).
func (d *Decoder) next(b *Build, x *G.Node) (*G.Node, error) {
	if b.Cache == nil {
		return nil, fmt.Errorf("%s: %w", d.name, errNoCache)
	}
	counts, err := b.Cache.countsNode(x.Graph())
	if err != nil {
		return nil, err
	}
	if x, err = ops.Last(b.Env(), x, counts); err != nil { // (B, T, D) -> (B, D)
		return nil, err
	}
	return d.finish(b, x)
}
