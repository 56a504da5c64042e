package task

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// A network is the model of a task with the parts that depend on the kind: what its graphs read, what it learns, and
// how it answers. Nothing outside a network assumes that a model computes logits or learns ids.
type network interface {
	body

	// targets returns the values of the nodes that the loss compares the output with.
	targets(b data.Batch) []*tensor.Dense

	// loss adds the loss of a result of the function states, and the metrics of the kind. The targets have the
	// values that the function targets returns.
	loss(b *layers.Build, out *G.Node, targets G.Nodes) (loss layers.Loss, computed []train.Metric, err error)

	// predictor returns a predictor for batches of this shape. The function answer converts one of its choices to an
	// answer's Text and Number.
	predictor(s batchShape) (predictor, error)
	answer(c choice) (text string, number *float64, err error)

	spans(input string, c choice) []Span // returns an answer's Spans
}

// A body is the part of a network in front of its loss.
type body interface {
	// inputs adds the nodes that the model reads to a graph, for batches with size rows. The function values returns
	// their values for a batch.
	inputs(g *G.ExprGraph, size int, l data.Layout) G.Nodes
	values(b data.Batch) []*tensor.Dense

	// forward adds the model to the graph of its inputs, and returns its output.
	forward(b *layers.Build, inputs G.Nodes) (out *G.Node, err error)

	// states is like forward, but may leave out a head that the loss applies.
	states(b *layers.Build, inputs G.Nodes) (out *G.Node, err error)
}

// A mixer is a network whose answers are mixed with those of a linear model.
type mixer interface {
	// mixed returns the choices of a query: from its output, unless the linear model alone answers, and from the linear
	// model's scores, unless the network alone answers.
	mixed(q query, x mixture) []choice
}

// A reader is the part of a network that reads batches of ids.
type reader struct {
	*Model
	net func(b *layers.Build, inputs G.Nodes) (*G.Node, error)
}

// pooled returns the function net of a reader for one output per row: an encoder, pooling over its positions, and a
// head. It makes the parameters, and sets the model's table.
func pooled(m *Model) (func(b *layers.Build, inputs G.Nodes) (*G.Node, error), error) {
	net, err := layers.NewSequenceClassifier(m.Params, layers.SequenceClassifierConfig{Model: m.Config.Model, Pooling: m.Config.Head.Pooling, Pad: m.Config.Head.Pad})
	if err != nil {
		return nil, err
	}
	m.features, m.table = pooledFeatures(net), net.Encoder.Embedding.Weight
	return func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Outputs)
	}, nil
}

func (r reader) spans(string, choice) []Span { return nil }

// inputs returns these nodes in this order: the ids (B, Len); the lengths (B), unless the kind is causal; the id before
// each target (B, TargetLen), if the Layout has a Start; and the segment of each id (B, Len), if it has Segments.
func (r reader) inputs(g *G.ExprGraph, size int, l data.Layout) G.Nodes {
	nodes := G.Nodes{intNode(g, "ids", size, l.Len)}
	if !r.Config.Kind().causal {
		nodes = append(nodes, intNode(g, "lengths", size, 0))
	}
	if r.layout.Start >= 0 {
		nodes = append(nodes, intNode(g, "before", size, l.TargetLen))
	}
	if r.layout.Segments > 0 {
		nodes = append(nodes, intNode(g, "segments", size, l.Len))
	}
	return nodes
}

func (r reader) values(b data.Batch) []*tensor.Dense {
	values := []*tensor.Dense{intTensor(b.Inputs, b.Size, b.Len)}
	if !r.Config.Kind().causal {
		values = append(values, intTensor(b.Lengths, b.Size, 0))
	}
	if b.DecoderInputs != nil {
		values = append(values, intTensor(b.DecoderInputs, b.Size, b.TargetLen))
	}
	if r.layout.Segments > 0 {
		values = append(values, intTensor(segments(b, r.layout.Separator), b.Size, b.Len))
	}
	return values
}

func (r reader) forward(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
	if r.layout.Segments > 0 {
		b.Segments = inputs[len(inputs)-1]
	}
	b.Adapter = r.adapter
	return r.net(b, inputs)
}

func (r reader) states(b *layers.Build, inputs G.Nodes) (*G.Node, error) { return r.forward(b, inputs) }

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

// segments returns the segment of each of a batch's Inputs: 1 after the separator of a row, and otherwise 0.
func segments(b data.Batch, separator int) []int {
	segments := make([]int, len(b.Inputs))
	for i := range segments {
		if i%b.Len > 0 && (b.Inputs[i-1] == separator || segments[i-1] == 1) {
			segments[i] = 1
		}
	}
	return segments
}
