package task

import (
	"fmt"
	"strings"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// A Task is a model with its data. Make one with New, and call Close after use.
type Task struct {
	*model.Model
	Config Config // with the settings of the Model

	learner

	// Loaded lists which parameters New didn't load from the run in Config.From, and which weights of that run it
	// didn't use.
	Loaded layers.LoadReport

	made      time.Duration // time that New took
	unstarted error         // why Config.From can't be loaded; no error for a run that already has a checkpoint
	kind      kind
	set       set

	classWeights []float64 // weights of the classes in the loss; nil means 1 for each
	held         float64   // loss of the linear model on the training rows, by models that haven't seen the row
}

// Close closes the data file, if there is one. The model can still be used.
func (t *Task) Close() error { return t.set.close() }

// DescribeData describes the rows or conversations of the file that the task learns from. It returns lines of text. The
// lines after the first have the form " name: value". For text or a rule, it returns "".
func (t *Task) DescribeData() string { return t.set.describe() }

// Examples returns the validation examples, or nil for text. For rows of a file, they include rows that are too long
// for validation.
func (t *Task) Examples() []data.Example { return t.set.held() }

// Problem returns the task in the form that train.Fit needs. Pass Fit the settings in Config.Training.Config, and
// RunOptions with the Config's Seed. It is the network that learns: a linear model isn't a part of the Problem.
func (t *Task) Problem() train.Problem {
	n := t.Network
	dataset := func(e examples) train.Dataset {
		return train.Dataset{Len: e.n, Order: e.order, Bucket: e.bucket, Batch: func(examples []int) ([]*tensor.Dense, error) {
			b, err := e.batch(examples)
			if err != nil {
				return nil, err
			}
			return append(n.Values(b), t.targets(b)...), nil
		}}
	}
	inputs := len(n.Inputs(G.NewGraph(), 1, t.Coder.Layout()))
	if t.Config.Data.Pack == "yes" {
		inputs += 2 // the documents and positions of packed rows
	}
	return train.Problem{
		Params: t.Trained(),
		Loss: func(b *layers.Build, nodes G.Nodes) (layers.Loss, []train.Metric, error) {
			out, err := n.States(b, nodes[:inputs])
			if err != nil {
				return layers.Loss{}, nil, err
			}
			return t.loss(b, out, nodes[inputs:])
		},
		Train:          dataset(t.set.train(t.Config.Training)),
		Validation:     dataset(t.set.validation()),
		ValidationSize: t.set.size(),
	}
}

// monitoredText describes the monitored metric if it isn't the score, and the values of always answering the most
// frequent label or tag.
func (t *Task) monitoredText(values map[string]float64) (s string) {
	names, always := []string{judge.KindOf(&t.Config.Config).Score.Name}, ""
	if name, ok := strings.CutPrefix(t.Config.Training.Stopping.Monitor, "val_"); ok && name != "loss" && name != names[0] {
		s, names = fmt.Sprintf(", %s %.4f", text.EscapeExcept(metrics.Spoken(name), ""), values["val_"+name]), append(names, name)
	}
	for i, name := range names {
		if label, value, known := t.MostFrequent(name); known {
			always += fmt.Sprintf("%s %s %.4f", []string{"; always answering " + text.EscapeExcept(label, "") + ":", ","}[i], text.EscapeExcept(metrics.Spoken(name), ""), value)
		}
	}
	return s + always
}

// score returns the Score for a validation loss and the validation metrics of a check or of an evaluation.
func (t *Task) score(loss float64, values map[string]float64) judge.Score {
	s := judge.NewScore(&t.Config.Config, loss, values, t.set.judged())
	s.Note, s.Characters = t.monitoredText(values), t.set.characters()
	return s
}

// MostFrequent returns the label or tag that most training rows of a file have, and the validation value that a metric,
// such as accuracy or recall[fraud], has if it is always answered. It reports whether the value is known.
func (t *Task) MostFrequent(metric string) (label string, value float64, known bool) {
	return t.set.counts().always(metric)
}
