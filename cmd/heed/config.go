package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
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

	f := group("Common flags")
	f.StringVar(&s.name, "task", s.name, "what to learn: "+strings.Join(task.Names(), ", "))
	f.StringArrayVar(&s.data, "data", s.data, "the file to learn, for the tasks pairs, labels, tags and text; given twice, for pairs and tags, the lines of sources and those of answers")
	f.StringVar(&s.preset, "preset", s.preset, "settings of this name, which other flags change; see above")
	f.StringVar(&s.from, "from", s.from, "a run folder whose weights to begin with, in a model of its shape")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "decides initial weights, data order and dropout")
	f.IntVar(&t.Epochs, "epochs", t.Epochs, "epochs at most; 0 for no limit")
	f.IntVar(&t.Patience, "patience", t.Patience, "checks without improvement to stop after; 0 for never")

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
	f.Float64Var(&s.dropout, "dropout", s.dropout, "probability of dropping, in training")

	f = group("Training")
	f.IntVar(&t.Batch, "batch", t.Batch, "sequences in a batch")
	f.IntVar(&t.MicroBatches, "micro-batches", t.MicroBatches, "parts that a batch is taken in, side by side or one after the other, which bounds memory; 0 for 4, or 2 or 1 if 4 doesn't divide it")
	f.IntVar(&t.Steps, "steps", t.Steps, "batches in an epoch; of a file's rows, an epoch is a pass over them")
	f.Float64Var(&t.LabelSmoothing, "label-smoothing", t.LabelSmoothing, "share of every target that is spread over all, in training")
	f.Float64Var(&t.Average, "average", t.Average, "decay, as 0.999, of an average of the weights, to be validated and saved in their place; 0 for none")

	f = group("Solver")
	f.StringVar(&t.Solver, "solver", t.Solver, "what steps the weights: adamw, adam, sgd, lion or muon (default adamw)")
	f.Float64Var(&t.Rate, "learning-rate", t.Rate, "peak learning rate")
	f.Float64Var(&t.WeightDecay, "weight-decay", t.WeightDecay, "weight decay, of matrices alone")
	f.Float64Var(&t.Clip, "clip", t.Clip, "largest norm of the gradient; 0 for any")
	f.Float64Var(&t.ClipValue, "clip-value", t.ClipValue, "clip each number of the gradient to ±this value, after --clip has scaled it; 0 for any")
	f.Float64Var(&t.Beta1, "beta1", t.Beta1, "of adamw, adam and lion: decay of the gradient's mean; 0 for 0.9")
	f.Float64Var(&t.Beta2, "beta2", t.Beta2, "of adamw and adam: decay of its square's mean; of lion, of the gradient's; 0 for 0.98, of lion 0.99")
	f.Float64Var(&t.Momentum, "momentum", t.Momentum, "of --solver sgd, as 0.9")
	f.BoolVar(&t.Nesterov, "nesterov", t.Nesterov, "--momentum is Nesterov's")
	f.Float64Var(&t.MuonRate, "muon-rate", t.MuonRate, "of --solver muon: peak learning rate of the blocks' matrices, where AdamW steps the rest; 0 for 0.02")

	f = group("Learning rate over time")
	f.StringVar(&t.Schedule, "schedule", t.Schedule, "cosine, constant, linear, restarts, staircase, inverse-square-root or one-cycle (default cosine)")
	f.IntVar(&t.WarmUp, "warm-up", t.WarmUp, "steps until the learning rate peaks")
	f.IntVar(&t.Decay, "decay", t.Decay, "step at which it has fallen to the floor; of a staircase, steps from one stair to the next; 0 keeps a cosine at its peak")
	f.Float64Var(&t.Floor, "floor", t.Floor, "part of the learning rate that is left after decay")
	f.IntVar(&t.Plateau, "plateau", t.Plateau, "checks without improvement after which it is lowered, and again; 0 for never")
	f.Float64Var(&t.PlateauFactor, "plateau-factor", t.PlateauFactor, "what --plateau multiplies it by; 0 for 0.1")

	f = group("Early stopping")
	f.IntVar(&t.CheckEvery, "check-every", t.CheckEvery, "steps from one check to the next, which patience counts; 0 for the end of every epoch")
	f.Float64Var(&t.MinDelta, "min-delta", t.MinDelta, "an improvement is more than this")
	f.BoolVar(&t.RelativeDelta, "relative-delta", t.RelativeDelta, "--min-delta is a part of the best value")
	f.StringVar(&t.Monitor, "monitor", t.Monitor, "what to look at: val_loss, val_accuracy, train_loss or train_accuracy (default val_loss)")
	f.StringVar(&t.Mode, "mode", t.Mode, "what is better: min or max (default min, of a loss)")
	f.BoolVar(&t.KeepLast, "keep-last", t.KeepLast, "keep the last check's weights, not the best one's")
	f.IntVar(&t.FirstEpoch, "first-epoch", t.FirstEpoch, "first check that counts, from 0")
	f.Var(optional{&t.Baseline}, "baseline", "patience runs out without an improvement on this value")
	f.Var(optional{&t.StoppingThreshold}, "stopping-threshold", "stop at a value as good as this")
	f.Var(optional{&t.DivergenceThreshold}, "divergence-threshold", "stop at a value worse than this")
	f.BoolVar(&t.AllowNonFinite, "allow-non-finite", t.AllowNonFinite, "go on where the validation loss is NaN or infinite")
	return groups
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
	t := &c.Training // a preset's, whose numbers may be of no use to another solver or monitor
	if given.Changed("solver") && s.Training.Solver != "muon" {
		t.MuonRate = 0
	}
	if given.Changed("solver") && s.Training.Solver == "sgd" {
		t.Beta1, t.Beta2 = 0, 0
	}
	if given.Changed("monitor") && s.Training.Monitor != t.Monitor {
		t.Mode = ""
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
		if c.Task.Kind != data.KindLabels && c.Task.Kind != data.KindText {
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

// wrongFlag returns an error that names flags where a setting that they gave can't be.
func wrongFlag(err error) error {
	var wrong *task.ConfigError
	if !errors.As(err, &wrong) {
		return err
	}
	return usagef("%s", wrong.Message(func(setting string) string {
		switch setting {
		case "data.file":
			return "--data"
		case "data.validation_file":
			return "--validation-data"
		case "data.target_file":
			return "a second --data"
		}
		return "--" + strings.ReplaceAll(setting[strings.LastIndex(setting, ".")+1:], "_", "-")
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
