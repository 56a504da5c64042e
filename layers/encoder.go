package layers

import G "gorgonia.org/gorgonia"

// Encoder is a transformer in which every position attends to the whole sequence (Vaswani et al., 2017; the head labels
// each position, as in Devlin et al., 2018). Make one with NewEncoder.
type Encoder struct {
	*Trunk
	Blocks []*EncoderBlock
}

// NewEncoder makes an Encoder with the scopes embedding, positions, blocks.0, blocks.1, …, norm and head.
func NewEncoder(p *Params, c ModelConfig) (*Encoder, error) { return newEncoder(p, c, nil) }

// newEncoder makes an Encoder with a table of embeddings, if it isn't nil.
func newEncoder(p *Params, c ModelConfig, table *Param) (*Encoder, error) {
	p = p.withInit(c.Init)
	t, err := newTrunk(p, "encoder", c, table)
	if err != nil {
		return nil, err
	}
	e := &Encoder{Trunk: t}
	e.Blocks, err = newBlocks(p, t.name, c.Layers, func(p *Params) (*EncoderBlock, error) {
		block, err := NewEncoderBlock(p, c.Dim, c.Block)
		if err == nil {
			block.Attention.Positions = t.Positions
		}
		return block, err
	})
	return e, err
}

// Forward maps ids of shape (B, T), of dtype tensor.Int, to logits of shape (B, T, Outputs), or to states of shape
// (B, T, Dim) without a head. In place of ids it takes embeddings of shape (B, T, Dim) and the parameters' dtype, such
// as those of a time series or of an image's patches; gradients flow into them. A batch axis may be left out. Pass the
// lengths of padded sequences as the mask's KeyLengths.
func (e *Encoder) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := e.embed(b, x, b.Positions)
	if err != nil {
		return nil, err
	}
	for _, block := range e.Blocks {
		if x, err = block.Forward(b, x, m); err != nil {
			return nil, err
		}
	}
	return e.finish(b, x)
}
