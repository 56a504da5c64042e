package task

import (
	"context"
	"errors"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// A Task is a model with the data that it learns from. Close it after use.
type Task struct {
	*Model

	// Workers is how many graphs take the micro-batches of a step side by side, as train.Config has it: 0 is for one a
	// core. It changes no result.
	Workers int

	set set
}

// A set is what a model learns from.
type set interface {
	train(epoch, step, size int) (data.Batch, error)
	validation(i, size int) (data.Batch, error)
	len() int // examples to validate on
	close() error
}

// validationSize is how many examples a validation batch has.
const validationSize = 250

// New makes the task that a configuration describes: with its data, and a model of new weights, which the seed decides.
// A setting that can't be is a *ConfigError. The rule must have its Sample and Answer or, of text, the Config its File.
//
// The task's Config is c with what New finds of the data: see Config and Data.
func New(c Config) (*Task, error) {
	open := openRule
	if c.Task.Kind == data.KindText {
		open = openText
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Spelled = spells(c.Task)
	s, err := open(&c)
	if err != nil {
		return nil, err
	}
	m, err := newModel(c)
	if err != nil {
		s.close()
		return nil, err
	}
	return &Task{Model: m, set: s}, nil
}

// Close closes the file that is learned from, if there is one. The model stays of use.
func (t *Task) Close() error {
	if t.check() != nil {
		return nil
	}
	return t.set.close()
}

// check finds a task that is nil or zero.
func (t *Task) check() error {
	if t == nil || t.set == nil || t.Model.check() != nil {
		return errors.New("the task is nil or zero: New makes one")
	}
	return nil
}

// Problem returns the task as train.Fit takes it, which has an error for that of a zero Task.
func (t *Task) Problem() train.Problem {
	if t.check() != nil {
		return train.Problem{}
	}
	feed := func(b data.Batch, err error) (train.Batch, error) {
		if err != nil {
			return train.Batch{}, err
		}
		weights := make([]float64, b.Size)
		for i, target := range b.Targets {
			if target != data.Ignore {
				weights[i/max(b.TargetLen, 1)]++
			}
		}
		return train.Batch{Values: t.values(b), Weight: float64(b.Counted()), Weights: weights}, nil
	}
	return train.Problem{
		Params: t.Params,
		Loss: func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
			nodes, _, loss, err := t.build(b, g, size)
			return loss, nodes, err
		},
		BatchSize: t.Config.Training.Batch, Steps: t.Config.Training.Steps, MicroBatches: t.Config.Training.MicroBatches,
		Train: func(epoch, step int) (train.Batch, error) {
			return feed(t.set.train(epoch, step, t.Config.Training.Batch))
		},
		ValidationSize:  validationSize,
		ValidationSteps: t.validationSteps(),
		Validation:      func(i int) (train.Batch, error) { return feed(t.set.validation(i, validationSize)) },
	}
}

func (t *Task) validationSteps() int { return (t.set.len() + validationSize - 1) / validationSize }

// FitConfig returns how train.Fit is to train it: with AdamW, and the Stopping, the epochs and the seed of the Config,
// and the task's Workers.
func (t *Task) FitConfig() train.Config {
	if t.check() != nil {
		return train.Config{}
	}
	c := t.Config.Training
	solver := train.NewAdamW(c.Rate)
	solver.WeightDecay = c.WeightDecay
	solver.Beta2 = 0.98
	solver.ClipNorm = c.Clip
	solver.Schedule = train.WarmUp(c.WarmUp)
	if c.Decay > 0 {
		solver.Schedule = train.WarmUpCosine(c.WarmUp, c.Decay, c.Floor)
	}
	return train.Config{Stopping: c.Stopping, MaxEpochs: c.Epochs, Solver: solver, Seed: t.Config.Seed, Workers: t.Workers}
}

// build adds the model and its loss to a graph, for batches of a size. The nodes' last is the targets.
func (t *Task) build(b *layers.Build, g *G.ExprGraph, size int) (nodes G.Nodes, logits, loss *G.Node, err error) {
	if nodes, logits, err = t.Model.build(b, g, size, t.layout); err != nil {
		return nil, nil, nil, err
	}
	targets := intNode(g, "targets", size, t.layout.TargetLen)
	loss, err = layers.CrossEntropy(b, logits, targets, layers.CrossEntropyOptions{})
	return append(nodes, targets), logits, loss, err
}

// values returns a batch as the nodes of build take it.
func (t *Task) values(b data.Batch) []*tensor.Dense {
	return append(t.Model.values(b), intTensor(b.Targets, b.Size, b.TargetLen))
}

// A Score is how well a model does on its validation examples.
type Score struct {
	Loss         float64 // mean cross-entropy, in nats
	Right, Total int     // examples that come out right in full; of text, characters
}

// Accuracy returns the share that is right.
func (s Score) Accuracy() float64 { return float64(s.Right) / float64(max(s.Total, 1)) }

var errNoContext = errors.New("the context is nil: pass context.Background()")

// Evaluate scores the model as it is.
func (t *Task) Evaluate(ctx context.Context) (Score, error) {
	if ctx == nil {
		return Score{}, errNoContext
	}
	if err := t.check(); err != nil {
		return Score{}, err
	}
	evaluate, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (in, out G.Nodes, err error) {
		nodes, logits, loss, err := t.build(b, g, validationSize)
		return nodes, G.Nodes{logits, loss}, err
	})
	if err != nil {
		return Score{}, err
	}
	var s Score
	var sum, weight float64
	for i := range t.validationSteps() {
		if err := ctx.Err(); err != nil {
			return Score{}, err
		}
		b, err := t.set.validation(i, validationSize)
		if err != nil {
			return Score{}, err
		}
		out, err := evaluate.Call(t.values(b)...)
		if err != nil {
			return Score{}, err
		}
		counted := float64(b.Counted())
		sum += float64(out[1].Data().(float32)) * counted
		weight += counted
		t.count(&s, b, argmax(out[0]))
	}
	s.Loss = sum / max(weight, 1)
	return s, nil
}

// count adds a batch's right and wrong predictions to a score.
func (t *Task) count(s *Score, b data.Batch, predicted []int) {
	width := max(b.TargetLen, 1)
	for row := range b.Size {
		right, counted := 0, 0
		for i := row * width; i < (row+1)*width; i++ {
			if b.Targets[i] == data.Ignore {
				continue
			}
			counted++
			if predicted[i] == b.Targets[i] {
				right++
			}
		}
		switch {
		case t.Config.Task.Kind == data.KindText:
			s.Right += right
			s.Total += counted
		case counted > 0:
			s.Total++
			if right == counted {
				s.Right++
			}
		}
	}
}
