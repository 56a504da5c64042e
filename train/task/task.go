package task

import (
	"context"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// A Task is a model with its data. Make one with New, and call Close after use.
type Task struct {
	*Model

	// Loaded lists which parameters New didn't load from the run in Config.From, and which weights of that run it
	// didn't use.
	Loaded layers.LoadReport

	unstarted    error // why Config.From can't be loaded; no error for a run that already has a checkpoint
	set          set
	classWeights []float64 // nil means 1 for each class
}

// validationSize is the number of examples in a validation batch, except for rows of a file.
const validationSize = 250

// validationSize returns the number of examples in a validation batch.
func (c *Config) validationSize() int {
	if c.fromRows() {
		return c.Training.BatchSize
	}
	return validationSize
}

// New makes the task that a configuration describes: it opens the data and makes a model with new weights, which depend
// on the seed. If c.Data.File is empty, the rule must have a Sample and an Answer. If a setting is wrong, the error is
// a *ConfigError.
//
// The Config of the new task is c with the values that New chose from the data: see Config, Data and Training.
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

// Close closes the data file, if there is one. The model can still be used.
func (t *Task) Close() error { return t.set.close() }

// Problem returns the task in the form that train.Fit needs. Pass Fit the settings in Config.Training.Config, and a
// Call with the Config's Seed.
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

// weight returns the weight of a batch's mean loss: the sum of the weights of its targets.
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

// loss adds the model, its loss and its metrics to the graph of the nodes. The function values returns the values of
// the nodes.
func (t *Task) loss(b *layers.Build, nodes G.Nodes) (*G.Node, []train.Metric, error) {
	last := len(nodes) - 1
	logits, err := t.forward(b, nodes[:last])
	if err != nil {
		return nil, nil, err
	}
	o := layers.CrossEntropyOptions{ClassWeights: t.classWeights}
	if b.Mode == layers.Training {
		o.LabelSmoothing = t.Config.Training.LabelSmoothing
	}
	loss, err := layers.CrossEntropy(b, logits, nodes[last], o)
	if err != nil {
		return nil, nil, err
	}
	var computed []train.Metric
	for _, m := range metrics {
		if !m.Value.has(&t.Config) {
			continue
		}
		one, err := m.Value.add(t, b, logits, nodes[last])
		if err != nil {
			return nil, nil, err
		}
		computed = append(computed, one)
	}
	return loss, computed, nil
}

// unknownClass returns the class that stands for unknown symbols in answers, or -1 if there is none. A prediction of
// this class is never right, neither here nor in Judge, because it doesn't tell which symbol was meant.
func (t *Task) unknownClass() int {
	if t.Config.Task.Classes != nil {
		return -1
	}
	_, target := t.coder.Tokenizers()
	return target.Unknown()
}

// values returns the values of the nodes of loss: the batch's inputs and its targets.
func (t *Task) values(b data.Batch) []*tensor.Dense {
	return append(t.Model.values(b), intTensor(b.Targets, b.Size, b.TargetLen))
}

// A Score tells how good a model is on the validation examples.
type Score struct {
	Loss         float64 // mean cross-entropy, in nats
	Right, Total int     // right answers and all answers; for text: characters or tokens; for tagging from a file: tags
	Characters   int     // for text in tokens: number of characters in the Total tokens; otherwise 0
}

// PerCharacter returns the loss per character, which is comparable between models with different tokenizers. Without
// Characters it is the Loss.
func (s Score) PerCharacter() float64 {
	if s.Characters == 0 {
		return s.Loss
	}
	return s.Loss * float64(s.Total) / float64(s.Characters)
}

// Accuracy returns Right as a share of Total.
func (s Score) Accuracy() float64 { return float64(s.Right) / float64(max(s.Total, 1)) }

// Evaluate scores the model with its present parameters on the validation examples.
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
