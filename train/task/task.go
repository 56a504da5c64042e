package task

import (
	"context"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// A Task is a model with the data that it learns from. Make one with New, and close it after use.
type Task struct {
	*Model

	// Loaded is what Config.From's weights had for the model, and what of it they had not. New sets it.
	Loaded layers.Loaded

	unstarted    error // why Config.From can't be started from, in a task of a run that may have done so
	set          set
	classWeights []float64 // nil for 1 each
}

// validationSize is how many examples a validation batch has, but those of a file.
const validationSize = 250

// validationSize returns how many examples a validation batch has.
func (c *Config) validationSize() int {
	if c.fromRows() {
		return c.Training.BatchSize
	}
	return validationSize
}

// New makes the task that a configuration describes: with its data, and a model of new weights, which the seed decides.
// A setting that can't be is a *ConfigError. The rule must have its Sample and Answer, or the Config its File.
//
// The task's Config is c with what New finds of the data: see Config and Data.
func New(c Config) (*Task, error) {
	open := openText
	switch {
	case c.Data.File == "":
		open = openRule
	case c.fromRows():
		open = openRows
	}
	if err := c.check(false); err != nil {
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
	t := &Task{Model: m, set: s}
	if c.From.Dir != "" {
		if t.Loaded, err = m.start(); err != nil && c.From.SHA256 == "" {
			s.close()
			return nil, err
		}
		t.unstarted = err
	}
	if rows, ok := s.(*rowSet); ok {
		t.classWeights = rows.classWeights
	}
	return t, nil
}

// Close closes the file that is learned from, if there is one. The model stays of use.
func (t *Task) Close() error { return t.set.close() }

// Problem returns the task as train.Fit takes it, with Config.Training.Config and a Call of the Config's Seed.
func (t *Task) Problem() train.Problem {
	dataset := func(e examples) train.Dataset {
		return train.Dataset{Len: e.n, Order: e.order, Bucket: e.bucket, Batch: func(examples []int) (train.Batch, error) {
			b, err := e.batch(examples)
			if err != nil {
				return train.Batch{}, err
			}
			return train.Batch{Values: t.values(b), Weight: t.weight(b)}, nil
		}}
	}
	return train.Problem{
		Params:         t.Params,
		Loss:           t.loss,
		Train:          dataset(t.set.train(t.Config.Training)),
		Validation:     dataset(t.set.validation()),
		ValidationSize: t.Config.validationSize(),
	}
}

// weight returns what a batch counts for.
func (t *Task) weight(b data.Batch) float64 {
	if t.classWeights == nil {
		return float64(b.Counted())
	}
	weight := 0.0
	for _, target := range b.Targets {
		if target != data.Ignore {
			weight += t.classWeights[target]
		}
	}
	return weight
}

// loss adds the model, its loss and its accuracy to the graph of the nodes that values gives the values of.
func (t *Task) loss(b *layers.Build, nodes G.Nodes) (loss *G.Node, metrics []train.Metric, err error) {
	last := len(nodes) - 1
	logits, err := t.forward(b, nodes[:last])
	if err != nil {
		return nil, nil, err
	}
	o := layers.CrossEntropyOptions{ClassWeights: t.classWeights}
	if b.Mode == layers.Training {
		o.LabelSmoothing = t.Config.Training.LabelSmoothing
	}
	if loss, err = layers.CrossEntropy(b, logits, nodes[last], o); err != nil {
		return nil, nil, err
	}
	right, counted, err := ops.CountRight(b.Env(), logits, nodes[last], t.unknownClass(), !t.Config.Kind().aligned)
	return loss, []train.Metric{{Name: "accuracy", Sum: right, Count: counted}}, err
}

// unknownClass returns the class of what answers have that the model doesn't know, or -1. It is never right, as for
// Judge: what was meant can't be told from it.
func (t *Task) unknownClass() int {
	if t.Config.Task.Classes != nil {
		return -1
	}
	_, target := t.coder.Tokenizers()
	return target.Unknown()
}

// values returns a batch with its targets, as the nodes of loss take it.
func (t *Task) values(b data.Batch) []*tensor.Dense {
	return append(t.Model.values(b), intTensor(b.Targets, b.Size, b.TargetLen))
}

// A Score is how well a model does on its validation examples.
type Score struct {
	Loss         float64 // mean cross-entropy, in nats
	Right, Total int     // examples that come out right in full; of text, characters or tokens, and of a file's tags, tags
	Characters   int     // of a text in tokens, which begin in those of Total; else 0
}

// PerCharacter returns the loss of a text in tokens by its characters, which is one to compare with that of others: a
// model of characters has it as its Loss.
func (s Score) PerCharacter() float64 {
	if s.Characters == 0 {
		return s.Loss
	}
	return s.Loss * float64(s.Total) / float64(s.Characters)
}

// Accuracy returns the share that is right.
func (s Score) Accuracy() float64 { return float64(s.Right) / float64(max(s.Total, 1)) }

// Evaluate scores the model as it is.
func (t *Task) Evaluate(ctx context.Context) (Score, error) {
	values, err := train.Evaluate(ctx, t.Problem())
	if err != nil {
		return Score{}, err
	}
	return t.score(values["val_loss"], values["val_accuracy"]), nil
}

func (t *Task) score(loss, accuracy float64) Score {
	total := t.set.judged()
	score := Score{Loss: loss, Right: int(math.Round(accuracy * float64(total))), Total: total}
	if s, ok := t.set.(*textSet); ok {
		score.Characters = s.characters
	}
	return score
}
