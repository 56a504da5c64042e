package model

import (
	"math"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// A Threshold is for models that answer with one of two labels. They answer Label if its probability is at least P, and
// otherwise the other label. The zero Threshold means the likelier label.
type Threshold struct {
	Label string
	P     float64 // from 0 to 1
}

// check returns a *ConfigError if a model with this configuration can't use the threshold.
func (t Threshold) check(c *Config) error {
	path, classes := setting.Path("threshold"), c.Task.Classes
	switch {
	case t == Threshold{}:
		return nil
	case c.Task.Kind != data.KindClassification || len(classes) != 2:
		return setting.Errorf("%s is for models with two labels, not for the task %s", path, c.taskName())
	case !slices.Contains(classes, t.Label):
		return setting.Errorf("%s must name one of the labels %q and %q, got %.100q%s", path, classes[0], classes[1], t.Label, text.DidYouMean(t.Label, classes))
	}
	return setting.In(path, t.P, t.P >= 0 && t.P <= 1, "a probability from 0 to 1")
}

// put moves the choice that the threshold answers to the front of two choices. The argument label is the label of the
// first one.
func (t Threshold) put(choices []choice, label string) {
	first := label == t.Label
	p := choices[0]
	if !first {
		p = choices[1]
	}
	if (math.Exp(p.logProb) >= t.P) != first {
		slices.Reverse(choices)
	}
}
