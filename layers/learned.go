package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Learned adds a learned vector to the embedding at each position (Gehring et al., 2017; Devlin et al., 2018).
type Learned struct {
	MaxLen int  `json:"max_len"`       // largest length of a sequence
	Init   Init `json:"init,omitzero"` // if zero: the model's EmbeddingInit, or Normal(1)
}

// New makes the table of vectors, the parameter "weight" of shape (MaxLen, dim). If positions count from 0, building a
// graph for a longer sequence than MaxLen returns an error. If a node gives the positions, running the graph returns an
// error for a position outside [0, MaxLen).
func (c Learned) New(p *Params, dim int, _ AttentionConfig) (Positions, error) {
	l := &learned{name: p.scopeName("learned positions")}
	if err := positive(l.name, size{"MaxLen", c.MaxLen}, size{"Dim", dim}); err != nil {
		return nil, err
	}
	var err error
	l.weight, err = p.New("weight", c.Init.or(Normal(1)), c.MaxLen, dim)
	return l, err
}

type learned struct {
	NoPositions
	weight *Param // (MaxLen, D)
	name   string
}

// MaxLen returns the number of rows of the table.
func (l *learned) MaxLen() int { return l.weight.Value.Shape()[0] }

// Embed looks up the position of each vector of x in the table, and adds that row to the vector.
func (l *learned) Embed(b *Build, x, positions *G.Node) (*G.Node, error) {
	s := l.weight.Value.Shape()
	if err := checkSequence(l.name, "the input", x, l.weight.Value.Dtype(), s[1]); err != nil {
		return nil, err
	}
	w, err := b.Bind(x.Graph(), l.weight)
	if err != nil {
		return nil, err
	}
	if positions == nil {
		if t := x.Shape()[x.Dims()-2]; t > s[0] {
			return nil, fmt.Errorf("%s: a sequence can have at most %d positions, got %d", l.name, s[0], t)
		}
		return ops.AddRows(b.Env(), x, w, x.Shape()[x.Dims()-2])
	}
	ids, err := positionIDs(b, l.name, x, positions, s[0])
	if err != nil {
		return nil, err
	}
	rows, err := ops.Embedding(b.Env(), w, ids) // (B, T) -> (B, T, D)
	if err != nil {
		return nil, err
	}
	return ops.Add(b.Env(), x, rows)
}
