package main

import (
	"context"
	"io"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// An experiment is a task with the model that learns it.
type experiment struct {
	config
	params *layers.Params

	inputs []input // of the model
	len    int     // positions of the targets

	// logits adds the model to a graph: its inputs to (B, len, classes).
	logits func(b *layers.Build, in G.Nodes) (*G.Node, error)

	trainBatch      func(epoch, step int) (batch, error)
	validationBatch func(i int) (batch, error)
	validations     int // sequences in all validation batches

	// predict answers one input.
	predict func(input string) (string, error)
	example string // such an input, to try a trained model with

	// generate prints a prompt and what a text model writes after it; nil for other models.
	generate func(ctx context.Context, o generation, w io.Writer) error

	// sequences says that a sequence is right only if all of it is; otherwise every position counts for itself.
	sequences bool

	close func() error
}

// input is an input of a model: ids of shape (B, len) or, if len is 0, (B).
type input struct {
	name string
	len  int
}

func (in input) shape(size int) tensor.Shape {
	if in.len == 0 {
		return tensor.Shape{size}
	}
	return tensor.Shape{size, in.len}
}

func (in input) node(g *G.ExprGraph, size int) *G.Node {
	shape := in.shape(size)
	return G.NewTensor(g, tensor.Int, len(shape), G.WithShape(shape...), G.WithName(in.name))
}

func (in input) value(ids []int, size int) *tensor.Dense {
	return tensor.New(tensor.WithShape(in.shape(size)...), tensor.WithBacking(ids))
}

// batch is size sequences: the model's inputs, and the targets (size, len).
type batch struct {
	size    int
	inputs  [][]int
	targets []int
	counted int // targets that count
}

// validationSize is how many sequences a validation batch has.
const validationSize = 250

// newExperiment makes the experiment that a configuration describes, with new weights. Without its data, it can only
// predict.
func newExperiment(c config, withData bool) (*experiment, error) {
	e := &experiment{config: c, close: func() error { return nil }}
	var err error
	if e.params, err = layers.NewParams(tensor.Float32, c.Seed); err != nil {
		return nil, err
	}
	switch c.Task {
	case textTask:
		err = e.learnText(withData)
	case datesTask:
		err = e.learnPairs(withData)
	default:
		err = e.learnLabels(withData)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// targets is the loss's own input.
func (e *experiment) targets() input { return input{"targets", e.len} }

// build adds the model and its loss to a graph, for batches of a size. The inputs' last is the targets.
func (e *experiment) build(b *layers.Build, g *G.ExprGraph, size int) (inputs G.Nodes, logits, loss *G.Node, err error) {
	for _, in := range e.inputs {
		inputs = append(inputs, in.node(g, size))
	}
	if logits, err = e.logits(b, inputs); err != nil {
		return nil, nil, nil, err
	}
	targets := e.targets().node(g, size)
	loss, err = layers.CrossEntropy(b, logits, targets)
	return append(inputs, targets), logits, loss, err
}

// feed is a batch as the graph's inputs take it.
func (e *experiment) feed(b batch) train.Batch {
	t := train.Batch{Weight: float64(b.counted)}
	for i, in := range e.inputs {
		t.Values = append(t.Values, in.value(b.inputs[i], b.size))
	}
	t.Values = append(t.Values, e.targets().value(b.targets, b.size))
	return t
}

// problem is the experiment as train.Fit takes it.
func (e *experiment) problem() train.Problem {
	return train.Problem{
		Params: e.params,
		Loss: func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
			inputs, _, loss, err := e.build(b, g, size)
			return loss, inputs, err
		},
		BatchSize: e.Batch, Steps: e.Steps,
		Train: func(epoch, step int) (train.Batch, error) {
			b, err := e.trainBatch(epoch, step)
			if err != nil {
				return train.Batch{}, err
			}
			return e.feed(b), nil
		},
		ValidationSize:  validationSize,
		ValidationSteps: (e.validations + validationSize - 1) / validationSize,
		Validation: func(i int) (train.Batch, error) {
			b, err := e.validationBatch(i)
			if err != nil {
				return train.Batch{}, err
			}
			return e.feed(b), nil
		},
	}
}

// score is how well a model does on the validation set.
type score struct {
	loss         float64 // mean cross-entropy, in nats
	right, total int     // sequences, or positions
}

func (s score) accuracy() float64 { return float64(s.right) / float64(max(s.total, 1)) }

// evaluate scores the model as it is.
func (e *experiment) evaluate(ctx context.Context) (score, error) {
	g := G.NewGraph()
	inputs, logits, loss, err := e.build(&layers.Build{}, g, validationSize)
	if err != nil {
		return score{}, err
	}
	var logitsValue, lossValue G.Value
	G.Read(logits, &logitsValue)
	G.Read(loss, &lossValue)
	vm := G.NewTapeMachine(g)
	defer vm.Close()

	var s score
	var sum, weight float64
	for i := range (e.validations + validationSize - 1) / validationSize {
		if ctx.Err() != nil {
			return score{}, errInterrupted
		}
		b, err := e.validationBatch(i)
		if err != nil {
			return score{}, err
		}
		in := e.feed(b)
		for j, node := range inputs {
			if err := G.Let(node, in.Values[j]); err != nil {
				return score{}, err
			}
		}
		vm.Reset()
		if err := vm.RunAll(); err != nil {
			return score{}, err
		}
		sum += float64(lossValue.Data().(float32)) * in.Weight
		weight += in.Weight
		e.count(&s, b, argmax(logitsValue))
	}
	s.loss = sum / max(weight, 1)
	return s, nil
}

// count adds a batch's right and wrong predictions to a score.
func (e *experiment) count(s *score, b batch, predicted []int) {
	for r := range b.size {
		right, counted := 0, 0
		for i := r * e.len; i < (r+1)*e.len; i++ {
			if b.targets[i] == data.Ignore {
				continue
			}
			counted++
			if predicted[i] == b.targets[i] {
				right++
			}
		}
		switch {
		case !e.sequences:
			s.right += right
			s.total += counted
		case counted > 0:
			s.total++
			if right == counted {
				s.right++
			}
		}
	}
}

// labeler makes a graph of the model for one sequence, with these inputs, and returns what runs it: from the inputs' ids
// to the likeliest class of every position.
func (e *experiment) labeler(inputs []input) (label func(ids ...[]int) ([]int, error), err error) {
	g := G.NewGraph()
	var nodes G.Nodes
	for _, in := range inputs {
		nodes = append(nodes, in.node(g, 1))
	}
	out, err := e.logits(&layers.Build{}, nodes)
	if err != nil {
		return nil, err
	}
	var logits G.Value
	G.Read(out, &logits)
	vm := G.NewTapeMachine(g)
	return func(ids ...[]int) ([]int, error) {
		for i, in := range inputs {
			if err := G.Let(nodes[i], in.value(ids[i], 1)); err != nil {
				return nil, err
			}
		}
		vm.Reset()
		if err := vm.RunAll(); err != nil {
			return nil, err
		}
		return argmax(logits), nil
	}, nil
}

// argmax is the index of the largest element along the last axis.
func argmax(logits G.Value) []int {
	shape := logits.Shape()
	width := shape[len(shape)-1]
	values := logits.Data().([]float32)
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
