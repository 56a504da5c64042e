package task

import (
	"context"
	"errors"
	"math"
	"time"

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

	// MaxSteps and MaxTime are limits of the steps of all epochs and of the time of one training, as train.Config has
	// them; 0 for none. What they end is unfinished, and goes on when Train is called again.
	MaxSteps int
	MaxTime  time.Duration

	// CheckpointSteps and CheckpointTime have checkpoints written between checks too, as train.Config has them.
	CheckpointSteps int
	CheckpointTime  time.Duration

	// Group is the processes that train together, as train.Config has it; nil for this one alone. The first one alone
	// sees the run folder.
	Group train.Group

	set set
}

// A set is what a model learns from.
type set interface {
	train(epoch, step, size int) (data.Batch, error)
	validation(numbers []int) (data.Batch, error)
	len() int // examples to validate on; 0 for none
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
		Params:         t.Params,
		Loss:           t.loss,
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

// FitConfig returns how train.Fit is to train it: with the solver, the Stopping, the checks, the epochs and the seed of
// the Config, and the task's Workers and limits.
func (t *Task) FitConfig() train.Config {
	if t.check() != nil {
		return train.Config{}
	}
	of := t.Config.Training
	c := train.Config{
		Stopping: of.Stopping, CheckEvery: of.CheckEvery, MaxEpochs: of.Epochs, MaxSteps: t.MaxSteps, MaxTime: t.MaxTime,
		Seed: t.Config.Seed, Workers: t.Workers, Group: t.Group,
	}
	of.solve(&c)
	return c
}

// loss adds the model, its loss and its accuracy to the graph of the nodes that values gives the values of.
func (t *Task) loss(b *layers.Build, nodes G.Nodes) (loss *G.Node, metrics []train.Metric, err error) {
	last := len(nodes) - 1
	logits, err := t.apply(b, nodes[:last])
	if err != nil {
		return nil, nil, err
	}
	if loss, err = layers.CrossEntropy(b, logits, nodes[last], layers.CrossEntropyOptions{}); err != nil {
		return nil, nil, err
	}
	judge := train.ExactMatch
	if t.Config.Task.Kind == data.KindText {
		judge = train.Accuracy
	}
	accuracy, err := judge(b, logits, nodes[last])
	accuracy.Name = "accuracy"
	return loss, []train.Metric{accuracy}, err
}

// values returns a batch with its targets, as the nodes of loss take it.
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
	values, err := train.Evaluate(ctx, t.Problem())
	if err != nil {
		return Score{}, err
	}
	return t.score(values["val_loss"], values["val_accuracy"]), nil
}

func (t *Task) score(loss, accuracy float64) Score {
	total := t.set.len()
	if t.Config.Task.Kind == data.KindText {
		total *= t.layout.Len
	}
	return Score{Loss: loss, Right: int(math.Round(accuracy * float64(total))), Total: total}
}
