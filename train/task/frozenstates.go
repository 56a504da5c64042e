package task

import (
	"context"
	"slices"
	"sync"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/layers"
)

// frozenStates holds the vectors that a frozen encoder makes of examples, one row of width values for each. They never
// change, so the encoder runs once per example, and a step of training computes only the head.
type frozenStates struct {
	mu     sync.Mutex
	values []float32
}

// maxStates limits the bytes of the states that training keeps.
const maxStates = 1 << 30

// keepsStates reports whether training keeps the states of all examples: only the head is trained, there is one vector
// per source, and all of them take at most maxStates. The free memory doesn't count, because a resumed run must decide
// in the same way.
func (t *Task) keepsStates() bool {
	rows, ok := t.set.(*rowSet)
	return ok && t.Config.Tune == tuneHead && t.pooled != nil &&
		memory.Product(4, rows.Train.Len()+rows.Validation.Len(), t.Config.Model.Dim) <= maxStates
}

// of returns the states of all examples. The first call computes them.
func (f *frozenStates) of(ctx context.Context, t *Task, e examples) ([]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.values != nil {
		return f.values, nil
	}
	m := &Model{Config: t.Config, Params: t.Params, coder: t.coder, layout: t.layout}
	m.Config.Wide = false
	m.network = embedder{reader{m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return t.pooled.Pooled(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Dim)
	}}}
	queries := make([]query, e.n)
	for i := range queries {
		b, err := e.batch([]int{i})
		if err != nil {
			return nil, err
		}
		queries[i] = query{ids: slices.Clone(b.Inputs[:b.Lengths[0]]), place: i}
	}
	if err := m.choose(ctx, queries, 1); err != nil {
		return nil, err
	}
	values := make([]float32, e.n*t.Config.Model.Dim)
	for _, q := range queries {
		copy(values[q.place*t.Config.Model.Dim:], q.choices[0].vector)
	}
	f.values = values
	return values, nil
}

// headOnly is the part of a network that follows a frozen encoder. In place of ids, it reads Batch.States.
type headOnly struct{ reader }

// newHeadOnly returns the part of the task's network that is trained.
func (t *Task) newHeadOnly() headOnly {
	return headOnly{reader{t.Model, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) { return t.pooled.Logits(b, inputs[0]) }}}
}

// inputs returns the states (B, Dim) and the scores of the baseline, if the Config is Wide.
func (h headOnly) inputs(g *G.ExprGraph, size int, l data.Layout) G.Nodes {
	nodes := G.Nodes{G.NewTensor(g, tensor.Float32, 2, G.WithShape(size, h.Config.Model.Dim), G.WithName("states"))}
	if h.Config.Wide {
		all := h.reader.inputs(g, size, l)
		nodes = append(nodes, all[len(all)-1])
	}
	return nodes
}

func (h headOnly) values(b data.Batch) []*tensor.Dense {
	values := []*tensor.Dense{tensor.New(tensor.WithShape(b.Size, h.Config.Model.Dim), tensor.WithBacking(b.States))}
	if h.Config.Wide {
		all := h.reader.values(b)
		values = append(values, all[len(all)-1])
	}
	return values
}
