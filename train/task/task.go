package task

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
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
	set       set

	classWeights []float64 // weights of the classes in the loss; nil means 1 for each
	held         float64   // loss of the linear model on the training rows, by models that haven't seen the row
}

// Of returns a task that has only a model: no examples and no data.
func Of(m *model.Model) *Task { return &Task{Model: m, Config: *configOf(m)} }

// New makes the task that a configuration describes: it opens the data and makes a model with new weights, which depend
// on the seed. If the task needs no file, the rule must have a Sample and an Answer. The error is a *ConfigError if a
// setting is wrong.
//
// The Config of the new task is c with the values that New chose from the data: see Config, data.Settings and Training.
func New(c Config) (*Task, error) {
	began := time.Now()
	open := openText
	switch {
	case c.Drawn():
		open = openRule
	case c.FromRows():
		open = openRows
	case c.Task.Kind == data.KindText && c.Data.File != "" && c.textFiles().HaveChats():
		open = openChats
	}
	if c.Opened() {
		return nil, setting.Errorf("a published model learns from a file: set %s", setting.Path("data.file"))
	}
	c.imply()
	if err := c.check(false); err != nil {
		return nil, err
	}
	c.Spelled = c.Task.Spell != nil || c.Task.Read != nil
	s, err := open(&c)
	if err != nil {
		return nil, err
	}
	var m *model.Model
	if err = c.check(true); err == nil {
		m, err = model.New(c.Config, func(decided *model.Config, l data.Layout) error {
			c.Config = *decided
			c.divide()
			return c.checkMemory(l)
		})
	}
	if err != nil {
		s.close()
		return nil, setting.As(err)
	}
	t := &Task{Model: m, Config: c, set: s}
	if t.Loaded, t.unstarted, err = m.Start(); err != nil {
		s.close()
		return nil, err
	}
	t.Config.Config = m.Config
	t.learner = kindOf(c.Task.Kind).learner(t)
	if rows, ok := s.(*rowSet); ok {
		t.classWeights = rows.classWeights
	}
	t.made = time.Since(began)
	return t, nil
}

// Check returns a *ConfigError if New would refuse a setting, whatever the data are.
func (c Config) Check() error {
	c.imply()
	return c.check(false)
}

// imply sets what follows from other settings.
func (c *Config) imply() {
	c.Task.Pairs = c.Task.Pairs || c.FromRows() && c.Kind().Pairs && len(c.Data.Columns) == 3
	c.direct()
}

// Close closes the data file, if there is one. The model can still be used.
func (t *Task) Close() error { return t.set.close() }

// DescribeData describes the rows or conversations of the file that the task learns from. It returns lines of text. The
// lines after the first have the form " name: value". For text or a rule, it returns "".
func (t *Task) DescribeData() string {
	switch s := t.set.(type) {
	case *rowSet:
		return s.Description.String()
	case *chatSet:
		return s.description
	}
	return ""
}

// Examples returns the validation examples, or nil for text. For rows of a file, they include rows that are too long
// for validation.
func (t *Task) Examples() []data.Example {
	switch s := t.set.(type) {
	case *ruleSet:
		return s.examples
	case *rowSet:
		return s.Held.Examples()
	}
	return nil
}

// Problem returns the task in the form that train.Fit needs. Pass Fit the settings in Config.Training.Config, and
// RunOptions with the Config's Seed. It is the network that learns: a linear model isn't a part of the Problem.
func (t *Task) Problem() train.Problem {
	n := t.Network()
	dataset := func(e examples) train.Dataset {
		return train.Dataset{Len: e.n, Order: e.order, Bucket: e.bucket, Batch: func(examples []int) ([]*tensor.Dense, error) {
			b, err := e.batch(examples)
			if err != nil {
				return nil, err
			}
			return append(n.Values(b), t.targets(b)...), nil
		}}
	}
	inputs := len(n.Inputs(G.NewGraph(), 1, t.Coder().Layout()))
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
		ValidationSize: t.Config.validationSize(),
	}
}

// Evaluate scores the answers of the model with its present parameters to the validation examples.
func (t *Task) Evaluate(ctx context.Context) (Score, error) {
	if _, err := t.Linear(); err != nil {
		return Score{}, err
	}
	if t.mixes() {
		v, err := t.readValidation(ctx)
		if err != nil {
			return Score{}, err
		}
		_, s, err := t.judgeMixed(ctx, v)
		return s, err
	}
	values, err := train.Evaluate(ctx, t.Problem())
	if err != nil {
		return Score{}, err
	}
	if err := logit.CheckFinite(values["val_loss"]); err != nil {
		return Score{}, err
	}
	s := t.score(values["val_loss"], values)
	if t.Config.Kind().Embeds && t.set.judged() > 0 {
		r, err := Judge(ctx, t.Model, t.Examples(), model.PredictOptions{})
		if err != nil {
			return s, err
		}
		s.ofTexts(r)
	}
	return s, nil
}

// monitoredText describes the monitored metric if it isn't the score, and the values of always answering the most
// frequent label or tag.
func (t *Task) monitoredText(values map[string]float64) (s string) {
	names, always := []string{t.Config.Kind().Score}, ""
	if name, ok := strings.CutPrefix(t.Config.Training.Stopping.Monitor, "val_"); ok && name != "loss" && name != names[0] {
		s, names = fmt.Sprintf(", %s %.4f", text.EscapeExcept(spoken(name), ""), values["val_"+name]), append(names, name)
	}
	for i, name := range names {
		if label, value, known := t.MostFrequent(name); known {
			always += fmt.Sprintf("%s %s %.4f", []string{"; always answering " + text.EscapeExcept(label, "") + ":", ","}[i], text.EscapeExcept(spoken(name), ""), value)
		}
	}
	return s + always
}

// score returns the Score for a validation loss and the validation metrics of a check or of an evaluation.
func (t *Task) score(loss float64, values map[string]float64) Score {
	k := t.Config.Kind()
	value, known := values["val_"+k.Score]
	if !known {
		value = math.NaN()
	}
	s := Score{Loss: loss, Name: k.Score, Value: value, Total: t.set.judged(), share: k.Share, unit: k.Unit, right: k.Right}
	if k.Share {
		s.Right = int(math.Round(s.Value * float64(s.Total)))
		s.Value = float64(s.Right) / float64(max(s.Total, 1))
	}
	for _, m := range kindOf(k.Name).metrics(&t.Config)[1:] {
		s.others += fmt.Sprintf(", %s %.4g", spoken(m.Name), values["val_"+m.Name])
	}
	s.monitored = t.monitoredText(values)
	if set, ok := t.set.(*textSet); ok {
		s.Characters = set.characters
	}
	return s
}

// MostFrequent returns the label or tag that most training rows of a file have, and the validation value that a metric,
// such as accuracy or recall[fraud], has if it is always answered. It reports whether the value is known.
func (t *Task) MostFrequent(metric string) (label string, value float64, known bool) {
	s, ok := t.set.(*rowSet)
	if !ok || s.names == nil || s.total == 0 {
		return "", 0, false
	}
	label, right, total := s.names[s.best], float64(s.validates[s.best]), float64(s.total)
	share, f1, labels := right/total, 2*right/(total+right), 0 // labels with answers or rows
	for i, n := range s.validates {
		if n > 0 || i == s.best {
			labels++
		}
	}
	name, class, ofClass := ofClass(metric)
	switch {
	case metric == "accuracy":
		return label, share, true
	case metric == "macro_f1":
		return label, f1 / float64(labels), true
	case !ofClass:
		return label, 0, false
	case name == "average_precision": // all rows are alike
		return label, float64(s.validates[slices.Index(s.names, class)]) / total, true
	case class != label || right == 0:
		return label, 0, true
	}
	return label, map[string]float64{"precision": share, "recall": 1, "f1": f1}[name], true
}
