package main

import (
	"context"

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
	len    int // positions of a batch

	// logits adds the model to a graph: ids (B, T) and lengths (B) to (B, T, classes).
	logits func(b *layers.Build, ids, lengths *G.Node) (*G.Node, error)

	trainBatch      func(epoch, step int) (data.Batch, error)
	validationBatch func(i int) (data.Batch, error)
	validations     int // sequences in all validation batches

	// predict answers one input.
	predict func(input string) (string, error)
	example string // such an input, to try a trained model with

	// sequences says that a sequence is right only if all of it is; otherwise every position counts for itself.
	sequences bool

	close func() error
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
	if c.Task == textTask {
		err = e.learnText(withData)
	} else {
		err = e.learnTask(withData)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// graph is the experiment's model and loss on a graph.
type graph struct {
	ids, lengths, targets *G.Node
	logits, loss          *G.Node
}

func (e *experiment) build(b *layers.Build, g *G.ExprGraph, size int) (graph, error) {
	n := graph{
		ids:     G.NewMatrix(g, tensor.Int, G.WithShape(size, e.len), G.WithName("ids")),
		lengths: G.NewVector(g, tensor.Int, G.WithShape(size), G.WithName("lengths")),
		targets: G.NewMatrix(g, tensor.Int, G.WithShape(size, e.len), G.WithName("targets")),
	}
	var err error
	if n.logits, err = e.logits(b, n.ids, n.lengths); err != nil {
		return n, err
	}
	n.loss, err = layers.CrossEntropy(n.logits, n.targets)
	return n, err
}

// feed is a batch as the graph's inputs take it.
func feed(b data.Batch) train.Batch {
	return train.Batch{
		Values: []*tensor.Dense{
			tensor.New(tensor.WithShape(b.Size, b.Len), tensor.WithBacking(b.Inputs)),
			tensor.New(tensor.WithShape(b.Size), tensor.WithBacking(b.Lengths)),
			tensor.New(tensor.WithShape(b.Size, b.Len), tensor.WithBacking(b.Targets)),
		},
		Weight: float64(b.Counted()),
	}
}

// problem is the experiment as train.Fit takes it.
func (e *experiment) problem() train.Problem {
	return train.Problem{
		Params: e.params,
		Loss: func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
			n, err := e.build(b, g, size)
			return n.loss, G.Nodes{n.ids, n.lengths, n.targets}, err
		},
		BatchSize: e.Batch, Steps: e.Steps,
		Train: func(epoch, step int) (train.Batch, error) {
			b, err := e.trainBatch(epoch, step)
			return feed(b), err
		},
		ValidationSize:  validationSize,
		ValidationSteps: (e.validations + validationSize - 1) / validationSize,
		Validation: func(i int) (train.Batch, error) {
			b, err := e.validationBatch(i)
			return feed(b), err
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
	n, err := e.build(&layers.Build{}, g, validationSize)
	if err != nil {
		return score{}, err
	}
	var logits, loss G.Value
	G.Read(n.logits, &logits)
	G.Read(n.loss, &loss)
	vm := G.NewTapeMachine(g)
	defer vm.Close()

	var s score
	var sum, weight float64
	for i := range (e.validations + validationSize - 1) / validationSize {
		if ctx.Err() != nil {
			return score{}, errInterrupted
		}
		batch, err := e.validationBatch(i)
		if err != nil {
			return score{}, err
		}
		in := feed(batch)
		for j, node := range []*G.Node{n.ids, n.lengths, n.targets} {
			if err := G.Let(node, in.Values[j]); err != nil {
				return score{}, err
			}
		}
		vm.Reset()
		if err := vm.RunAll(); err != nil {
			return score{}, err
		}
		sum += float64(loss.Data().(float32)) * in.Weight
		weight += in.Weight
		e.count(&s, batch, argmax(logits))
	}
	s.loss = sum / max(weight, 1)
	return s, nil
}

// count adds a batch's right and wrong predictions to a score.
func (e *experiment) count(s *score, b data.Batch, predicted []int) {
	for r := range b.Size {
		right, counted := 0, 0
		for i := r * b.Len; i < (r+1)*b.Len; i++ {
			if b.Targets[i] == data.Ignore {
				continue
			}
			counted++
			if predicted[i] == b.Targets[i] {
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

// label runs the model on a batch and returns the likeliest class of every position.
func (e *experiment) label(b data.Batch) ([]int, error) {
	g := G.NewGraph()
	ids := G.NewMatrix(g, tensor.Int, G.WithShape(b.Size, b.Len), G.WithName("ids"),
		G.WithValue(tensor.New(tensor.WithShape(b.Size, b.Len), tensor.WithBacking(b.Inputs))))
	lengths := G.NewVector(g, tensor.Int, G.WithShape(b.Size), G.WithName("lengths"),
		G.WithValue(tensor.New(tensor.WithShape(b.Size), tensor.WithBacking(b.Lengths))))
	out, err := e.logits(&layers.Build{}, ids, lengths)
	if err != nil {
		return nil, err
	}
	var logits G.Value
	G.Read(out, &logits)
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return nil, err
	}
	return argmax(logits), nil
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
