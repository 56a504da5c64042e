package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// BlockConfig describes an EncoderBlock or a DecoderBlock.
type BlockConfig struct {
	// Attention describes the self-attention and the attention to an encoder's output. Their inputs and outputs must
	// have the block's width.
	Attention   AttentionConfig   `json:"attention"`
	FeedForward FeedForwardConfig `json:"feed_forward"`
	Norm        NormConfig        `json:"norm"` // the norm of every sub-layer

	// PostNorm normalises the sum after each residual connection (Vaswani et al., 2017). Without PostNorm, the block
	// normalises the input of each sub-layer (Xiong et al., 2020). Such a model trains more easily, but needs a norm
	// after the last block.
	PostNorm bool `json:"post_norm,omitzero"`

	Dropout float64 `json:"dropout,omitzero"` // dropout rate of the sub-layers' outputs, in training
}

// EncoderBlock is self-attention followed by a feed-forward layer. Both sub-layers have a residual connection and a
// norm, by default a LayerNorm. Make one with NewEncoderBlock.
type EncoderBlock struct {
	Attention   *MultiHeadAttention // you may set its Positions
	FeedForward *FeedForward
	Norm1       Norm // for the attention
	Norm2       Norm // for the feed-forward layer

	residual residual
}

// NewEncoderBlock makes an EncoderBlock of width dim with the scopes attention, feedforward, norm1 and norm2.
func NewEncoderBlock(p *Params, dim int, c BlockConfig) (*EncoderBlock, error) {
	return newBlock(p, p.scopeName("encoder block"), dim, c)
}

// newBlock makes the parts that an EncoderBlock and a DecoderBlock share.
func newBlock(p *Params, name string, dim int, c BlockConfig) (*EncoderBlock, error) {
	e := &EncoderBlock{residual: residual{c.PostNorm, Dropout{c.Dropout}}}
	var err error
	if e.Attention, err = newBlockAttention(p.Scope("attention"), dim, c.Attention); err != nil {
		return nil, err
	}
	if e.FeedForward, err = NewFeedForward(p.Scope("feedforward"), dim, c.FeedForward); err != nil {
		return nil, err
	}
	if e.Norm1, err = newNorm(p.Scope("norm1"), dim, c.Norm); err != nil {
		return nil, err
	}
	if e.Norm2, err = newNorm(p.Scope("norm2"), dim, c.Norm); err != nil {
		return nil, err
	}
	return e, ops.CheckRate(name, c.Dropout)
}

// newBlockAttention makes a MultiHeadAttention. It returns an error if an input or the output doesn't have width dim.
func newBlockAttention(p *Params, dim int, c AttentionConfig) (*MultiHeadAttention, error) {
	a, err := NewMultiHeadAttention(p, dim, c)
	if err != nil {
		return nil, err
	}
	for _, x := range []size{{"KeyInput", c.KeyInput}, {"ValueInput", c.ValueInput}} {
		if x.value != 0 && x.value != dim {
			return nil, fmt.Errorf("%s: in a block, %s must be 0 or the block's width, %d, got %d", a.name, x.name, dim, x.value)
		}
	}
	if out := memory.Product(a.heads, a.Value.Weight.Value.Shape()[0]/a.groups); c.NoOutput && out != dim {
		return nil, fmt.Errorf("%s: in a block with NoOutput, the widths of the heads must add up to the block's width, %d, got %d", a.name, dim, out)
	}
	return a, nil
}

// Forward maps x of shape (B, T, Dim) or (T, Dim) to the same shape. Every position attends to the positions that the
// mask allows.
func (e *EncoderBlock) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := e.residual.add(b, x, e.Norm1, func(x *G.Node) (*G.Node, error) {
		return e.Attention.Forward(b, x, x, x, m)
	})
	if err != nil {
		return nil, err
	}
	return e.residual.add(b, x, e.Norm2, func(x *G.Node) (*G.Node, error) { return e.FeedForward.Forward(b, x) })
}

// DecoderBlock is causal self-attention, attention to an encoder's output (only if made by NewCrossDecoderBlock) and a
// feed-forward layer. Each sub-layer has a residual connection and a norm, as in an EncoderBlock. Make one with
// NewDecoderBlock or NewCrossDecoderBlock.
type DecoderBlock struct {
	Attention   *MultiHeadAttention // you may set its Positions
	Cross       *MultiHeadAttention // nil without cross-attention
	FeedForward *FeedForward
	Norm1       Norm // for the self-attention
	Norm2       Norm // for the feed-forward layer
	NormCross   Norm // for the cross-attention; nil without it

	residual residual
	name     string
}

// NewDecoderBlock makes a DecoderBlock of width dim without cross-attention, with the scopes attention, feedforward,
// norm1 and norm2.
func NewDecoderBlock(p *Params, dim int, c BlockConfig) (*DecoderBlock, error) {
	name := p.scopeName("decoder block")
	e, err := newBlock(p, name, dim, c)
	if err != nil {
		return nil, err
	}
	return &DecoderBlock{Attention: e.Attention, FeedForward: e.FeedForward, Norm1: e.Norm1, Norm2: e.Norm2, residual: e.residual, name: name}, nil
}

// NewCrossDecoderBlock makes a DecoderBlock that also attends to an encoder's output. The output must have the block's
// width. The block has the additional scopes cross and normcross.
func NewCrossDecoderBlock(p *Params, dim int, c BlockConfig) (*DecoderBlock, error) {
	d, err := NewDecoderBlock(p, dim, c)
	if err != nil {
		return nil, err
	}
	if d.Cross, err = newBlockAttention(p.Scope("cross"), dim, c.Attention); err != nil {
		return nil, err
	}
	d.NormCross, err = newNorm(p.Scope("normcross"), dim, c.Norm)
	return d, err
}

// Forward maps x of shape (B, T, Dim) or (T, Dim) to the same shape. Self-attention is always causal. Its mask, self,
// adds further limits and must have no offset. The argument memory is an encoder's output, of shape (B, S, Dim), or nil
// if the block has no cross-attention. The argument cross is the mask of the cross-attention.
//
// With a Cache in the Build, the block continues the sequences in the Cache: see MultiHeadAttention.ForwardCached. If
// memory is then nil, the block uses the keys and values kept in the Cache: see MultiHeadAttention.ForwardMemory.
func (d *DecoderBlock) Forward(b *Build, x, memory *G.Node, self, cross Mask) (*G.Node, error) {
	cached := b.Cache != nil
	if memory != nil && d.Cross == nil {
		return nil, fmt.Errorf("%s has no cross-attention and can't attend to an encoder's output: make the block with NewCrossDecoderBlock", d.name)
	}
	if memory == nil && d.Cross != nil && !cached {
		return nil, fmt.Errorf("%s has cross-attention and needs an encoder's output (for an EncoderDecoder, call Decode)", d.name)
	}
	if self.Offset != 0 || self.Offsets != nil {
		return nil, fmt.Errorf("%s: the mask of self-attention can't have an offset, because queries and keys are the same tokens", d.name)
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

// residual is a residual connection: it adds the output of a sub-layer to the sub-layer's input.
type residual struct {
	postNorm bool
	dropout  Dropout
}

// add returns x + dropout(sub(norm(x))) or, with postNorm, norm(x + dropout(sub(x))).
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
	if y, err = ops.Add(b.Env(), x, y); err != nil || !r.postNorm {
		return y, err
	}
	return norm.Forward(b, y)
}
