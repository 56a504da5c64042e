package task

import (
	"errors"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers"
)

// A Model answers inputs. Open returns the trained Model of a run folder. A Task, made by New, has the Model that it
// trains.
//
// Several goroutines may call its methods at once, but not while the parameters change, as in Train or Load. A call
// that finds no free graph makes one, and keeps it for later calls.
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

// A forward adds the model to a graph. Its inputs are the nodes that build makes.
type forward func(b *layers.Build, in G.Nodes) (logits *G.Node, err error)

// newModel makes the model that a configuration describes, with new weights. All its errors are *ConfigErrors.
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

// build adds the model to a graph, for batches with size rows. It returns the input nodes: ids (B, Len); lengths (B),
// unless the kind is causal; and, if the Layout has a Start, the id before each target (B, TargetLen).
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

// values returns the values of the nodes of build for a batch.
func (m *Model) values(b data.Batch) []*tensor.Dense {
	values := []*tensor.Dense{intTensor(b.Inputs, b.Size, b.Len)}
	if !m.Config.Kind().causal {
		values = append(values, intTensor(b.Lengths, b.Size, 0))
	}
	if b.DecoderInputs != nil {
		values = append(values, intTensor(b.DecoderInputs, b.Size, b.TargetLen))
	}
	return values
}

// shape returns (size, length), or (size) if the length is 0.
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

// encode returns a batch that has only this input, and an Answer without Text: the fields that don't need the model.
func (m *Model) encode(input string) (data.Batch, Answer) {
	source, _ := m.coder.Tokenizers()
	ids, unknown, _ := encoded(source, input)
	b, err := m.coder.Batch([]data.Example{{Source: input}})
	if err != nil {
		unknown = unknown && source.Unknown() >= 0 || errors.As(err, new(*tokenizer.UnknownSymbolError))
		return b, Answer{Input: input, Unknown: unknown, Err: &InputError{input, err}}
	}
	return b, Answer{Input: input, Unknown: unknown && source.Unknown() >= 0, Cut: ids > m.layout.Len}
}
