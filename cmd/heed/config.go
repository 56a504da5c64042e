package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
)

// textTask is the task that learns a file's characters; the others are data's. Those of data.TaskNames have answers that
// are no longer than their sources, which dates doesn't.
const (
	textTask  = "text"
	datesTask = "dates"
)

func taskNames() []string { return append(data.TaskNames(), datesTask, textTask) }

// config is all that decides a run: config.json holds it.
type config struct {
	Format int    `json:"format"` // of this file
	Task   string `json:"task"`
	Text   string `json:"text,omitempty"`        // the file to learn
	Chars  string `json:"symbols,omitempty"`     // the characters it has
	Sum    string `json:"text_sha256,omitempty"` // of the file, to tell if it changes
	Seed   uint64 `json:"seed"`

	MaxLen  int     `json:"max_len"` // longest source, or context of a text model
	Dim     int     `json:"dim"`
	Heads   int     `json:"heads"`
	Layers  int     `json:"layers"`
	Hidden  int     `json:"hidden"`
	Dropout float64 `json:"dropout"`

	Batch       int     `json:"batch"`
	Steps       int     `json:"steps"` // in an epoch
	Rate        float64 `json:"learning_rate"`
	WarmUp      int     `json:"warm_up"`
	Decay       int     `json:"decay"`
	Floor       float64 `json:"floor"`
	WeightDecay float64 `json:"weight_decay"`
	Clip        float64 `json:"clip"`
	Patience    int     `json:"patience"`
	MaxEpochs   int     `json:"epochs"`
	Validation  int     `json:"validation"`

	file string // the config.json that it was read from; empty if it is a call's
}

// name is what whoever chose a setting knows it as: its name in config.json, or its flag.
func (c *config) name(key string) string {
	if c.file != "" {
		return key
	}
	return "--" + strings.ReplaceAll(key, "_", "-")
}

const configFormat = 1

// defaults are the settings that a task learns well with.
func defaults(task string) config {
	c := config{
		Format: configFormat, Task: task, Seed: 1,
		Dim: 32, Heads: 4, Layers: 2,
		Batch: 64, Steps: 100, Rate: 3e-3, WarmUp: 100, Decay: 800, Floor: 0.1,
		WeightDecay: 0.01, Clip: 1, Patience: 3, Validation: 1000,
	}
	switch task {
	case "copy":
		c.Steps, c.Decay = 50, 300
	case "sort":
		c.Dim, c.Decay = 48, 1500
	case "add":
		c.Decay, c.Patience = 2000, 6
	case datesTask:
		c.Dim, c.MaxEpochs = 64, 10
	case textTask:
		c.MaxLen, c.Dim, c.Heads = 64, 64, 4
		c.Batch, c.Steps, c.Decay = 16, 200, 3000
	}
	return c
}

// bind declares a flag for every setting, whose default is what c holds.
func (c *config) bind(f *pflag.FlagSet) {
	f.StringVar(&c.Task, "task", c.Task, "what to learn: "+strings.Join(taskNames(), ", "))
	f.StringVar(&c.Text, "text", c.Text, "the file to learn, for --task text")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "decides initial weights, data order and dropout")

	f.IntVar(&c.MaxLen, "max-len", c.MaxLen, "longest sequence, 0 for the task's own; of text, the context")
	f.IntVar(&c.Dim, "dim", c.Dim, "width of the model")
	f.IntVar(&c.Heads, "heads", c.Heads, "attention heads")
	f.IntVar(&c.Layers, "layers", c.Layers, "blocks")
	f.IntVar(&c.Hidden, "hidden", c.Hidden, "width of the feed-forward layers; 0 for 4 times dim")
	f.Float64Var(&c.Dropout, "dropout", c.Dropout, "probability of dropping, in training")

	f.IntVar(&c.Batch, "batch", c.Batch, "sequences in a batch")
	f.IntVar(&c.Steps, "steps", c.Steps, "batches in an epoch")
	f.Float64Var(&c.Rate, "learning-rate", c.Rate, "peak learning rate of AdamW")
	f.IntVar(&c.WarmUp, "warm-up", c.WarmUp, "steps until the learning rate peaks")
	f.IntVar(&c.Decay, "decay", c.Decay, "step at which it has fallen, along a cosine, to the floor; 0 keeps it at its peak")
	f.Float64Var(&c.Floor, "floor", c.Floor, "part of the learning rate that is left after decay")
	f.Float64Var(&c.WeightDecay, "weight-decay", c.WeightDecay, "AdamW's weight decay")
	f.Float64Var(&c.Clip, "clip", c.Clip, "largest norm of the gradient; 0 for any")
	f.IntVar(&c.Patience, "patience", c.Patience, "epochs without improvement to stop after; 0 for never")
	f.IntVar(&c.MaxEpochs, "epochs", c.MaxEpochs, "epochs at most; 0 for no limit")
	f.IntVar(&c.Validation, "validation", c.Validation, "held-out sequences to validate on")
}

// fromFlags are the settings of a call: the defaults of its task, changed by the flags that it gives.
func fromFlags(task string, given *pflag.FlagSet) (config, error) {
	c := defaults(task)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.bind(f)
	var err error
	given.Visit(func(flag *pflag.Flag) {
		if f.Lookup(flag.Name) != nil && err == nil {
			err = f.Set(flag.Name, flag.Value.String())
		}
	})
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return config{}, &usageError{err}
	}
	return c, nil
}

// check checks the settings: those of a call, and those of a config.json that anybody may have written.
func (c *config) check() error {
	if !slices.Contains(taskNames(), c.Task) {
		return fmt.Errorf("%s must be one of %s, got %q", c.name("task"), strings.Join(taskNames(), ", "), c.Task)
	}
	if (c.Task == textTask) != (c.Text != "") {
		return fmt.Errorf("%s text must come with %s, the file to learn, and no other task may", c.name("task"), c.name("text"))
	}
	shortest := 0 // the task's own
	if c.Task == textTask {
		shortest = 1
	}
	for _, n := range []struct {
		name      string
		got       int
		low, high int
	}{
		{"dim", c.Dim, 1, 1 << 14}, {"heads", c.Heads, 1, 1 << 10}, {"layers", c.Layers, 1, 128},
		{"hidden", c.Hidden, 0, 1 << 16}, {"batch", c.Batch, 1, 1 << 16}, {"steps", c.Steps, 1, 1 << 30},
		{"warm_up", c.WarmUp, 0, 1 << 30}, {"decay", c.Decay, 0, 1 << 30}, {"patience", c.Patience, 0, 1 << 30},
		{"epochs", c.MaxEpochs, 0, 1 << 30}, {"validation", c.Validation, 1, 1 << 24}, {"max_len", c.MaxLen, shortest, 1 << 16},
	} {
		if n.got < n.low || n.got > n.high {
			return fmt.Errorf("%s must be from %d to %d, got %d", c.name(n.name), n.low, n.high, n.got)
		}
	}
	for _, x := range []struct {
		name string
		got  float64
		ok   bool
		want string
	}{
		{"dropout", c.Dropout, c.Dropout >= 0 && c.Dropout < 1, "at least 0 and below 1"},
		{"learning_rate", c.Rate, c.Rate > 0 && c.Rate <= 10, "above 0 and at most 10"},
		{"floor", c.Floor, c.Floor >= 0 && c.Floor <= 1, "from 0 to 1"},
		{"weight_decay", c.WeightDecay, c.WeightDecay >= 0 && c.WeightDecay <= 10, "from 0 to 10"},
		{"clip", c.Clip, c.Clip >= 0 && c.Clip <= 1e30, "from 0 to 1e30"},
	} {
		if !x.ok {
			return fmt.Errorf("%s must be %s, got %v", c.name(x.name), x.want, x.got)
		}
	}
	if c.Dim%c.Heads != 0 {
		return fmt.Errorf("%s must be a multiple of %s, got %d and %d", c.name("dim"), c.name("heads"), c.Dim, c.Heads)
	}
	if c.Patience == 0 && c.MaxEpochs == 0 {
		return fmt.Errorf("training needs an end: set %s or %s above 0", c.name("patience"), c.name("epochs"))
	}
	return nil
}

// maxMemory is the most that training may need, in bytes: more is taken for a mistake.
const maxMemory = 8 << 30

// model is the model's configuration. It is an error if training it would need absurdly much memory: it is better to
// say so than to be killed for it.
func (c *config) model(vocab, maxLen, outputs int) (layers.ModelConfig, error) {
	m := layers.ModelConfig{
		Vocab: vocab, Dim: c.Dim, Layers: c.Layers, Outputs: outputs, Dropout: c.Dropout,
		Positions: layers.Learned{MaxLen: maxLen},
		Block: layers.BlockConfig{
			Attention:   layers.AttentionConfig{Heads: c.Heads, Dropout: c.Dropout},
			FeedForward: layers.FeedForwardConfig{Hidden: c.Hidden, Dropout: c.Dropout},
			Dropout:     c.Dropout,
		},
	}
	// Numbers are floating-point here, as their products could overflow.
	dim, hidden, blocks := float64(c.Dim), float64(c.Hidden), float64(c.Layers)
	if hidden == 0 {
		hidden = 4 * dim
	}
	classes := float64(max(vocab, outputs))
	params := blocks*(4*dim*dim+2*dim*hidden) + (2*classes+float64(maxLen))*dim
	perToken := blocks*(10*dim+2*hidden) + 2*classes
	tokens := float64(2*c.Batch+validationSize) * float64(maxLen) // training keeps values and gradients, validation values
	// Of a parameter there are the value, the best value, the gradient, AdamW's two means, and a copy in passing.
	if need := 4 * (6*params + perToken*tokens); need > maxMemory {
		return m, usagef("training would need about %.0f GiB of memory, for %.3g parameters and batches of %.3g tokens; at most %d GiB are allowed: choose a smaller %s, %s, %s, %s or %s",
			math.Ceil(need/(1<<30)), params, tokens, maxMemory>>30,
			c.name("dim"), c.name("hidden"), c.name("layers"), c.name("max_len"), c.name("batch"))
	}
	return m, nil
}
