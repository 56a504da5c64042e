package layers

import G "gorgonia.org/gorgonia"

// Encoder is a transformer in which every position attends to the whole sequence (Vaswani et al., 2017). Its head gives
// logits for each position (Devlin et al., 2018). Make one with NewEncoder.
type Encoder struct{ *Trunk }

// NewEncoder makes an Encoder with the scopes embedding, segments, positions, embeddingnorm, projection, blocks.0,
// blocks.1, …, norm, transform and head.
func NewEncoder(p *Params, c ModelConfig) (*Encoder, error) { return newEncoder(p, c, nil) }

// newEncoder makes an Encoder. If table isn't nil, the Encoder uses it as the embedding table.
func newEncoder(p *Params, c ModelConfig, table *Param) (*Encoder, error) {
	t, err := newTrunk(p, "encoder", c, table, NewEncoderBlock)
	return &Encoder{t}, err
}

// Forward maps ids of shape (B, T) and dtype tensor.Int to logits of shape (B, T, Outputs). Without a head, it returns
// states of shape (B, T, Dim). Forward also accepts embeddings instead of ids, such as a time series or the patches of
// an image. They have shape (B, T, Dim), the parameters' dtype and a gradient. The batch axis may be omitted. For
// padded sequences, set the mask's KeyLengths to the lengths of the sequences.
func (e *Encoder) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := e.states(b, x, nil, b.Positions, m, Mask{})
	if err != nil {
		return nil, err
	}
	return e.finish(b, x)
}

// States is like Forward, but leaves out the head: it returns states of shape (B, T, Dim) after the last norm.
func (e *Encoder) States(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := e.states(b, x, nil, b.Positions, m, Mask{})
	if err != nil {
		return nil, err
	}
	return e.Norm.Forward(b, x)
}
