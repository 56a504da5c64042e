package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// Embedding maps each id to a row of a table. Make one with NewEmbedding.
type Embedding struct {
	Weight *Param // (Vocab, Dim)

	name string
}

// NewEmbedding makes an Embedding that maps ids below vocab to vectors of width dim, with the parameter "weight". A
// zero init means Normal(1).
func NewEmbedding(p *Params, vocab, dim int, init Init) (*Embedding, error) {
	e := &Embedding{name: p.scopeName("embedding")}
	if err := positive(e.name, size{"Vocab", vocab}, size{"Dim", dim}); err != nil {
		return nil, err
	}
	var err error
	e.Weight, err = p.New("weight", init.or(Normal(1)), vocab, dim)
	return e, err
}

// Forward maps ids of dtype tensor.Int, with at least one axis, to vectors: (…) -> (…, Dim). When the graph runs, an id
// outside [0, Vocab) causes an error.
func (e *Embedding) Forward(b *Build, ids *G.Node) (*G.Node, error) {
	if ids.Dtype() != tensor.Int || ids.Dims() < 1 {
		return nil, fmt.Errorf("%s: the ids must be int, of shape (T) or (B, T), got %v of shape %v", e.name, ids.Dtype(), ids.Shape())
	}
	w, err := b.bindWeights(ids.Graph(), e.Weight)
	if err != nil {
		return nil, err
	}
	if q := b.own(e.Weight).int8; q != nil {
		return ops.EmbeddingInt8(b.Env(), w, q, ids)
	}
	return ops.Embedding(b.Env(), w, ids)
}
