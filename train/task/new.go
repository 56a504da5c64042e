package task

import (
	"errors"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/train/model"
)

// New makes the task that a configuration describes: it opens the data and makes a model with new weights, which depend
// on the seed. If the task needs no file, the rule must have a Sample and an Answer. The error is a
// *model.ConfigError if a setting is wrong.
//
// The Config of the new task is c with the values that New chose from the data: see Config, data.Settings and Training.
func New(c Config) (*Task, error) {
	began := time.Now()
	if c.Opened() {
		return nil, setting.Errorf("a published model learns from a file: set %s", setting.Path("data.file"))
	}
	c.imply()
	k, from := kindOf(c.Task.Kind), sourceOf(&c)
	if err := c.check(k, false); err != nil {
		return nil, err
	}
	c.Spelled = c.Task.Spell != nil || c.Task.Read != nil
	s, err := from.open(k, &c)
	if errors.Is(err, table.ErrSeveral) && c.Task.Name == string(data.KindClassification) && c.Task.Classes == nil {
		c.learnLabels()
		k = kindOf(c.Task.Kind)
		if err = c.check(k, false); err == nil {
			s, err = from.open(k, &c)
		}
	}
	if err != nil {
		return nil, err
	}
	t := &Task{Config: c, kind: k, set: s}
	if err = t.Config.check(k, true); err == nil {
		t.Model, err = model.New(&t.Config.Config, func(l data.Layout) error {
			t.Config.divide(k.about())
			return t.Config.checkMemory(l, s.size())
		})
	}
	if err != nil {
		s.close()
		return nil, setting.As(err)
	}
	if t.Loaded, t.unstarted, err = t.Start(); err != nil {
		s.close()
		return nil, err
	}
	if l := s.counts(); l != nil {
		t.classWeights = l.weights
	}
	t.learner = k.learner(t.Model, &t.Config, t.classWeights)
	t.made = time.Since(began)
	return t, nil
}

// Check returns a *model.ConfigError if New would refuse a setting, whatever the data are.
func (c Config) Check() error {
	c.imply()
	return c.check(kindOf(c.Task.Kind), false)
}

// imply sets what follows from other settings.
func (c *Config) imply() {
	if c.Task.Name == string(data.KindClassification) && c.Task.Separator != "" {
		c.learnLabels()
	}
	c.Task.Pairs = c.Task.Pairs || c.FromRows() && kindOf(c.Task.Kind).about().pairs && len(c.Data.Columns) == 3
	c.direct()
}
