package layers

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// Embedding looks up a row of a table for every id.
type Embedding struct {
	Weight *Param // (Vocab, Dim)

	name string
}

// EmbeddingConfig describes an Embedding.
type EmbeddingConfig struct {
	Vocab, Dim int
	Init       Init // Normal(1) if nil
}

// NewEmbedding makes an Embedding with the parameter "weight".
func NewEmbedding(p *Params, c EmbeddingConfig) (*Embedding, error) {
	e := &Embedding{name: p.scopeName("embedding")}
	if err := positive(e.name, size{"Vocab", c.Vocab}, size{"Dim", c.Dim}); err != nil {
		return nil, err
	}
	if c.Init == nil {
		c.Init = Normal(1)
	}
	var err error
	e.Weight, err = p.New("weight", c.Init, c.Vocab, c.Dim)
	return e, err
}

// Forward maps ids of shape (…), of dtype tensor.Int, to (…, Dim). An id outside [0, Vocab) is an error when the graph
// runs.
func (e *Embedding) Forward(b *Build, ids *G.Node) (*G.Node, error) {
	if ids == nil {
		return nil, fmt.Errorf("%s: the ids are nil", e.name)
	}
	if ids.Dtype() != tensor.Int || ids.Dims() < 1 {
		return nil, fmt.Errorf("%s: the ids must be int, of shape (T) or (B, T), got %v of shape %v", e.name, ids.Dtype(), ids.Shape())
	}
	w, err := b.Bind(ids.Graph(), e.Weight)
	if err != nil {
		return nil, err
	}
	return ops.Embedding(b.env(), w, ids)
}

// A Positions layer tells a sequence's positions apart: it maps (T, D) or (B, T, D) to the same shape.
//
// positions may be nil: element t of a sequence is then at position t. Otherwise it is a node of dtype tensor.Int: of
// shape (B), it is the position of each batch element's first element, as where a sequence is continued; of shape (B, T),
// the position of every one, as where sequences are padded in front. B is 1 without a batch axis.
type Positions interface {
	Forward(b *Build, x, positions *G.Node) (*G.Node, error)
}

// LearnedPositions adds a learned row to each position.
type LearnedPositions struct {
	Weight *Param // (MaxLen, Dim)

	name string
}

// LearnedPositionsConfig describes a LearnedPositions.
type LearnedPositionsConfig struct {
	MaxLen int // the longest sequence
	Dim    int
	Init   Init // Normal(1) if nil
}

// NewLearnedPositions makes a LearnedPositions with the parameter "weight".
func NewLearnedPositions(p *Params, c LearnedPositionsConfig) (*LearnedPositions, error) {
	l := &LearnedPositions{name: p.scopeName("learned positions")}
	if err := positive(l.name, size{"MaxLen", c.MaxLen}, size{"Dim", c.Dim}); err != nil {
		return nil, err
	}
	if c.Init == nil {
		c.Init = Normal(1)
	}
	var err error
	l.Weight, err = p.New("weight", c.Init, c.MaxLen, c.Dim)
	return l, err
}

// Forward adds to each position of x, of shape (T, Dim) or (B, T, Dim), the row of the table that is its own. A position
// outside [0, MaxLen) is an error: of the graph if positions is nil, and else when it runs.
func (l *LearnedPositions) Forward(b *Build, x, positions *G.Node) (*G.Node, error) {
	s := l.Weight.Value.Shape()
	if err := checkSequence(l.name, "the input", x, l.Weight.Value.Dtype(), s[1]); err != nil {
		return nil, err
	}
	w, err := b.Bind(x.Graph(), l.Weight)
	if err != nil {
		return nil, err
	}
	if positions == nil {
		if t := x.Shape()[x.Dims()-2]; t > s[0] {
			return nil, fmt.Errorf("%s: a sequence may have at most %d positions, got %d", l.name, s[0], t)
		}
		return ops.AddRows(b.env(), x, w)
	}
	ids, err := positionIDs(b, l.name, x, positions, s[0])
	if err != nil {
		return nil, err
	}
	rows, err := ops.Embedding(b.env(), w, ids) // (B, T) -> (B, T, Dim)
	if err != nil {
		return nil, err
	}
	return ops.Add(b.env(), x, rows)
}

// positionIDs is the position of each vector of x, (B, T, D) or (T, D): of shape (B, T) or (T). Where most isn't 0, it is an
// error for one to be outside [0, most), when the graph runs.
func positionIDs(b *Build, layer string, x, positions *G.Node, most int) (*G.Node, error) {
	if positions.Graph() != x.Graph() {
		return nil, fmt.Errorf("%s: the positions belong to another graph than the input", layer)
	}
	ids, err := ops.PositionIDs(b.env(), positions, nil, x.Shape()[:x.Dims()-1], layer, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", layer, err)
	}
	return ids, nil
}

// SinusoidalPositions adds fixed waves to each position (Vaswani et al., 2017, section 3.5): position t of an even axis i
// gets sin(t/Base^(i/D)), the axis after it the cosine of the same angle. It has no parameters and no longest sequence.
type SinusoidalPositions struct {
	Base float64 // 10,000 if 0
}

// Forward adds the waves to x, of shape (T, D) or (B, T, D), float32 or float64.
func (s SinusoidalPositions) Forward(b *Build, x, positions *G.Node) (*G.Node, error) {
	const name = "sinusoidal positions"
	if err := ops.CheckFloat(name, "the input", x); err != nil {
		return nil, err
	}
	if d := x.Dims(); d != 2 && d != 3 {
		return nil, fmt.Errorf("%s: the input must have shape (T, D) or (B, T, D), got %v", name, x.Shape())
	}
	if s.Base == 0 {
		s.Base = 10000
	}
	if !(s.Base > 0) || math.IsInf(s.Base, 1) {
		return nil, fmt.Errorf("%s: Base must be above 0 and finite, or 0 for 10,000, got %v", name, s.Base)
	}
	if positions != nil {
		ids, err := positionIDs(b, name, x, positions, 0)
		if err != nil {
			return nil, err
		}
		return ops.AddWaves(b.env(), x, ids, s.Base)
	}
	shape := x.Shape()
	return ops.AddConstantRows(b.env(), x, s.table(shape[len(shape)-2], shape[len(shape)-1]), fmt.Sprintf("sinusoidal %v", s.Base))
}

// table holds the waves of n positions: (n, dim), row-major.
func (s SinusoidalPositions) table(n, dim int) []float64 {
	t := make([]float64, n*dim)
	for pos := range n {
		for i := range dim {
			t[pos*dim+i] = ops.Wave(pos, i, dim, s.Base)
		}
	}
	return t
}
