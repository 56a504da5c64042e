package layers

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// BlockConfig describes a Block.
type BlockConfig struct {
	// Attention describes the self-attention and the attention to an encoder's output. Their inputs and outputs must
	// have the block's width. The latter attention has no Window.
	Attention   AttentionConfig   `json:"attention"`
	FeedForward FeedForwardConfig `json:"feed_forward"`
	Norm        NormConfig        `json:"norm"` // the norm of every sub-layer

	// PostNorm normalises the sum after each residual connection (Vaswani et al., 2017). Without PostNorm, the block
	// normalises the input of each sub-layer (Xiong et al., 2020). Such a model trains more easily, but needs a norm
	// after the last block.
	PostNorm bool `json:"post_norm,omitzero"`

	// OutputNorm also normalises the output of each sub-layer before it is added: x + normout(sub(norm(x))), as in
	// Gemma 2 (2024).
	OutputNorm bool `json:"output_norm,omitzero"`

	// NoInputNorm leaves out the norm of each sub-layer's input: x + normout(sub(x)), as in OLMo 2 (2024). It needs
	// OutputNorm, and there must be no PostNorm.
	NoInputNorm bool `json:"no_input_norm,omitzero"`

	// Parallel gives self-attention and the feed-forward layer the same input, x + attention(norm1(x)) +
	// feedforward(norm2(x)), as in GPT-NeoX (Black et al., 2022). There must be no PostNorm and no cross-attention.
	Parallel bool `json:"parallel,omitzero"`

	// SharedNorm gives both sub-layers of a Parallel block one norm: x + attention(norm1(x)) + feedforward(norm1(x)),
	// as in Cohere's Command (2024). There must be no NoInputNorm.
	SharedNorm bool `json:"shared_norm,omitzero"`

	// ResidualScale multiplies the output of each sub-layer before it is added, as in Granite (2024). 0 means 1.
	ResidualScale float64 `json:"residual_scale,omitzero"`

	Dropout float64 `json:"dropout,omitzero"` // dropout rate of the sub-layers' outputs, in training

	noNorm1 bool // see BlockVariant
}

// A Block is self-attention, attention to an encoder's output (only if made by NewCrossDecoderBlock) and a feed-forward
// layer. Each sub-layer has a residual connection and a norm. Make one with NewEncoderBlock, NewDecoderBlock or
// NewCrossDecoderBlock.
type Block struct {
	Attention   *MultiHeadAttention // you may set its Positions
	Cross       *MultiHeadAttention // nil without cross-attention
	FeedForward *FeedForward
	Norm1       *Norm // for the self-attention; nil if NoInputNorm or a BlockVariant leaves it out
	Norm2       *Norm // for the feed-forward layer; nil with NoInputNorm or SharedNorm
	NormCross   *Norm // for the cross-attention; nil without it, and with NoInputNorm

	// These normalise the outputs of the same sub-layers; nil without OutputNorm.
	Norm1Out, Norm2Out, NormCrossOut *Norm

	residual residual
	parallel bool
	shared   bool // SharedNorm
	causal   bool // for a decoder
	name     string
}

// NewEncoderBlock makes a Block of width dim with the scopes attention, feedforward, norm1 and norm2 and, with
// OutputNorm, norm1out and norm2out. Every position attends to the positions that the mask allows.
func NewEncoderBlock(p *Params, dim int, c BlockConfig) (*Block, error) {
	return newBlock(p, dim, c, Block{name: p.scopeName("encoder block")})
}

// NewDecoderBlock is like NewEncoderBlock, but the block's self-attention is always causal.
func NewDecoderBlock(p *Params, dim int, c BlockConfig) (*Block, error) {
	return newBlock(p, dim, c, Block{name: p.scopeName("decoder block"), causal: true})
}

// NewCrossDecoderBlock is like NewDecoderBlock, but the block also attends to an encoder's output. The output must have
// the block's width. The block has the additional scopes cross and normcross and, with OutputNorm,
// normcrossout.
func NewCrossDecoderBlock(p *Params, dim int, c BlockConfig) (*Block, error) {
	block, err := NewDecoderBlock(p, dim, c)
	if err != nil {
		return nil, err
	}
	if c.Parallel {
		return nil, fmt.Errorf("%s: Parallel must be false, because attention to an encoder's output comes between the two other sub-layers", block.name)
	}
	c.Attention.Window = nil // its positions are those of one sequence
	var err2 error
	block.Cross, err = newBlockAttention(p.Scope("cross"), dim, c.Attention)
	block.NormCross, block.NormCrossOut, err2 = c.norms(p, "normcross", dim)
	return block, cmp.Or(err, err2)
}

// newBlock makes the parts that all blocks have.
func newBlock(p *Params, dim int, c BlockConfig, block Block) (*Block, error) {
	block.residual, block.parallel, block.shared = residual{c.PostNorm, Dropout{c.Dropout}, c.ResidualScale}, c.Parallel, c.SharedNorm
	if c.Parallel && c.PostNorm {
		return nil, fmt.Errorf("%s: Parallel and PostNorm can't be combined, because both sub-layers share one residual connection: choose one", block.name)
	}
	if c.NoInputNorm && (c.PostNorm || !c.OutputNorm) {
		return nil, fmt.Errorf("%s: NoInputNorm needs OutputNorm, and no PostNorm, got OutputNorm %t and PostNorm %t", block.name, c.OutputNorm, c.PostNorm)
	}
	if c.SharedNorm && (!c.Parallel || c.NoInputNorm) {
		return nil, fmt.Errorf("%s: SharedNorm needs Parallel, and no NoInputNorm, got Parallel %t and NoInputNorm %t", block.name, c.Parallel, c.NoInputNorm)
	}
	if !(math.Abs(c.ResidualScale) <= ops.Largest) {
		return nil, fmt.Errorf("%s: ResidualScale must be finite and at most %v in size, got %v", block.name, ops.Largest, c.ResidualScale)
	}
	var errs [4]error
	block.Attention, errs[0] = newBlockAttention(p.Scope("attention"), dim, c.Attention)
	block.FeedForward, errs[1] = NewFeedForward(p.Scope("feedforward"), dim, c.FeedForward)
	block.Norm1, block.Norm1Out, errs[2] = c.norms(p, "norm1", dim)
	block.Norm2, block.Norm2Out, errs[3] = c.norms(p, "norm2", dim)
	return &block, cmp.Or(errs[0], errs[1], errs[2], errs[3], ops.CheckRate(block.name, c.Dropout))
}

// norms makes the norms of a sub-layer that the configuration asks for. The others are nil.
func (c BlockConfig) norms(p *Params, scope string, dim int) (norm, out *Norm, err error) {
	if !c.NoInputNorm && (!c.noNorm1 || scope != "norm1") && (!c.SharedNorm || scope != "norm2") {
		norm, err = NewNorm(p.Scope(scope), dim, c.Norm)
	}
	if c.OutputNorm && err == nil {
		out, err = NewNorm(p.Scope(scope+"out"), dim, c.Norm)
	}
	return norm, out, err
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

// Forward maps x of shape (B, T, Dim) or (T, Dim) to the same shape, without cross-attention. See ForwardCross for the
// mask and a Cache in a decoder's block.
func (block *Block) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	return block.ForwardCross(b, x, nil, m, Mask{})
}

// ForwardCross is like Forward, but the block also attends to memory, an encoder's output of shape (B, S, Dim). The
// arguments self and cross are the masks of the two attentions. In a decoder's block, self must have no offset.
//
// With a Cache in the Build, a decoder's block continues the sequences in the Cache, which describes the masks. If
// memory is then nil, the block uses the keys and values that the Cache kept last. In this case, another graph with a
// memory of the same shape must have been built before, and must run before this graph.
func (block *Block) ForwardCross(b *Build, x, memory *G.Node, self, cross Mask) (*G.Node, error) {
	cached := block.causal && b.Cache != nil
	switch {
	case memory != nil && block.Cross == nil:
		return nil, fmt.Errorf("%s has no cross-attention and can't attend to an encoder's output: make the block with NewCrossDecoderBlock", block.name)
	case memory == nil && block.Cross != nil && !cached:
		return nil, fmt.Errorf("%s has cross-attention and needs an encoder's output (for an EncoderDecoder, call Decode)", block.name)
	case block.causal && (self.Offset != 0 || self.Offsets != nil):
		return nil, fmt.Errorf("%s: the mask of self-attention can't have an offset, because queries and keys are the same tokens", block.name)
	}
	self.Causal = self.Causal || block.causal
	input, norm := x, block.Norm1
	if block.shared {
		var err error
		if input, err = norm.Forward(b, x); err != nil {
			return nil, err
		}
		norm = nil
	}
	y, err := block.residual.add(b, x, input, norm, block.Norm1Out, func(x *G.Node) (*G.Node, error) {
		if cached {
			return block.Attention.forwardCached(b, x, self)
		}
		return block.Attention.Forward(b, x, x, x, self)
	})
	if err != nil {
		return nil, err
	}
	if block.Cross != nil {
		y, err = block.residual.add(b, y, y, block.NormCross, block.NormCrossOut, func(x *G.Node) (*G.Node, error) {
			if cached {
				return block.Cross.forwardMemory(b, x, memory, cross)
			}
			return block.Cross.Forward(b, x, memory, memory, cross)
		})
		if err != nil {
			return nil, err
		}
	}
	if !block.parallel {
		input = y
	}
	return block.residual.add(b, y, input, block.Norm2, block.Norm2Out, func(x *G.Node) (*G.Node, error) { return block.FeedForward.Forward(b, x) })
}

// residual is a residual connection: it adds the output of a sub-layer to the sub-layer's input or, in a parallel
// block, to a sum with this input.
type residual struct {
	postNorm bool
	dropout  Dropout
	scale    float64 // of the sub-layer's output; 0 means 1
}

// add returns sum + scale·dropout(out(sub(norm(x)))) or, with postNorm, norm(sum + scale·dropout(out(sub(x)))). A norm
// of nil returns its input.
func (r residual) add(b *Build, sum, x *G.Node, norm, out *Norm, sub func(*G.Node) (*G.Node, error)) (*G.Node, error) {
	before, after := norm, (*Norm)(nil)
	if r.postNorm {
		before, after = after, before
	}
	input, err := before.Forward(b, x)
	if err != nil {
		return nil, err
	}
	y, err := sub(input)
	if err != nil {
		return nil, err
	}
	if y, err = chain(b, y, out, r.dropout); err != nil {
		return nil, err
	}
	if y, err = scaled(b, y, r.scale); err != nil {
		return nil, err
	}
	if y, err = ops.Following(b.Env(), sum, input, func() (*G.Node, error) { return ops.Add(b.Env(), sum, y) }); err != nil {
		return nil, err
	}
	return after.Forward(b, y)
}

// scaled returns x·by, and x itself if by is 1, or 0, which means 1.
func scaled(b *Build, x *G.Node, by float64) (*G.Node, error) {
	if by == 0 || by == 1 {
		return x, nil
	}
	return ops.Scale(b.Env(), x, by)
}
