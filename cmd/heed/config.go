package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/kinds"
	"github.com/heed-go/heed/train/task"
)

// settings are what the flags of heed train say.
type settings struct {
	task.Config
	name    string
	preset  string
	from    string
	maxLen  int
	dropout float64

	data, validationData []string // each one file, or two parallel ones
	units                string
}

// defaults returns the settings of a task.
func defaults(name string, maxLen int) (settings, error) {
	c, err := task.Named(name, maxLen)
	return settings{Config: c, name: name, maxLen: maxLen, dropout: c.Model.Dropout}, err
}

// A flagGroup is flags under a title in the help.
type flagGroup struct {
	title string
	*pflag.FlagSet
}

// flags declares a flag for every setting, whose default is what s holds. The groups are in the order of the help, the
// common flags first.
func (s *settings) flags() []flagGroup {
	var groups []flagGroup
	group := func(title string) *pflag.FlagSet {
		f := pflag.NewFlagSet(title, pflag.ContinueOnError)
		f.SortFlags = false
		groups = append(groups, flagGroup{title, f})
		return f
	}
	m, b, t := &s.Model, &s.Model.Block, &s.Training
	o, stopping := &t.Optimizer, &t.Stopping

	f := group("Common flags")
	f.StringVar(&s.name, "task", s.name, "what to learn: "+strings.Join(task.Names(), ", "))
	f.StringArrayVar(&s.data, "data", s.data, "the file to learn, for tasks of a file; give it twice to read sources from the first file and answers from the second, line by line")
	f.StringVar(&s.preset, "preset", s.preset, "settings of this name, which other flags change; see above")
	f.StringVar(&s.from, "from", s.from, "a run folder whose weights to begin with, in a model of its shape")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "decides initial weights, data order and dropout")
	f.IntVar(&t.MaxEpochs, "max-epochs", t.MaxEpochs, "epochs at most; 0 for no limit")
	f.IntVar(&stopping.Patience, "patience", stopping.Patience, "checks without improvement to stop after; 0 for never")

	f = group("A file")
	f.StringArrayVar(&s.validationData, "validation-data", s.validationData, "the file of rows to validate on, all of it unless --validation says how many rows; without it, rows of --data are held out")
	f.StringSliceVar(&s.Data.Columns, "columns", s.Data.Columns, "the columns of sources and answers, as text,label or 3,1: by the names of a header, or by their numbers")
	f.StringVar(&s.units, "units", s.units, "what sources and answers are made of: characters, tokens between spaces, or bpe, pairs of bytes, with one vocabulary for both; guessed; of text, characters, unless it is bpe")
	f.StringVar((*string)(&s.Data.SourceUnits), "source-units", string(s.Data.SourceUnits), "what sources are made of")
	f.StringVar((*string)(&s.Data.TargetUnits), "target-units", string(s.Data.TargetUnits), "what answers are made of")
	f.IntVar(&s.Data.VocabSize, "vocab-size", s.Data.VocabSize, "ids of --units bpe at most; 0 for what there is enough text for")
	f.IntVar(&s.Task.MaxAnswer, "max-answer", s.Task.MaxAnswer, "longest answer of pairs; 0 for what the file needs")
	f.StringVar(&t.ClassWeights, "class-weights", t.ClassWeights, "balanced has all labels, or tags, count for the same")

	f = group("Data and model")
	f.IntVar(&s.Data.Validation, "validation", s.Data.Validation, "held-out sequences to validate on; 0 for none")
	f.IntVar(&s.maxLen, "max-len", s.maxLen, "longest sequence, 0 for the task's own or what the file needs; of text, the context")
	f.IntVar(&m.Dim, "dim", m.Dim, "width of the model")
	f.IntVar(&b.Attention.Heads, "heads", b.Attention.Heads, "attention heads")
	f.IntVar(&m.Layers, "layers", m.Layers, "blocks; of pairs, of the encoder")
	f.IntVar(&s.DecoderLayers, "decoder-layers", s.DecoderLayers, "of pairs: blocks of the decoder; 0 for as many")
	f.IntVar(&b.FeedForward.Hidden, "hidden", b.FeedForward.Hidden, "width of the feed-forward layers; 0 for 4 times dim")
	choose(f, "positions", &m.Positions, "how the model knows the order of tokens: %s, with fields such as rotary,base=10000 (default learned, but rotary for pairs and files)")
	choose(f, "norm", &b.Norm, "what normalises: %s, with fields such as rms,eps=1e-5")
	choose(f, "activation", &b.FeedForward.Activation, "function in the feed-forward layers: %s")
	f.Float64Var(&s.dropout, "dropout", s.dropout, "probability of dropping, in training")

	f = group("Training")
	f.IntVar(&t.BatchSize, "batch-size", t.BatchSize, "sequences in a batch")
	f.IntVar(&t.MicroBatches, "micro-batches", t.MicroBatches, "micro-batches per batch; more use less memory (0: 4, or the largest of 2 and 1 that divides the batch)")
	f.IntVar(&t.StepsPerEpoch, "steps-per-epoch", t.StepsPerEpoch, "batches in an epoch; for the rows of a file, an epoch is a pass over them")
	f.Float64Var(&t.LabelSmoothing, "label-smoothing", t.LabelSmoothing, "share of every target that is spread over all, in training")
	f.Float64Var(&o.Average, "average", o.Average, "decay, such as 0.999, of an average of the weights that is validated and saved in their place (0: none)")

	f = group("Solver")
	choose(f, "solver", &o.Solver, "what steps the weights: %s, with fields such as sgd,momentum=0.9")
	f.Float64Var(&o.LearningRate, "learning-rate", o.LearningRate, "peak learning rate")
	f.Float64Var(&o.WeightDecay, "weight-decay", o.WeightDecay, "weight decay, of matrices alone")
	f.Float64Var(&o.ClipNorm, "clip-norm", o.ClipNorm, "largest norm of the gradient (0: no limit)")
	f.Float64Var(&o.ClipValue, "clip-value", o.ClipValue, "clip each gradient element to ±this value, after --clip-norm (0: off)")

	f = group("Learning rate over time")
	choose(f, "schedule", &o.Schedule.Kind, "what the rate does after the warm-up: %s")
	f.IntVar(&o.Schedule.WarmUp, "warm-up", o.Schedule.WarmUp, "steps until the learning rate peaks")
	f.IntVar(&o.Schedule.Decay, "decay", o.Schedule.Decay, "step at which it has fallen to the floor; of a staircase, steps from one stair to the next (0: a cosine stays at its peak)")
	f.Float64Var(&o.Schedule.Floor, "floor", o.Schedule.Floor, "part of the learning rate that is left after decay")
	f.IntVar(&o.Plateau.Checks, "plateau", o.Plateau.Checks, "checks without improvement after which the rate is lowered, again and again (0: never)")
	f.Float64Var(&o.Plateau.Factor, "plateau-factor", o.Plateau.Factor, "what --plateau multiplies it by (0: 0.1)")

	f = group("Early stopping")
	f.IntVar(&t.CheckEvery, "check-every", t.CheckEvery, "steps from one check to the next, which patience counts; 0 for the end of every epoch")
	f.Float64Var(&stopping.MinDelta, "min-delta", stopping.MinDelta, "an improvement is more than this")
	f.BoolVar(&stopping.RelativeDelta, "relative-delta", stopping.RelativeDelta, "--min-delta is a part of the best value")
	choose(f, "monitor", &stopping.Monitor, "what to look at: %s (default val_loss)")
	f.StringVar(&stopping.Mode, "mode", stopping.Mode, "what is better: min or max (default min, of a loss)")
	f.BoolVar(&stopping.KeepLast, "keep-last", stopping.KeepLast, "keep the last check's weights, not the best one's")
	f.IntVar(&stopping.FirstEpoch, "first-epoch", stopping.FirstEpoch, "first check that counts, from 0")
	f.Var(optional{&stopping.Baseline}, "baseline", "patience runs out without an improvement on this value")
	f.Var(optional{&stopping.StoppingThreshold}, "stopping-threshold", "stop at a value as good as this")
	f.Var(optional{&stopping.DivergenceThreshold}, "divergence-threshold", "stop at a value worse than this")
	f.BoolVar(&stopping.AllowNonFinite, "allow-non-finite", stopping.AllowNonFinite, "go on where the validation loss is NaN or infinite")
	return groups
}

// choose declares a flag that sets a value by the table of the flag's name: by a name and, after commas, fields, as in
// muon,momentum=0.95. The usage has %s for the names.
func choose[T any](f *pflag.FlagSet, flag string, to *T, usage string) {
	table := kinds.Choices[flag]
	var names []string
	for name := range table.All {
		names = append(names, name)
	}
	last := len(names) - 1
	f.Var(choice[T]{to, table}, flag, fmt.Sprintf(usage, strings.Join(names[:last], ", ")+" or "+names[last]))
}

type choice[T any] struct {
	to    *T
	table kinds.Choice
}

func (c choice[T]) Type() string { return "name" }

func (c choice[T]) String() string {
	if c.to == nil { // as pflag asks for
		return ""
	}
	return c.table.Text(*c.to)
}

func (c choice[T]) Set(text string) error {
	v, err := c.table.Parse(text)
	if err == nil {
		*c.to = v.(T)
	}
	return err
}

// optional is a flag of a number that there may be.
type optional struct{ to **float64 }

func (o optional) Type() string { return "float64" }

func (o optional) String() string {
	if o.to == nil || *o.to == nil {
		return ""
	}
	return strconv.FormatFloat(**o.to, 'g', -1, 64)
}

func (o optional) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	*o.to = &x
	return err
}

// fromFlags returns the settings of a call: the defaults of its task, changed by its preset and then by the flags that
// it gives.
func (s *settings) fromFlags(given *pflag.FlagSet) (task.Config, error) {
	c, err := defaults(s.name, s.maxLen)
	if err != nil {
		return task.Config{}, wrongFlag(err)
	}
	if given.Changed("preset") {
		if err := c.Apply(s.preset); err != nil {
			return task.Config{}, wrongFlag(err)
		}
	}
	if given.Changed("from") {
		if err := c.startFrom(s.from, given); err != nil {
			return task.Config{}, err
		}
	}
	if given.Changed("monitor") && s.Training.Stopping.Monitor != c.Training.Stopping.Monitor {
		c.Training.Stopping.Mode = "" // a preset's is of another value
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, g := range c.flags() {
		f.AddFlagSet(g.FlagSet)
	}
	given.Visit(func(flag *pflag.Flag) {
		to := f.Lookup(flag.Name)
		if to == nil {
			return
		}
		if many, ok := flag.Value.(pflag.SliceValue); ok {
			err = errors.Join(err, to.Value.(pflag.SliceValue).Replace(many.GetSlice()))
		} else {
			err = errors.Join(err, f.Set(flag.Name, flag.Value.String()))
		}
	})
	if given.Changed("units") {
		c.Data.SourceUnits = cmp.Or(c.Data.SourceUnits, tokenizer.Units(c.units))
		if c.Kind().AnswerUnits {
			c.Data.TargetUnits = cmp.Or(c.Data.TargetUnits, tokenizer.Units(c.units))
		}
	}
	err = errors.Join(err, named("data", c.data, &c.Data.File, &c.Data.TargetFile),
		named("validation-data", c.validationData, &c.Data.ValidationFile, &c.Data.ValidationTargetFile))
	if given.Changed("dropout") { // else a preset has its own
		for _, rate := range []*float64{&c.Model.Dropout, &c.Model.Block.Dropout, &c.Model.Block.Attention.Dropout, &c.Model.Block.FeedForward.Dropout} {
			*rate = c.dropout
		}
	}
	return c.Config, err
}

// startFrom has training begin with the weights of another run.
func (s *settings) startFrom(dir string, given *pflag.FlagSet) error {
	for _, flag := range []string{"units", "source-units", "target-units", "vocab-size", "preset"} {
		if given.Changed(flag) {
			return usagef("--from takes the symbols and the shape of the model from the other run: give no --%s", flag)
		}
	}
	if dir == "" {
		return errNoFolder
	}
	err := s.StartFrom(dir)
	s.dropout = s.Model.Dropout
	return err
}

// named sets the names of a file, or of two parallel ones, that a flag gives, if it does.
func named(flag string, names []string, file, other *string) error {
	if len(names) > 2 || slices.Contains(names, "") {
		return usagef("--%s names a file, and a second one where sources and answers are lines of two, got %q", flag, names)
	}
	for i, name := range names {
		*[]*string{file, other}[i] = name
	}
	return nil
}

// flagOf names settings whose flag isn't the last part of their path.
var flagOf = map[string]string{
	"data.file":                         "--data",
	"data.validation_file":              "--validation-data",
	"data.target_file":                  "a second --data",
	"training.optimizer.schedule.kind":  "--schedule",
	"training.optimizer.plateau.checks": "--plateau",
	"training.optimizer.plateau.factor": "--plateau-factor",
}

// wrongFlag returns an error that names flags where a setting that they gave can't be.
func wrongFlag(err error) error {
	var wrong *task.ConfigError
	if !errors.As(err, &wrong) {
		return err
	}
	return usagef("%s", wrong.Message(func(path string) string {
		return cmp.Or(flagOf[path], "--"+strings.ReplaceAll(path[strings.LastIndex(path, ".")+1:], "_", "-"))
	}))
}

// wrongInput returns an error that the call is wrong where an input is.
func wrongInput(err error) error {
	var wrong *task.InputError
	if errors.As(err, &wrong) {
		return &usageError{err}
	}
	return err
}

// aboutPresets lists the presets, a line each, with the kind of task that each is for.
func aboutPresets() string {
	var s strings.Builder
	for _, p := range task.Presets() {
		fmt.Fprintf(&s, "  %-11s %s: %s\n", p.Name, p.Kind, p.About)
	}
	return s.String()
}

// aboutTasks lists the tasks, a line each.
func aboutTasks() string {
	var s strings.Builder
	for _, name := range task.Names() {
		if c, err := task.Named(name, 0); err == nil {
			fmt.Fprintf(&s, "  %-11s %s\n", name, c.Task.About)
		}
	}
	return s.String()
}
