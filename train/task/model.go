package task

import (
	"cmp"
	"context"
	"fmt"
	"io"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
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
	forward func(b *layers.Build, in inputs) (logits *G.Node, err error)

	newPredictor func(s batchShape) (predictor, error)
	free         freeList
	decoder      *layers.Decoder // of text
}

// inputs are the nodes that a model reads: ids (B, Len), lengths (B) and, of pairs, what comes before the targets
// (B, TargetLen).
type inputs struct{ ids, lengths, before *G.Node }

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
		err = m.makeLayers()
	}
	if err != nil {
		return nil, asConfigError(err)
	}
	return m, nil
}

// makeLayers makes the layers, and what predicts with them.
func (m *Model) makeLayers() error {
	config := m.Config.Model
	m.newPredictor = m.chooser
	switch m.Config.Task.Kind {
	case data.KindTagging:
		net, err := layers.NewEncoder(m.Params, config)
		m.forward = func(b *layers.Build, in inputs) (*G.Node, error) {
			return net.Forward(b, in.ids, layers.Mask{KeyLengths: in.lengths}) // (B, Len, Classes)
		}
		return err
	case data.KindClassification:
		net, err := layers.NewSequenceClassifier(m.Params, layers.SequenceClassifierConfig{Model: config})
		m.forward = func(b *layers.Build, in inputs) (*G.Node, error) {
			return net.Forward(b, in.ids, layers.Mask{KeyLengths: in.lengths}) // (B, Classes)
		}
		return err
	case data.KindSeq2Seq:
		net, err := layers.NewEncoderDecoder(m.Params, layers.EncoderDecoderConfig{
			Model: config, TargetVocab: m.layout.TargetTokens, DecoderLayers: m.Config.DecoderLayers,
			Shared: m.Config.Task.Source != nil && m.Config.Task.Target == nil, // one vocabulary
		})
		m.forward = func(b *layers.Build, in inputs) (*G.Node, error) {
			return net.Forward(b, in.ids, in.before, layers.Mask{KeyLengths: in.lengths}) // (B, TargetLen, Classes)
		}
		m.newPredictor = func(s batchShape) (predictor, error) { return m.translator(net, s) }
		return err
	}
	var err error
	m.decoder, err = layers.NewDecoder(m.Params, config)
	m.forward = func(b *layers.Build, in inputs) (*G.Node, error) {
		return m.decoder.Forward(b, in.ids, layers.Mask{}) // (B, Len, Classes)
	}
	return err
}

// build adds the model to a graph, for batches of a size. The nodes are what values gives the values of.
func (m *Model) build(b *layers.Build, g *G.ExprGraph, size int, l data.Layout) (nodes G.Nodes, logits *G.Node, err error) {
	nodes = G.Nodes{intNode(g, "ids", size, l.Len)}
	if m.Config.Task.Kind != data.KindText { // whose rows are whole, or end in what no position before it sees
		nodes = append(nodes, intNode(g, "lengths", size, 0))
	}
	if m.Config.Task.Kind == data.KindSeq2Seq {
		nodes = append(nodes, intNode(g, "before", size, l.TargetLen))
	}
	logits, err = m.apply(b, nodes)
	return nodes, logits, err
}

// apply adds the model to the graph of the nodes that it reads, in the order of build's.
func (m *Model) apply(b *layers.Build, nodes G.Nodes) (logits *G.Node, err error) {
	in := inputs{ids: nodes[0]}
	if len(nodes) > 1 {
		in.lengths = nodes[1]
	}
	if len(nodes) > 2 {
		in.before = nodes[2]
	}
	return m.forward(b, in)
}

// values returns a batch as the nodes of build take it.
func (m *Model) values(b data.Batch) []*tensor.Dense {
	values := []*tensor.Dense{intTensor(b.Inputs, b.Size, b.Len)}
	if m.Config.Task.Kind != data.KindText {
		values = append(values, intTensor(b.Lengths, b.Size, 0))
	}
	if m.Config.Task.Kind == data.KindSeq2Seq {
		values = append(values, intTensor(b.Before, b.Size, b.TargetLen))
	}
	return values
}

// shape returns (size, length) or, if the length is 0, (size).
func shape(size, length int) tensor.Shape {
	if length == 0 {
		return tensor.Shape{size}
	}
	return tensor.Shape{size, length}
}

func intNode(g *G.ExprGraph, name string, size, length int) *G.Node {
	s := shape(size, length)
	return G.NewTensor(g, tensor.Int, len(s), G.WithShape(s...), G.WithName(name))
}

func intTensor(ids []int, size, length int) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape(size, length)...), tensor.WithBacking(ids))
}

// argmax returns the index of the largest element along the last axis.
func argmax(logits *tensor.Dense) []int {
	shape := logits.Shape()
	width := shape[len(shape)-1]
	values := logits.Float32s()
	out := make([]int, len(values)/width)
	for i := range out {
		row := values[i*width:][:width]
		for j, v := range row {
			if v > row[out[i]] {
				out[i] = j
			}
		}
	}
	return out
}

// encode returns an input as a batch of one.
func (m *Model) encode(input string) (data.Batch, error) {
	b, err := m.coder.Batch([]data.Example{{Source: input}})
	if err != nil {
		return b, &InputError{input, err}
	}
	return b, nil
}

// Generate writes a prompt and what a text model writes after it to w, each character as soon as it is chosen: of
// tokens, as soon as its last byte is. Bytes that make no character, as a token's may, are written as U+FFFD. Where
// the text has outgrown the model's context, it goes on from the last half of the context. The options' End, Keep and
// OnToken are Generate's own. A prompt that the model doesn't know is an *InputError, as is one to a model of another
// kind; after any other error, and when ctx is cancelled, what was written stays.
func (m *Model) Generate(ctx context.Context, w io.Writer, prompt string, o decode.Options) error {
	if m.decoder == nil {
		return &InputError{prompt, fmt.Errorf("the model learned the task %s, and only text models write on", m.Config.Task.Name)}
	}
	b, err := m.encode(prompt)
	if err != nil {
		return err
	}
	session, err := decode.New(m.decoder, decode.Config{Capacity: m.layout.Len})
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := io.WriteString(w, prompt); err != nil {
		return err
	}
	_, tok := m.coder.Tokenizers()
	decoder, ids := tokenizer.Decoder{Tokenizer: tok}, b.Inputs[:b.Lengths[0]]
	if _, err := decoder.Next(ids[len(ids)-1]); err != nil { // what comes next may depend on it
		return err
	}
	var failed error // to write
	write := func(text string) {
		if text != "" {
			_, failed = io.WriteString(w, text)
		}
	}
	o.End, o.Keep = nil, max(1, m.layout.Len/2)
	o.OnToken = func(_, token int) bool {
		var text string
		if text, failed = decoder.Next(token); failed == nil {
			write(text)
		}
		return failed == nil
	}
	if _, err := decode.Generate(ctx, session, [][]int{ids}, o); err != nil || failed != nil {
		return cmp.Or(err, failed)
	}
	write(decoder.Flush())
	return failed
}
