package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// A parsed is the value of a flag whose text a function reads.
type parsed struct {
	kind string // see Type
	text string // as it was given, or the default
	read func(text string) error
}

// Kinds of parsed values, which help and errors name.
const (
	kindName      = "name" // errors of such values say what is expected
	kindInterval  = "steps or time"
	kindThreshold = "label=probability"
)

func (p *parsed) Type() string   { return p.kind }
func (p *parsed) String() string { return p.text }

func (p *parsed) Set(text string) error {
	p.text = text
	return p.read(text)
}

// choose declares a flag that sets *value to a choice of task.Choices. Its text is the name of the choice and, after
// commas, fields, as in muon,momentum=0.95. The verb %s in usage stands for the list of names.
func choose[T any](f *pflag.FlagSet, flag string, value *T, usage string) {
	table := task.Choices()[flag]
	var names []string
	for name := range table.All {
		names = append(names, name)
	}
	f.Var(&parsed{kindName, table.Text(*value), func(text string) error {
		v, err := table.Parse(text)
		if err == nil {
			*value = v.(T)
		}
		return err
	}}, flag, fmt.Sprintf(usage, text.Either(names)))
}

// expertsFlag declares --experts: a number of experts and, after commas, fields.
func expertsFlag(f *pflag.FlagSet, value **layers.ExpertsConfig) {
	f.Var(&parsed{kindName, "", func(text string) error {
		number, _, _ := strings.Cut(text, ",")
		count, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("expected a number of experts and, after commas, fields such as top=2, got %.100q", text)
		}
		var c layers.ExpertsConfig
		if err := choices.Set(&c, text[len(number):]); err != nil {
			return err
		}
		c.Count = count
		*value = &c
		return nil
	}}, "experts", "`number` of experts in place of each feed-forward layer, with fields such as 8,top=2,balance=0.01 (default: one layer for all tokens)")
}

// optional declares a flag for a number that may be unset.
func optional(f *pflag.FlagSet, flag string, value **float64, usage string) {
	f.Var(&parsed{"float64", "", func(text string) error {
		x, err := strconv.ParseFloat(text, 64)
		*value = &x
		return err
	}}, flag, usage)
}

// intervalFlag declares --checkpoint-every: a number of steps or a time.
func intervalFlag(f *pflag.FlagSet, o *train.RunOptions) {
	f.Var(&parsed{kindInterval, o.CheckpointTime.String(), func(text string) error {
		steps, err := strconv.Atoi(text)
		interval := time.Duration(0)
		if err != nil {
			interval, err = time.ParseDuration(text)
		}
		if err != nil || steps <= 0 && interval <= 0 {
			return errors.New("it must be above 0")
		}
		o.CheckpointSteps, o.CheckpointTime = steps, interval
		return nil
	}}, "checkpoint-every", "steps or time between checkpoints, such as 500 or 1h; each check also writes one")
}

// thresholdFlag declares --threshold: a label and a probability.
func thresholdFlag(f *pflag.FlagSet, t *model.Threshold) {
	f.Var(&parsed{kindThreshold, "", func(text string) error {
		i := strings.LastIndex(text, "=") // a label may have an equals sign
		if i < 1 {
			return errors.New("it has no label")
		}
		p, err := strconv.ParseFloat(text[i+1:], 64)
		if err != nil {
			return errors.New("the probability isn't a number")
		}
		*t = model.Threshold{Label: text[:i], P: p}
		return nil
	}}, "threshold", "with two labels: answer one of them if its probability is at least a number, such as fraud=0.2 (default: the likelier label)")
}
