package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Decoder is a decoder-only transformer, a language model: every position attends to itself and to earlier positions,
// and predicts the next token (Radford et al., 2019). Make one with NewDecoder.
type Decoder struct{ *Trunk }

// NewDecoder makes a Decoder with the scopes embedding, segments, positions, embeddingnorm, blocks.0, blocks.1, …,
// norm, transform and head.
func NewDecoder(p *Params, c ModelConfig) (*Decoder, error) {
	return newDecoder(p, c, nil, NewDecoderBlock)
}

// newDecoder makes a Decoder. The arguments table and newBlock are the same as for newTrunk.
func newDecoder(p *Params, c ModelConfig, table *Param, newBlock blockMaker) (*Decoder, error) {
	if c.Outputs == 0 && !c.Tied {
		c.Outputs = c.Vocab
	}
	t, err := newTrunk(p, "decoder", c, table, newBlock)
	return &Decoder{t}, err
}

// Forward maps ids of shape (B, T) and dtype tensor.Int to logits of shape (B, T, Vocab). Without a batch axis, ids (T)
// give (T, Vocab). If Outputs is set, the size of the last axis is Outputs. Like an Encoder, it also accepts
// embeddings. Attention is always causal. The mask adds further limits and must have no offset. Padding after a
// sequence needs no KeyLengths, because no token attends to later positions.
//
// With a Cache in the Build, the ids are the new tokens of the Cache's sequences. For the mask, see Cache.
func (d *Decoder) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := d.decode(b, x, nil, m, Mask{})
	if err != nil {
		return nil, err
	}
	return d.finish(b, x)
}

// States is like Forward, but leaves out the head: it returns states of shape (B, T, Dim) after the last norm.
func (d *Decoder) States(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := d.decode(b, x, nil, m, Mask{})
	if err != nil {
		return nil, err
	}
	return d.Norm.Forward(b, x)
}

// Next is like Forward, but applies the norm and the head only to the last new token of each sequence. It returns the
// logits for the next token, of shape (B, Vocab). The row of a sequence without new tokens is meaningless. Next needs a
// Cache in the Build.
func (d *Decoder) Next(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := d.decode(b, x, nil, m, Mask{})
	if err != nil {
		return nil, err
	}
	return d.next(b, x)
}

// decode maps ids (B, T) or embeddings (B, T, D) to the states after the blocks, (B, T, D). The argument memory is an
// encoder's output. It must be nil if the blocks have no cross-attention, and may be nil if they use the keys and
// values kept in the Cache.
func (d *Decoder) decode(b *Build, x, memory *G.Node, self, cross Mask) (*G.Node, error) {
	positions := b.Positions
	if b.Cache != nil {
		tokens, _, err := d.tokens(x)
		if err != nil {
			return nil, err
		}
		if positions != nil {
			return nil, fmt.Errorf("%s: %w", d.name, errTwoPositions)
		}
		if positions, err = b.Cache.positions(b, x.Graph(), tokens); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return d.states(b, x, memory, positions, self, cross)
}

// next maps the states after the blocks to the logits for each sequence's next token: (B, T, D) -> (B, V).
func (d *Decoder) next(b *Build, x *G.Node) (*G.Node, error) {
	if b.Cache == nil {
		return nil, fmt.Errorf("%s: %w", d.name, errNoCache)
	}
	_, counts, err := b.Cache.nodes(x.Graph())
	if err != nil {
		return nil, err
	}
	if x, err = ops.Pool(b.Env(), x, counts, ops.LastPooling); err != nil { // (B, T, D) -> (B, D)
		return nil, err
	}
	return d.finish(b, x)
}
