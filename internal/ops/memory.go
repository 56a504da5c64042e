package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// A Memory stores vectors of shape (B, S, W) that one graph computes, for graphs that run later. Cross-attention stores
// its keys and values in this way. Each write replaces the stored vectors.
type Memory struct {
	name  string
	built tensor.Shape // shape for which the last call of Keep was made; nil before the first call
	kept  *Store       // nil before the first run
}

// NewMemory makes a Memory. Memories used in one graph need different names.
func NewMemory(name string) *Memory { return &Memory{name: name} }

// Keep adds an op that stores x whenever it runs, and returns x. x has shape (B, S, W) or (S, W). The op has no
// gradient.
func (m *Memory) Keep(e *Env, x *G.Node) (*G.Node, error) {
	name := "memory of " + m.name
	s, err := sequencesOf(name, x)
	if err != nil {
		return nil, err
	}
	m.built = s
	return ByDtype(x, keep[float32], keep[float64])(e, m, x, s)
}

func keep[F kernel.Float](e *Env, m *Memory, x *G.Node, s tensor.Shape) (*G.Node, error) {
	dims := x.Dims()
	store := NewStore(m.name, x.Dtype(), s[0], s[1], s[2])
	out := store.value(dims)
	o := &op{
		name: fmt.Sprintf("memory of %s%v", m.name, x.Shape()), shape: x.Shape().Clone(), out: typeOf(dtypeOf[F](), x.Shape()),
		run: func(values []G.Value) G.Value {
			x := elements[F](values[0], s.TotalSize())
			copy(elementsOf[F](store.dense), x)
			m.kept = store
			return out
		},
	}
	return e.apply(o, x)
}

// Read adds an op that returns the stored vectors, in the shape for which the last call of Keep was made. The argument
// after is any node of the graph. The argument dims is 3, or 2 to drop the batch axis of a batch of one. A run of the
// graph fails if no vectors are stored, or if they have a different shape. The op has no gradient.
func (m *Memory) Read(e *Env, after *G.Node, dtype tensor.Dtype, dims int) (*G.Node, error) {
	if m.built == nil {
		return nil, fmt.Errorf("memory of %s: no graph computes it yet: first build one whose input is the encoder's output", m.name)
	}
	want := m.built
	shape := want.Clone()
	if dims == 2 {
		shape = shape[1:]
	}
	var read *Store
	var out *tensor.Dense
	o := &op{
		name: fmt.Sprintf("read memory of %s%v", m.name, shape), shape: shape, out: typeOf(dtype, shape),
		run: func([]G.Value) G.Value {
			if m.kept == nil {
				fail("nothing has been kept: first run the graph whose input is the encoder's output")
			}
			if !slices.Equal(m.kept.shape, want) || m.kept.dense.Dtype() != dtype {
				fail("the stored vectors have shape %v, but the graph was built for %v: build a new graph", m.kept.shape, want)
			}
			if read != m.kept {
				read, out = m.kept, m.kept.value(dims)
			}
			return out
		},
	}
	return e.apply(o, after)
}

// Reorder replaces every sequence b with a copy of sequence parents[b].
func (m *Memory) Reorder(parents []int) {
	if m.kept == nil {
		return
	}
	lengths := make([]int, len(parents))
	for b := range lengths {
		lengths[b] = m.kept.shape[1]
	}
	m.kept.Reorder(parents, lengths)
}
