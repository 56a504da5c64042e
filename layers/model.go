package layers

import (
	"fmt"
	"strconv"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ModelConfig describes an Encoder or a Decoder: token embeddings, positions, a stack of blocks, a norm after them (with
// pre-norm blocks) and a linear head.
type ModelConfig struct {
	Vocab  int // number of different tokens, V
	MaxLen int // longest sequence; 0 if Sinusoidal, NoPositions or Rotary, which have none
	Dim    int // width of the model, D
	Heads  int
	Layers int // number of blocks

	Hidden     int // width of the feed-forward layers; 4·Dim if 0
	Activation Activation
	Gated      bool    // see BlockConfig
	RMSNorm    bool    // see BlockConfig; of the norm after the blocks as well
	PostNorm   bool    // see BlockConfig
	Dropout    float64 // see BlockConfig; of the embeddings as well

	// Sinusoidal adds fixed waves for the positions, instead of rows that are learned.
	Sinusoidal bool

	// Rotary turns queries and keys by their positions, instead of adding something for the positions.
	Rotary *Rotary

	QKNorm bool // see BlockConfig

	// NoPositions adds nothing for the positions: it leaves telling them apart to the mask, as with the bias of ALiBi.
	NoPositions bool

	// Outputs is the width of the head: the number of classes of each position. An Encoder without a head, if it is 0,
	// returns its states; a Decoder's is Vocab if 0.
	Outputs int

	Init          Init // of every weight matrix; XavierUniform if nil
	EmbeddingInit Init // of token embeddings and learned positions; Normal(1) if nil

	table *Param // embeds the tokens, if there is one already
}

// trunk is what encoders and decoders share: everything but the blocks.
type trunk struct {
	Embedding *Embedding
	Positions Positions // nil with NoPositions or Rotary
	Norm      Norm      // after the last block; nil with PostNorm
	Head      *Linear   // nil without a head

	dropout Dropout
	name    string
}

func newTrunk(p *Params, name string, c ModelConfig) (*trunk, error) {
	t := &trunk{name: p.scopeName(name), dropout: Dropout{c.Dropout}}
	if err := positive(t.name, size{"Vocab", c.Vocab}, size{"Dim", c.Dim}, size{"Layers", c.Layers}); err != nil {
		return nil, err
	}
	if err := checkRate(t.name, c.Dropout); err != nil {
		return nil, err
	}
	if c.Outputs < 0 {
		return nil, fmt.Errorf("%s: Outputs can't be negative, got %d", t.name, c.Outputs)
	}
	var err error
	if c.table != nil {
		t.Embedding = &Embedding{Weight: c.table, name: p.Scope("embedding").scopeName("embedding")}
	} else if t.Embedding, err = NewEmbedding(p.Scope("embedding"), EmbeddingConfig{Vocab: c.Vocab, Dim: c.Dim, Init: c.EmbeddingInit}); err != nil {
		return nil, err
	}
	switch {
	case c.Sinusoidal && (c.NoPositions || c.Rotary != nil):
		return nil, fmt.Errorf("%s: Sinusoidal excludes NoPositions and Rotary", t.name)
	case c.Sinusoidal:
		t.Positions = SinusoidalPositions{}
	case !c.NoPositions && c.Rotary == nil:
		if t.Positions, err = NewLearnedPositions(p.Scope("positions"), LearnedPositionsConfig{MaxLen: c.MaxLen, Dim: c.Dim, Init: c.EmbeddingInit}); err != nil {
			return nil, err
		}
	}
	if !c.PostNorm {
		if t.Norm, err = newNorm(p.Scope("norm"), c.Dim, c.RMSNorm); err != nil {
			return nil, err
		}
	}
	if c.Outputs > 0 {
		t.Head, err = NewLinear(p.Scope("head"), LinearConfig{In: c.Dim, Out: c.Outputs, WeightInit: c.Init})
	}
	return t, err
}

func (c ModelConfig) block() BlockConfig {
	return BlockConfig{
		Dim: c.Dim, Heads: c.Heads, Hidden: c.Hidden, Activation: c.Activation, Gated: c.Gated, RMSNorm: c.RMSNorm, Rotary: c.Rotary, QKNorm: c.QKNorm,
		PostNorm: c.PostNorm, Dropout: c.Dropout, Init: c.Init,
	}
}

// embed maps ids (B, T) to (B, T, D).
func (t *trunk) embed(b *Build, ids *G.Node) (*G.Node, error) {
	if ids == nil {
		return nil, fmt.Errorf("%s: the ids are nil", t.name)
	}
	if d := ids.Dims(); ids.Dtype() != tensor.Int || d != 1 && d != 2 {
		return nil, fmt.Errorf("%s: the ids must be int of shape (B, T) or (T), got %v of shape %v", t.name, ids.Dtype(), ids.Shape())
	}
	if t.Positions == nil {
		return chain(b, ids, t.Embedding, t.dropout)
	}
	return chain(b, ids, t.Embedding, t.Positions, t.dropout)
}

// finish applies what follows the blocks.
func (t *trunk) finish(b *Build, x *G.Node) (*G.Node, error) {
	var err error
	if t.Norm != nil {
		if x, err = t.Norm.Forward(b, x); err != nil {
			return nil, err
		}
	}
	if t.Head != nil {
		return t.Head.Forward(b, x)
	}
	return x, nil
}

// Encoder is a transformer in which every position attends to the whole sequence (Vaswani et al., 2017; the head labels
// each position, as in Devlin et al., 2018).
type Encoder struct {
	*trunk
	Blocks []*EncoderBlock
}

// NewEncoder makes an Encoder with the scopes embedding, positions, blocks.0, blocks.1, …, norm and head.
func NewEncoder(p *Params, c ModelConfig) (*Encoder, error) {
	t, err := newTrunk(p, "encoder", c)
	if err != nil {
		return nil, err
	}
	e := &Encoder{trunk: t}
	for i := range c.Layers {
		block, err := NewEncoderBlock(p.Scope("blocks").Scope(strconv.Itoa(i)), c.block())
		if err != nil {
			return nil, err
		}
		e.Blocks = append(e.Blocks, block)
	}
	return e, nil
}

// Forward maps ids of shape (B, T), of dtype tensor.Int, to logits of shape (B, T, Outputs), or to states of shape
// (B, T, Dim) without a head. Pass the lengths of padded sequences as the mask's KeyLengths.
func (e *Encoder) Forward(b *Build, ids *G.Node, m Mask) (*G.Node, error) {
	x, err := e.embed(b, ids)
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

// Decoder is a decoder-only transformer, a language model: every position attends to itself and to those before it, and
// predicts the token that follows (Radford et al., 2019).
type Decoder struct {
	*trunk
	Blocks []*DecoderBlock
}

// NewDecoder makes a Decoder with the scopes embedding, positions, blocks.0, blocks.1, …, norm and head.
func NewDecoder(p *Params, c ModelConfig) (*Decoder, error) {
	if c.Outputs == 0 {
		c.Outputs = c.Vocab
	}
	t, err := newTrunk(p, "decoder", c)
	if err != nil {
		return nil, err
	}
	d := &Decoder{trunk: t}
	for i := range c.Layers {
		block, err := NewDecoderBlock(p.Scope("blocks").Scope(strconv.Itoa(i)), c.block())
		if err != nil {
			return nil, err
		}
		d.Blocks = append(d.Blocks, block)
	}
	return d, nil
}

// Forward maps ids of shape (B, T), of dtype tensor.Int, to logits of shape (B, T, Vocab). Attention is causal whatever
// the mask says. Padding belongs after a sequence, where being causal already hides it: it needs no KeyLengths.
func (d *Decoder) Forward(b *Build, ids *G.Node, m Mask) (*G.Node, error) {
	x, err := d.embed(b, ids)
	if err != nil {
		return nil, err
	}
	for _, block := range d.Blocks {
		if x, err = block.Forward(b, x, nil, m, Mask{}); err != nil {
			return nil, err
		}
	}
	return d.finish(b, x)
}
