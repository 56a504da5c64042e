package task

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
)

// A Model answers inputs. Make one with Open, of a run folder, or with New: a Task has the one that it trains.
//
// Its methods may be called by several goroutines at once, but not while something writes the parameters, such as Train
// or Load. Each call that finds no graph free makes one, and leaves it for the next.
type Model struct {
	Config Config
	Params *layers.Params

	coder   data.Coder
	layout  data.Layout
	forward forward

	newPredictor func(s batchShape) (predictor, error)
	free         freeList
	decoder      *layers.Decoder // for Generate
}

// A forward adds the model to a graph. It reads the nodes that build makes.
type forward func(b *layers.Build, in G.Nodes) (logits *G.Node, err error)

// newModel makes the model that a configuration describes, with new weights. What is wrong with that is a *ConfigError.
func newModel(c Config) (*Model, error) {
	m := &Model{Config: c}
	err := m.Config.check(true)
	if err == nil {
		m.coder, err = data.NewCoder(c.Task)
	}
	if err == nil {
		m.layout = m.coder.Layout()
		err = m.Config.decide(m.layout)
	}
	if err == nil {
		m.Params, err = layers.NewParams(tensor.Float32, c.Seed)
	}
	if err == nil {
		m.newPredictor = m.chooser
		m.forward, err = kindOf(c.Task.Kind).network(m)
	}
	if err != nil {
		return nil, asConfigError(err)
	}
	return m, nil
}

// build adds the model to a graph, for batches of a size. It returns the nodes that the model reads: ids (B, Len);
// lengths (B), unless the kind is causal; and, if the Layout has a Start, the id before each target (B, TargetLen).
func (m *Model) build(b *layers.Build, g *G.ExprGraph, size int, l data.Layout) (nodes G.Nodes, logits *G.Node, err error) {
	nodes = G.Nodes{intNode(g, "ids", size, l.Len)}
	if !m.Config.Kind().causal {
		nodes = append(nodes, intNode(g, "lengths", size, 0))
	}
	if m.layout.Start >= 0 {
		nodes = append(nodes, intNode(g, "before", size, l.TargetLen))
	}
	logits, err = m.forward(b, nodes)
	return nodes, logits, err
}

// values returns a batch as the nodes of build take it.
func (m *Model) values(b data.Batch) []*tensor.Dense {
	values := []*tensor.Dense{intTensor(b.Inputs, b.Size, b.Len)}
	if !m.Config.Kind().causal {
		values = append(values, intTensor(b.Lengths, b.Size, 0))
	}
	if b.Before != nil {
		values = append(values, intTensor(b.Before, b.Size, b.TargetLen))
	}
	return values
}

// shape returns (size, length) or, if the length is 0, (size).
func shape(size, length int) tensor.Shape {
	return tensor.Shape{size, length}[:1+min(length, 1)]
}

func intNode(g *G.ExprGraph, name string, size, length int) *G.Node {
	s := shape(size, length)
	return G.NewTensor(g, tensor.Int, len(s), G.WithShape(s...), G.WithName(name))
}

func intTensor(ids []int, size, length int) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape(size, length)...), tensor.WithBacking(ids))
}

// encode returns an input as a batch of one.
func (m *Model) encode(input string) (data.Batch, error) {
	b, err := m.coder.Batch([]data.Example{{Source: input}})
	if err != nil {
		return b, &InputError{input, err}
	}
	return b, nil
}
