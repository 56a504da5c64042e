package layers

import (
	"fmt"
	"strconv"
	"strings"

	G "gorgonia.org/gorgonia"
)

// A ProjectionConfig gives the embeddings of a model a width of their own, E, and a linear layer that maps them to the
// blocks' width (Lan et al., ALBERT, 2019). The tables of tokens, segments and positions then have this width. If the
// model has a Transform, its output has the width E, and so has the input of the head: a Tied model needs a Transform.
type ProjectionConfig struct {
	Dim    int  `json:"dim"`              // width of the embeddings, E
	NoBias bool `json:"no_bias,omitzero"` // leave out the bias of the linear layer

	// NormAfter applies the EmbeddingNorm to the output of the linear layer, as in DeBERTa. Otherwise it precedes the
	// layer and has the width E, as in ALBERT and ELECTRA.
	NormAfter bool `json:"norm_after,omitzero"`
}

// EmbeddingWidth returns the width of the model's embeddings: Dim, or the Dim of the Projection.
func (c ModelConfig) EmbeddingWidth() int {
	if c.Projection != nil {
		return c.Projection.Dim
	}
	return c.Dim
}

// newProjection makes the projection, if there is one, and the norm of the embeddings.
func (t *Trunk) newProjection(p *Params, c ModelConfig) (err error) {
	width := c.EmbeddingWidth()
	if r := c.Projection; r != nil {
		if t.Projection, err = NewLinear(p.Scope("projection"), r.Dim, c.Dim, LinearConfig{NoBias: r.NoBias}); err != nil {
			return err
		}
		if t.normAfter = r.NormAfter; r.NormAfter {
			width = c.Dim
		}
	}
	if c.EmbeddingNorm {
		t.EmbeddingNorm, err = NewNorm(p.Scope("embeddingnorm"), width, c.Block.Norm)
	}
	return err
}

// project normalises, drops and projects embeddings: (…, E) -> (…, D).
func (t *Trunk) project(b *Build, x *G.Node) (*G.Node, error) {
	switch {
	case t.Projection == nil:
		return chain(b, x, t.EmbeddingNorm, t.dropout)
	case t.normAfter:
		return chain(b, x, t.Projection, t.EmbeddingNorm, t.dropout)
	}
	return chain(b, x, t.EmbeddingNorm, t.dropout, t.Projection)
}

// newPositions makes a position scheme for the model. If the embeddings have a width of their own, the attention's
// configuration says the blocks' width.
func (c ModelConfig) newPositions(p *Params, scheme PositionsConfig) (Positions, error) {
	a := c.Block.Attention
	if c.Projection != nil {
		a.HeadDim, _ = a.HeadWidth(c.Dim)
		a.KeyInput = c.Dim
	}
	return c.withInit(scheme).New(p, c.EmbeddingWidth(), a)
}

// withInit returns the scheme with the model's EmbeddingInit in each Learned scheme without an Init of its own: vectors
// that are added to embeddings begin as large as these.
func (c ModelConfig) withInit(scheme PositionsConfig) PositionsConfig {
	switch s := scheme.(type) {
	case Learned:
		s.Init = s.Init.or(c.EmbeddingInit)
		return s
	case PositionsList:
		list := make([]PositionsConfig, len(s.Schemes))
		for i, scheme := range s.Schemes {
			list[i] = c.withInit(scheme)
		}
		return PositionsList{list}
	}
	return scheme
}

// maxShared is the largest number of layers that share weights. Without Shared, the weights' memory limits the number.
const maxShared = 10_000

// checkShared checks the fields that shared uses.
func (c ModelConfig) checkShared(name string) error {
	switch {
	case c.Shared < 0 || c.Shared > 0 && c.Layers%c.Shared != 0:
		return fmt.Errorf("%s: Shared must divide the number of layers, %d, or be 0 for weights of their own, got %d", name, c.Layers, c.Shared)
	case c.Shared > 0 && c.Layers > maxShared:
		return fmt.Errorf("%s: with Shared, there can be at most %d layers, got %d", name, maxShared, c.Layers)
	case c.Shared > 0 && c.Variants != nil:
		return fmt.Errorf("%s: Shared and Variants can't be combined: choose one", name)
	}
	return nil
}

// shared returns the index of the block whose weights block i has.
func (c ModelConfig) shared(i int) int {
	if c.Shared == 0 {
		return i
	}
	return i / (c.Layers / c.Shared)
}

// again returns a block with the same weights, as block i of a stack. Its captured weights, and its keys in a Cache,
// have names of their own.
func (block *Block) again(p *Params, i int) *Block {
	other := *block
	p = p.Scope("blocks").Scope(strconv.Itoa(i))
	for _, a := range []**MultiHeadAttention{&other.Attention, &other.Cross} {
		if *a != nil {
			attention := **a
			attention.scope = p.Scope(attention.scope[strings.LastIndexByte(attention.scope, '.')+1:]).scope()
			*a = &attention
		}
	}
	return &other
}
