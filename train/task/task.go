package task

import (
	"context"
	"errors"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
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
	validation(numbers []int) (data.Batch, error)
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
	dataset := func(n int, draw func(examples []int) (data.Batch, error)) train.Dataset {
		return train.Dataset{Len: n, Order: train.Fresh, Batch: func(examples []int) (train.Batch, error) {
			b, err := draw(examples)
			if err != nil {
				return train.Batch{}, err
			}
			return train.Batch{Values: t.values(b), Weight: float64(b.Counted())}, nil
		}}
	}
	c := t.Config.Training
	return train.Problem{
		Params: t.Params,
		Loss: func(b *layers.Build, inputs G.Nodes) (*G.Node, []train.Metric, error) {
			_, loss, err := t.judge(b, inputs)
			return loss, nil, err
		},
		Train:          dataset(c.Batch*c.Steps, t.drawn()),
		Validation:     dataset(t.set.len(), t.set.validation),
		BatchSize:      c.Batch,
		MicroBatches:   c.MicroBatches,
		ValidationSize: validationSize,
	}
}

// drawn returns a function for the batches of some training examples, counted on over all steps. The examples of a step
// are drawn at once.
func (t *Task) drawn() func(examples []int) (data.Batch, error) {
	batch, steps, at := t.Config.Training.Batch, t.Config.Training.Steps, -1
	var step data.Batch
	return func(examples []int) (data.Batch, error) {
		if i := examples[0] / batch; i != at {
			var err error
			if step, err = t.set.train(i/steps, i%steps, batch); err != nil {
				return step, err
			}
			at = i
		}
		from := examples[0] % batch
		return step.Rows(from, from+len(examples)), nil
	}
}

// FitConfig returns how train.Fit is to train it: with AdamW, and the Stopping, the epochs and the seed of the Config,
// and the task's Workers.
func (t *Task) FitConfig() train.Config {
	if t.check() != nil {
		return train.Config{}
	}
	c := t.Config.Training
	solver := optim.NewAdamW(c.Rate)
	solver.Rule = optim.AdamW{Beta2: 0.98}
	solver.WeightDecay = c.WeightDecay
	solver.ClipNorm = c.Clip
	solver.Schedule = optim.WarmUp(c.WarmUp)
	if c.Decay > 0 {
		solver.Schedule = optim.WarmUpCosine(c.WarmUp, c.Decay, c.Floor)
	}
	return train.Config{Stopping: c.Stopping, MaxEpochs: c.Epochs, Solver: solver, Seed: t.Config.Seed, Workers: t.Workers}
}

// judge adds the model and its loss to the graph of the nodes that values gives the values of.
func (t *Task) judge(b *layers.Build, nodes G.Nodes) (logits, loss *G.Node, err error) {
	last := len(nodes) - 1
	if logits, err = t.apply(b, nodes[:last]); err != nil {
		return nil, nil, err
	}
	loss, err = layers.CrossEntropy(b, logits, nodes[last], layers.CrossEntropyOptions{})
	return logits, loss, err
}

// values returns a batch with its targets, as the nodes of judge take it.
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
	evaluate := map[int]*layers.Function{} // by the size of a batch
	var s Score
	var sum, weight float64
	for first := 0; first < t.set.len(); first += validationSize {
		if err := ctx.Err(); err != nil {
			return Score{}, err
		}
		var examples []int
		for i := first; i < min(first+validationSize, t.set.len()); i++ {
			examples = append(examples, i)
		}
		b, err := t.set.validation(examples)
		if err != nil {
			return Score{}, err
		}
		f := evaluate[b.Size]
		if f == nil {
			f, err = layers.NewFunction(func(build *layers.Build, g *G.ExprGraph) (in, out G.Nodes, err error) {
				nodes, _, err := t.Model.build(build, g, b.Size, t.layout)
				if err != nil {
					return nil, nil, err
				}
				nodes = append(nodes, intNode(g, "targets", b.Size, t.layout.TargetLen))
				logits, loss, err := t.judge(build, nodes)
				return nodes, G.Nodes{logits, loss}, err
			})
			if err != nil {
				return Score{}, err
			}
			evaluate[b.Size] = f
		}
		out, err := f.Call(t.values(b)...)
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
