package model

import (
	"context"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// A reader is the part of a network that reads batches of ids.
type reader struct {
	*Model
	net func(b *layers.Build, inputs G.Nodes) (*G.Node, error)
}

// pooledHead is the part that heads with one output per row share.
type pooledHead struct{ bare }

func (pooledHead) suit(m *pretrained.Config) error {
	if m.Head == "classes" {
		return nil
	}
	classifier := layers.SequenceClassifierConfig{Pooling: m.Pooling}
	if m.Causal && m.Pooling == layers.MeanPooling {
		classifier.Pooling = layers.LastPooling
	}
	if pad := m.Pad; m.Causal && pad >= 0 && classifier.Pooling == layers.LastPooling {
		classifier.Pad = &pad
	}
	*m = m.States()
	classifier.Model = m.Model
	m.Head, m.Labels, m.Classifier = "classes", nil, &classifier
	return nil
}

// pooled returns the function net of a reader for one output per row: an encoder, pooling over its positions, and a
// head. It makes the parameters, and sets the model's table.
func pooled(m *Model) (func(b *layers.Build, inputs G.Nodes) (*G.Node, error), error) {
	net, err := layers.NewSequenceClassifier(m.Params, m.Config.classifier())
	if err != nil {
		return nil, err
	}
	m.table = net.Encoder.Embedding.Weight
	m.features = func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Features(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Dim)
	}
	return func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Outputs)
	}, nil
}

// Inputs returns these nodes in this order: the ids (B, Len); the lengths (B), unless the kind is causal; the id before
// each target (B, TargetLen), if the Layout has a Start; and the segment of each id (B, Len), if it has Segments.
func (r reader) Inputs(g *G.ExprGraph, size int, l data.Layout) G.Nodes {
	nodes := G.Nodes{ops.IntNode(g, "ids", size, l.Len)}
	if !r.Config.about().causal {
		nodes = append(nodes, ops.IntNode(g, "lengths", size, 0))
	}
	if r.layout.Start >= 0 {
		nodes = append(nodes, ops.IntNode(g, "before", size, l.TargetLen))
	}
	if r.layout.Segments > 0 {
		nodes = append(nodes, ops.IntNode(g, "segments", size, l.Len))
	}
	return nodes
}

func (r reader) Values(b data.Batch) []*tensor.Dense {
	values := []*tensor.Dense{ops.IntTensor(b.Inputs, b.Size, b.Len)}
	if !r.Config.about().causal {
		values = append(values, ops.IntTensor(b.Lengths, b.Size, 0))
	}
	if b.DecoderInputs != nil {
		values = append(values, ops.IntTensor(b.DecoderInputs, b.Size, b.TargetLen))
	}
	if r.layout.Segments > 0 {
		values = append(values, ops.IntTensor(segments(b, r.layout.Separator), b.Size, b.Len))
	}
	if b.Documents != nil { // see packed
		values = append(values, ops.IntTensor(b.Documents, b.Size, b.Len), ops.IntTensor(b.Positions(), b.Size, b.Len))
	}
	return values
}

func (r reader) Forward(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
	if r.layout.Segments > 0 {
		b.Segments = inputs[len(inputs)-1]
	}
	b.Adapter = r.adapter
	return r.net(b, inputs)
}

func (r reader) States(b *layers.Build, inputs G.Nodes) (*G.Node, error) { return r.Forward(b, inputs) }

func (r reader) Trunk() *layers.Trunk { return nil }

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

// chooser returns a predictor for a network. The function choose sets the choices of a row from the row's part of the
// output.
func (m *Model) chooser(n network, s batchShape, choose func(output []float32, q *query)) (predictor, error) {
	l := m.layout
	l.Len = s.width
	model, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, out G.Nodes, err error) {
		b.Cores = s.cores
		inputs = n.Inputs(g, s.size, l)
		output, err := n.Forward(b, inputs)
		return inputs, G.Nodes{output}, err
	})
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, rows []query) error {
		sources := make([][]int, s.size)
		for i := range sources { // unused rows repeat the last one
			sources[i] = rows[min(i, len(rows)-1)].ids
		}
		b, err := data.Pad(sources, s.width, max(0, m.layout.Pad))
		if err != nil {
			return err
		}
		out, err := model.Call(n.Values(b)...)
		if err != nil {
			return err
		}
		values := out[0].Float32s()
		each := len(values) / s.size
		if err := logit.CheckFinite(values[:each*len(rows)]...); err != nil {
			return err
		}
		for i := range rows {
			choose(values[i*each:][:each], &rows[i])
		}
		return nil
	}, nil
}
