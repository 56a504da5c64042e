package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// BlockConfig describes an EncoderBlock or a DecoderBlock.
type BlockConfig struct {
	Dim        int // width of the model, D
	Heads      int // number of heads, H; 1 if 0
	Hidden     int // width of the feed-forward layer; 4·Dim if 0
	Activation Activation
	Gated      bool    // gates the feed-forward layer: see FeedForward
	RMSNorm    bool    // normalises with RMSNorms in place of LayerNorms
	NormEps    float64 // of every norm; 1e-5 if 0, and 1e-6 of RMSNorms
	NoBias     bool    // leaves out every bias, those of LayerNorms too

	// PostNorm normalises after each residual sum, as in Vaswani et al., 2017. Without it each sub-layer's input is
	// normalised instead (Xiong et al., 2020), which trains without care, and needs a norm after the last block.
	PostNorm bool

	// Dropout is the probability, in training, of dropping an attention weight, a hidden unit of the feed-forward layer
	// or an element of a sub-layer's output.
	Dropout float64

	KeyValueHeads int     // see MultiHeadConfig; Heads if 0
	HeadDim       int     // width of a head, K; Dim/Heads if 0
	Scale         float64 // of the scores; 1/√K if 0
	Softcap       float64 // bounds the scores of attention: see AttentionOptions; 0 for none
	Rotary        *Rotary // turns the queries and keys of self-attention by their positions; nil for none
	QKNorm        bool    // normalises queries and keys: see MultiHeadConfig

	// Cross gives a DecoderBlock attention to an encoder's output.
	Cross bool

	Init Init // of every weight matrix; XavierUniform if nil
}

// EncoderBlock is self-attention and a feed-forward layer, each with a residual connection and a norm: a LayerNorm, or an
// RMSNorm if the configuration says so.
type EncoderBlock struct {
	Attention   *MultiHeadAttention
	FeedForward *FeedForward
	Norm1       Norm // of the attention
	Norm2       Norm // of the feed-forward layer

	residual residual
}

// NewEncoderBlock makes an EncoderBlock with the scopes attention, feedforward, norm1 and norm2.
func NewEncoderBlock(p *Params, c BlockConfig) (*EncoderBlock, error) {
	e := &EncoderBlock{residual: residual{c.PostNorm, Dropout{c.Dropout}}}
	if c.Cross {
		return nil, fmt.Errorf("%s: only a DecoderBlock can have cross-attention", p.scopeName("encoder block"))
	}
	var err error
	if e.Attention, err = NewMultiHeadAttention(p.Scope("attention"), c.attention()); err != nil {
		return nil, err
	}
	if e.FeedForward, err = NewFeedForward(p.Scope("feedforward"), c.feedForward()); err != nil {
		return nil, err
	}
	err = newNorms(p, c, &e.Norm1, &e.Norm2)
	return e, err
}

// Forward maps x of shape (B, T, Dim) or (T, Dim) to the same shape; every position attends to those that the mask
// allows.
func (e *EncoderBlock) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := e.residual.add(b, x, e.Norm1, func(x *G.Node) (*G.Node, error) {
		return e.Attention.Forward(b, x, x, x, m)
	})
	if err != nil {
		return nil, err
	}
	return e.residual.add(b, x, e.Norm2, func(x *G.Node) (*G.Node, error) { return e.FeedForward.Forward(b, x) })
}

// DecoderBlock is causal self-attention, attention to an encoder's output if the configuration has Cross, and a
// feed-forward layer, each with a residual connection and a norm, as in an EncoderBlock.
type DecoderBlock struct {
	Attention   *MultiHeadAttention
	Cross       *MultiHeadAttention // nil without cross-attention
	FeedForward *FeedForward
	Norm1       Norm // of the self-attention
	Norm2       Norm // of the feed-forward layer
	NormCross   Norm // of the cross-attention; nil without

	residual residual
	name     string
}

// NewDecoderBlock makes a DecoderBlock with the scopes attention, cross, feedforward, norm1, norm2 and normcross.
func NewDecoderBlock(p *Params, c BlockConfig) (*DecoderBlock, error) {
	d := &DecoderBlock{residual: residual{c.PostNorm, Dropout{c.Dropout}}, name: p.scopeName("decoder block")}
	var err error
	if d.Attention, err = NewMultiHeadAttention(p.Scope("attention"), c.attention()); err != nil {
		return nil, err
	}
	if c.Cross {
		if d.Cross, err = NewMultiHeadAttention(p.Scope("cross"), c.cross()); err != nil {
			return nil, err
		}
		if d.NormCross, err = newNorm(p.Scope("normcross"), c); err != nil {
			return nil, err
		}
	}
	if d.FeedForward, err = NewFeedForward(p.Scope("feedforward"), c.feedForward()); err != nil {
		return nil, err
	}
	err = newNorms(p, c, &d.Norm1, &d.Norm2)
	return d, err
}

// Forward maps x of shape (B, T, Dim) or (T, Dim) to the same shape. Self-attention is causal whatever self says, and
// obeys the rest of self too, which must have no offset. memory, of shape (B, S, Dim), is what the cross-attention reads, under the mask cross; it
// must be nil if the block has none.
//
// With a Cache in the Build, the block continues the sequences that it holds: see MultiHeadAttention.ForwardCached, and
// ForwardMemory, which says what a memory of nil means then.
func (d *DecoderBlock) Forward(b *Build, x, memory *G.Node, self, cross Mask) (*G.Node, error) {
	cached := b != nil && b.Cache != nil
	if memory != nil && d.Cross == nil {
		return nil, fmt.Errorf("%s: it was made without Cross, and can't attend to an encoder's output", d.name)
	}
	if memory == nil && d.Cross != nil && !cached {
		return nil, fmt.Errorf("%s: it was made with Cross, and must be given an encoder's output (of an EncoderDecoder, use Decode)", d.name)
	}
	if self.Offset != 0 || self.Offsets != nil {
		return nil, fmt.Errorf("%s: the mask of self-attention can't have an offset, as queries and keys are the same tokens", d.name)
	}
	self.Causal = true
	x, err := d.residual.add(b, x, d.Norm1, func(x *G.Node) (*G.Node, error) {
		if cached {
			return d.Attention.ForwardCached(b, x, self)
		}
		return d.Attention.Forward(b, x, x, x, self)
	})
	if err != nil {
		return nil, err
	}
	if d.Cross != nil {
		x, err = d.residual.add(b, x, d.NormCross, func(x *G.Node) (*G.Node, error) {
			if cached {
				return d.Cross.ForwardMemory(b, x, memory, cross)
			}
			return d.Cross.Forward(b, x, memory, memory, cross)
		})
		if err != nil {
			return nil, err
		}
	}
	return d.residual.add(b, x, d.Norm2, func(x *G.Node) (*G.Node, error) { return d.FeedForward.Forward(b, x) })
}

func (c BlockConfig) attention() MultiHeadConfig {
	return MultiHeadConfig{
		Dim:           c.Dim,
		Heads:         c.Heads,
		KeyValueHeads: c.KeyValueHeads,
		HeadDim:       c.HeadDim,
		Rotary:        c.Rotary,
		QKNorm:        c.QKNorm,
		NormEps:       c.NormEps,
		Scale:         c.Scale,
		Softcap:       c.Softcap,
		NoBias:        c.NoBias,
		Dropout:       c.Dropout,
		Init:          c.Init,
	}
}

// cross is attention without Rotary, as positions of two sequences have no distance.
func (c BlockConfig) cross() MultiHeadConfig {
	m := c.attention()
	m.Rotary = nil
	return m
}

func (c BlockConfig) feedForward() FeedForwardConfig {
	return FeedForwardConfig{
		Dim:        c.Dim,
		Hidden:     c.Hidden,
		Activation: c.Activation,
		Gated:      c.Gated,
		NoBias:     c.NoBias,
		Dropout:    c.Dropout,
		Init:       c.Init,
	}
}

func newNorms(p *Params, c BlockConfig, norm1, norm2 *Norm) (err error) {
	if *norm1, err = newNorm(p.Scope("norm1"), c); err != nil {
		return err
	}
	*norm2, err = newNorm(p.Scope("norm2"), c)
	return err
}

// residual joins a sub-layer to the stream that runs past it.
type residual struct {
	postNorm bool
	dropout  Dropout
}

// add is x + dropout(sub(norm(x))) or, with postNorm, norm(x + dropout(sub(x))).
func (r residual) add(b *Build, x *G.Node, norm Norm, sub func(*G.Node) (*G.Node, error)) (*G.Node, error) {
	in := x
	var err error
	if !r.postNorm {
		if in, err = norm.Forward(b, x); err != nil {
			return nil, err
		}
	}
	y, err := sub(in)
	if err != nil {
		return nil, err
	}
	if y, err = r.dropout.Forward(b, y); err != nil {
		return nil, err
	}
	if y, err = ops.Add(b.env(), x, y); err != nil || !r.postNorm {
		return y, err
	}
	return norm.Forward(b, y)
}
