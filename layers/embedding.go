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
	return ops.Embedding(w, ids)
}

// A Positions layer tells a sequence's positions apart: it maps (T, D) or (B, T, D) to the same shape.
type Positions interface {
	Forward(b *Build, x *G.Node) (*G.Node, error)
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

// Forward adds row t of the table to position t of x, of shape (T, Dim) or (B, T, Dim) with T at most MaxLen.
func (l *LearnedPositions) Forward(b *Build, x *G.Node) (*G.Node, error) {
	s := l.Weight.Value.Shape()
	if err := checkPositions(l.name, x, l.Weight.Value.Dtype(), s[0], s[1]); err != nil {
		return nil, err
	}
	w, err := b.Bind(x.Graph(), l.Weight)
	if err != nil {
		return nil, err
	}
	return ops.AddRows(x, w)
}

func checkPositions(layer string, x *G.Node, dtype tensor.Dtype, maxLen, dim int) error {
	if err := checkSequence(layer, "the input", x, dtype, dim); err != nil {
		return err
	}
	if t := x.Shape()[x.Dims()-2]; t > maxLen {
		return fmt.Errorf("%s: a sequence may have at most %d positions, got %d", layer, maxLen, t)
	}
	return nil
}

// SinusoidalPositions adds fixed waves to each position (Vaswani et al., 2017, section 3.5): position t of an even axis i
// gets sin(t/Base^(i/D)), the axis after it the cosine of the same angle. It has no parameters and no longest sequence.
type SinusoidalPositions struct {
	Base float64 // 10,000 if 0
}

// Forward adds the waves to x, of shape (T, D) or (B, T, D), float32 or float64.
func (s SinusoidalPositions) Forward(_ *Build, x *G.Node) (*G.Node, error) {
	const name = "sinusoidal positions"
	if err := checkFloat(name, "the input", x); err != nil {
		return nil, err
	}
	if d := x.Dims(); d != 2 && d != 3 {
		return nil, fmt.Errorf("%s: the input must have shape (T, D) or (B, T, D), got %v", name, x.Shape())
	}
	if s.Base == 0 {
		s.Base = 10000
	}
	if !(s.Base > 0) {
		return nil, fmt.Errorf("%s: the base must be above 0, got %v", name, s.Base)
	}
	shape := x.Shape()
	return ops.AddConstantRows(x, s.table(shape[len(shape)-2], shape[len(shape)-1]), fmt.Sprintf("sinusoidal %v", s.Base))
}

// table holds the waves of n positions: (n, dim), row-major.
func (s SinusoidalPositions) table(n, dim int) []float64 {
	t := make([]float64, n*dim)
	for pos := range n {
		for i := range dim {
			angle := float64(pos) / math.Pow(s.Base, float64(i-i%2)/float64(dim))
			if i%2 == 0 {
				t[pos*dim+i] = math.Sin(angle)
			} else {
				t[pos*dim+i] = math.Cos(angle)
			}
		}
	}
	return t
}
