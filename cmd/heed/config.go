package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/textfile"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// settings hold the values of the flags of heed train.
type settings struct {
	task.Config
	name    string
	preset  string
	from    string
	maxLen  int
	dropout float64

	data, validationData []string // one file each, or two parallel files
	units                string
}

// defaults returns the default settings of a task.
func defaults(name string, maxLen int) (settings, error) {
	c, err := task.Named(name, maxLen)
	return settings{Config: c, name: name, maxLen: maxLen, dropout: c.Model.Dropout}, err
}

// A flagGroup holds the flags under one title in the help.
type flagGroup struct {
	title string
	*pflag.FlagSet
}

// flags declares a flag for every setting. The values in s are the defaults. The groups are in the order of the help,
// with the common flags first.
func (s *settings) flags() []flagGroup {
	var groups []flagGroup
	group := func(title string) *pflag.FlagSet {
		f := pflag.NewFlagSet(title, pflag.ContinueOnError)
		f.SortFlags = false
		groups = append(groups, flagGroup{title, f})
		return f
	}
	s.modelFlags(group)
	s.trainingFlags(group)
	return groups
}

// flagSet returns the flags of all groups in one set.
func (s *settings) flagSet() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, g := range s.flags() {
		f.AddFlagSet(g.FlagSet)
	}
	return f
}

// modelFlags declares the common flags, and the flags for the data and the model.
func (s *settings) modelFlags(group func(title string) *pflag.FlagSet) {
	m, b, t := &s.Model, &s.Model.Block, &s.Training

	f := group("Common flags")
	f.StringVar(&s.name, "task", s.name, "task to learn: "+strings.Join(task.Names(), ", "))
	f.StringArrayVar(&s.data, "data", s.data, "file of rows to learn; given twice: a file with one source per line, and one with one answer per line; for text: a file or folder; repeat it for more; for text with --from: also conversations in a .jsonl file")
	f.StringVar(&s.preset, "preset", s.preset, "settings to start from, see above; other flags override them")
	f.StringVar(&s.from, "from", s.from, "folder of a run or of a published model, which gives the initial weights and the shape of the model")
	f.StringVar(&s.From.Tune, "tune", s.From.Tune, "what to train of the model in --from: all, head, last:N (the last N blocks and the head) or lora, a low-rank adapter (default all)")
	f.StringVar(&s.From.Base, "base", s.From.Base, "folder of the model that --from or --resume began from, if that folder lacks weights (default: as the folder says)")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of the initial weights, the data order and dropout")
	f.IntVar(&t.MaxEpochs, "max-epochs", t.MaxEpochs, "maximum number of epochs (0: no limit)")
	f.IntVar(&t.Stopping.Patience, "patience", t.Stopping.Patience, "checks without improvement after which training stops (0: no early stopping; default for rows: the checks of 5 epochs)")

	f = group("Data file")
	f.StringArrayVar(&s.validationData, "validation-data", s.validationData, "file of rows to validate on; --validation limits their number (default: rows held out of --data)")
	f.StringSliceVar(&s.Data.Columns, "columns", s.Data.Columns, "columns of sources and answers, by name or number, such as text,label or 3,1; for pairs of texts: three columns, such as question,answer,label (default: see above); for text: key of the text in .jsonl files (default: text)")
	f.StringVar(&s.Data.Header, "header", s.Data.Header, "yes if the first row is a header, or no if it is a row like the others (default: see above)")
	f.StringVar(&s.Data.Quotes, "quotes", s.Data.Quotes, quotes)
	f.BoolVar(&s.Data.SkipBad, "skip-bad", s.Data.SkipBad, "leave out bad rows whatever their share is (default: an error if more than one row in a hundred is bad)")
	f.BoolVar(&s.Data.MergeLabels, "merge-labels", s.Data.MergeLabels, "for classification: make labels that differ only in how they are written (case, spaces around, invisible characters, 1 and 1.0) one label, with the most frequent spelling")
	f.StringVar(&s.Task.Separator, "label-separator", s.Task.Separator, "for classification: what stands between the labels of a row, such as | or a comma, so that rows have any number of labels (default: one label per row, or | with --task multilabel; arrays in .jsonl files need no separator)")
	f.StringVar(&s.Data.Encoding, "encoding", s.Data.Encoding, encodings+" (default: UTF-8)")
	f.StringVar(&s.units, "units", s.units, "units of sources and answers: characters, tokens between spaces, words (only of sources), or bpe, byte pairs with one vocabulary for both (default: guessed from the file; for text: characters)")
	f.StringVar((*string)(&s.Data.SourceUnits), "source-units", string(s.Data.SourceUnits), "units of sources (default: --units)")
	f.StringVar((*string)(&s.Data.TargetUnits), "target-units", string(s.Data.TargetUnits), "units of answers (default: --units)")
	f.IntVar(&s.Data.VocabSize, "vocab-size", s.Data.VocabSize, "maximum number of ids with --units bpe (0: chosen from the amount of text)")
	f.IntVar(&s.Task.MaxAnswer, "max-answer", s.Task.MaxAnswer, "maximum length of an answer, for seq2seq (0: chosen from the file)")
	f.StringVar(&s.Data.Pack, "pack", s.Data.Pack, "for text: yes if several documents or conversations share a row of --max-len and don't see each other, or no (default: yes if they are shorter than half a row on average)")
	f.Lookup("pack").NoOptDefVal = "yes"
	f.StringVar(&t.ClassWeights, "class-weights", t.ClassWeights, "balanced: rare labels or tags weigh more in the loss, so that all count the same (default: no weights)")

	f = group("Adapter, with --tune lora")
	f.IntVar(&s.From.LowRank.Rank, "rank", s.From.LowRank.Rank, "rank of the products that are added to weights (default 8)")
	f.Float64Var(&s.From.LowRank.Alpha, "alpha", s.From.LowRank.Alpha, "scale of the products, which are multiplied by alpha/rank (default 16)")
	f.BoolVar(&s.From.LowRank.RootScale, "root-scale", s.From.LowRank.RootScale, "multiply the products by alpha/√rank instead")
	f.Float64Var(&s.From.LowRank.Dropout, "adapter-dropout", s.From.LowRank.Dropout, "dropout probability of the products' inputs, in training")
	f.StringSliceVar(&s.From.LowRank.Targets, "targets", s.From.LowRank.Targets, "layers to adapt, by the ends of their names, such as query,value,feedforward.up (default: all matrices of the blocks but the experts')")

	f = group("Data and model")
	f.IntVar(&s.Data.Validation, "validation", s.Data.Validation, "number of held-out sequences to validate on (0: none)")
	f.IntVar(&s.maxLen, "max-len", s.maxLen, "maximum length of a source; for text: length of the context (0: the task's own, or chosen from the file)")
	f.IntVar(&m.Dim, "dim", m.Dim, "model width")
	f.IntVar(&b.Attention.Heads, "heads", b.Attention.Heads, "attention heads per layer")
	f.IntVar(&m.Layers, "layers", m.Layers, "number of blocks; in models with a decoder: number of encoder blocks")
	f.IntVar(&s.DecoderLayers, "decoder-layers", s.DecoderLayers, "number of decoder blocks, for models with an encoder and a decoder (0: same as --layers)")
	f.IntVar(&b.FeedForward.Hidden, "hidden", b.FeedForward.Hidden, "width of the feed-forward layers (0: 4 times --dim)")
	expertsFlag(f, &b.FeedForward.Experts)
	choose(f, "positions", &m.Positions, "position encoding: %s, with fields such as rotary,base=10000 (default learned; for seq2seq and rows of a file: rotary)")
	choose(f, "norm", &b.Norm, "normalisation: %s, with fields such as rms,eps=1e-5")
	choose(f, "activation", &b.FeedForward.Activation, "activation function of the feed-forward layers: %s")
	f.BoolVar(&s.Mix, "mix", s.Mix, "mix the network's answers with those of a linear model of words and characters, for classification, regression and tagging of rows, also with several labels (default for these: true)")
	f.Float64Var(&s.dropout, "dropout", s.dropout, "dropout probability, in training")
}

// trainingFlags declares the flags for training.
func (s *settings) trainingFlags(group func(title string) *pflag.FlagSet) {
	t, o, stopping := &s.Training, &s.Training.Optimizer, &s.Training.Stopping

	f := group("Training")
	f.IntVar(&t.BatchSize, "batch-size", t.BatchSize, "sequences per batch; with --pack, rows of several sequences")
	f.IntVar(&t.MicroBatches, "micro-batches", t.MicroBatches, "micro-batches per batch; more use less memory (0: 4, or the largest of 2 and 1 that divides the batch)")
	choose(f, "precision", &t.Precision, "precision of the factors in linear layers' products, in training: %s; bfloat16 saves time only on processors with AMX; answers always use float32")
	f.IntVar(&t.StepsPerEpoch, "steps-per-epoch", t.StepsPerEpoch, "batches per epoch (0: one pass over the rows of the file)")
	choose(f, "loss", &t.Loss, "loss: %s; squared (default) and huber are for regression, contrastive and cosine for embed (default: as the columns say)")
	f.Float64Var(&t.Temperature, "temperature", t.Temperature, "for embed: number that divides the cosines in the contrastive loss; smaller values weigh the nearest negatives more (0: 0.05)")
	f.Float64Var(&t.LabelSmoothing, "label-smoothing", t.LabelSmoothing, "share of the target probability that is spread over all classes, in training")
	f.Float64Var(&o.Average, "average", o.Average, "decay of a moving average of the weights, such as 0.999, which averages about the last 1,000 steps; the average is validated and saved instead of the weights (0: no average)")

	f = group("Solver")
	choose(f, "solver", &o.Solver, "rule that updates the weights: %s, with fields such as sgd,momentum=0.9")
	f.Float64Var(&o.LearningRate, "learning-rate", o.LearningRate, "peak learning rate")
	f.Float64Var(&o.WeightDecay, "weight-decay", o.WeightDecay, "weight decay, for matrices only")
	f.Float64Var(&o.ClipNorm, "clip-norm", o.ClipNorm, "scale larger gradients down to this norm (0: off)")
	f.Float64Var(&o.ClipValue, "clip-value", o.ClipValue, "clip each gradient element to ±this value, after --clip-norm (0: off)")

	f = group("Learning rate over time")
	choose(f, "schedule", &o.Schedule.Kind, "learning rate after the warm-up: %s")
	f.IntVar(&o.Schedule.WarmUp, "warm-up", o.Schedule.WarmUp, "steps until the learning rate reaches its peak")
	f.IntVar(&o.Schedule.Decay, "decay", o.Schedule.Decay, "step at which the learning rate reaches --floor; for staircase: steps per stair (0: no decay, only for cosine)")
	f.Float64Var(&o.Schedule.Floor, "floor", o.Schedule.Floor, "learning rate after --decay, as a fraction of the peak")
	f.IntVar(&o.Plateau.Checks, "plateau", o.Plateau.Checks, "checks without improvement after which the learning rate is lowered, repeatedly (0: never)")
	f.Float64Var(&o.Plateau.Factor, "plateau-factor", o.Plateau.Factor, "factor by which --plateau multiplies the learning rate (0: 0.1)")

	f = group("Early stopping")
	f.IntVar(&t.CheckEvery, "check-every", t.CheckEvery, "steps between checks; --patience counts checks (0: one check at the end of each epoch; default for rows: 0, or a tenth of an epoch with more than 2,000 steps)")
	f.Float64Var(&stopping.MinDelta, "min-delta", stopping.MinDelta, "change that an improvement must exceed (default for rows: 0.0001 if a loss is monitored)")
	f.BoolVar(&stopping.RelativeDelta, "relative-delta", stopping.RelativeDelta, "read --min-delta as a fraction of the best value")
	choose(f, "monitor", &stopping.Monitor, "value to monitor: %s; for one label of a file also val_precision[LABEL], val_recall[LABEL], val_f1[LABEL] or val_average_precision[LABEL] (default val_loss; for labels of a file: val_accuracy, val_macro_f1 if some labels are rare, or val_average_precision if rows have several; without validation: train_loss)")
	f.StringVar(&stopping.Mode, "mode", stopping.Mode, "direction in which the monitored value improves: min or max (default min for a loss or an error, otherwise max)")
	f.BoolVar(&stopping.KeepLast, "keep-last", stopping.KeepLast, "keep the weights of the last check, not of the best")
	f.IntVar(&stopping.FirstCheck, "first-epoch", stopping.FirstCheck, "number of the first check that counts, from 0; earlier checks never count as improvements")
	optional(f, "baseline", &stopping.Baseline, "value that the monitored value must improve on before --patience runs out")
	optional(f, "stopping-threshold", &stopping.StoppingThreshold, "stop when the monitored value is as good as this or better")
	optional(f, "divergence-threshold", &stopping.DivergenceThreshold, "stop when the monitored value is worse than this")
	f.BoolVar(&stopping.AllowNonFinite, "allow-non-finite", stopping.AllowNonFinite, "continue if the validation loss is NaN or infinite")
}

// quotes describes the values of --quotes.
const quotes = "no if the quotes around fields between tabs are part of the fields (default: they aren't if all fields of the first row, or nearly all of a column, have them)"

// encodings describes the values of --encoding.
const encodings = "encoding of files without a byte-order mark: a WHATWG name such as windows-1252, shift_jis, gb18030, koi8-r or utf-16le"

// knownEncoding returns an error if a value of --encoding is unknown.
func knownEncoding(name string) error {
	if _, err := textfile.Named(name); err != nil {
		return usagef("--encoding: %w", err)
	}
	return nil
}

// fromFlags returns the configuration of a call: the defaults of the task, changed by --preset, by --from and then by
// the other flags that were given.
func (s *settings) fromFlags(given *pflag.FlagSet) (task.Config, error) {
	c, err := defaults(s.name, s.maxLen)
	if err != nil {
		return task.Config{}, wrongFlag(err, given)
	}
	if given.Changed("preset") {
		if err := c.Apply(s.preset); err != nil {
			return task.Config{}, wrongFlag(err, given)
		}
	}
	if given.Changed("from") {
		if err := c.startFrom(s.from, given); err != nil {
			return task.Config{}, wrongFlag(err, given)
		}
	}
	if given.Changed("monitor") && s.Training.Stopping.Monitor != c.Training.Stopping.Monitor {
		c.Training.Stopping.Mode = "" // the preset's Mode belongs to its own Monitor
	}
	f := c.flagSet()
	given.Visit(func(flag *pflag.Flag) {
		setting := f.Lookup(flag.Name)
		if setting == nil {
			return
		}
		if values, ok := flag.Value.(pflag.SliceValue); ok {
			err = errors.Join(err, setting.Value.(pflag.SliceValue).Replace(values.GetSlice()))
		} else {
			err = errors.Join(err, f.Set(flag.Name, flag.Value.String()))
		}
	})
	if given.Changed("units") {
		c.Data.SourceUnits = cmp.Or(c.Data.SourceUnits, tokenizer.Units(c.units))
		if strings.Contains(c.Describe().Units, c.units) {
			c.Data.TargetUnits = cmp.Or(c.Data.TargetUnits, tokenizer.Units(c.units))
		}
	}
	err = errors.Join(err, setFiles(&c.Config, c.data, c.validationData))
	if c.Describe().Rows != nil && given.Changed("columns") && !slices.ContainsFunc(c.data, hasKeys) {
		err = errors.Join(err, withoutKeys(c.data))
	}
	if given.Changed("dropout") { // otherwise the rates of a preset stay
		for _, rate := range []*float64{&c.Model.Dropout, &c.Model.Block.Dropout, &c.Model.Block.Attention.Dropout, &c.Model.Block.FeedForward.Dropout} {
			*rate = c.dropout
		}
	}
	if c.Solved() {
		err = errors.Join(err, c.withoutEpochs(given))
	}
	return c.Config, err
}

// withoutEpochs returns an error if flags are given that have no effect on a head that is solved. Of the flags of
// training, only --monitor has one: a score of its label.
func (s *settings) withoutEpochs(given *pflag.FlagSet) error {
	training := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.trainingFlags(func(string) *pflag.FlagSet { return training })
	var useless []string
	given.Visit(func(f *pflag.Flag) {
		others := []string{"max-epochs", "patience", "dropout", "find-rate"}
		if f.Name != "monitor" && (training.Lookup(f.Name) != nil || slices.Contains(others, f.Name)) {
			useless = append(useless, "--"+f.Name)
		}
	})
	if useless == nil {
		return nil
	}
	return usagef("--tune head is solved without epochs: leave out %s, or choose another --tune", strings.Join(useless, ", "))
}

// startFrom makes training start with the weights of the run in dir.
func (s *settings) startFrom(dir string, given *pflag.FlagSet) error {
	for _, flag := range []string{"units", "source-units", "target-units", "vocab-size", "preset"} {
		if given.Changed(flag) {
			return usagef("--from uses the symbols and the shape of the other run's model: leave out --%s", flag)
		}
	}
	if dir == "" {
		return errNoFolder
	}
	if given.Changed("tune") { // defaults depend on it
		s.From.Tune = given.Lookup("tune").Value.String()
	}
	s.From.Base = baseOf(given)
	maxLen := s.Task.MaxLen
	err := s.StartFrom(dir)
	if given.Changed("max-len") { // fine-tuning has another default
		s.Task.MaxLen = maxLen
	}
	s.dropout = s.Model.Dropout
	return err
}

// hasKeys reports whether a text may have keys: whether it is JSONL or a folder.
func hasKeys(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || textfile.IsJSONL(path)
}

// withoutKeys returns the error that --columns can't be given for texts without keys.
func withoutKeys(files []string) error {
	return usagef("--columns is for rows, and for texts in files that end in .jsonl, got --data %q", files)
}

// setFiles stores the values of --data and --validation-data. A flag that wasn't given changes nothing.
func setFiles(c *task.Config, files, validation []string) error {
	d := &c.Data
	if len(files) > 0 && c.Describe().Rows != nil {
		if slices.Contains(files, "") {
			return usagef("--data must be the name of a file or a folder, got none")
		}
		d.File, d.MoreFiles = files[0], slices.Clone(files[1:])
		files = nil
	}
	for _, f := range []struct {
		flag   string
		names  []string
		stored [2]*string
	}{
		{"data", files, [2]*string{&d.File, &d.TargetFile}},
		{"validation-data", validation, [2]*string{&d.ValidationFile, &d.ValidationTargetFile}},
	} {
		if slices.Contains(f.names, "") {
			return usagef("--%s must be a file's name, got none", f.flag)
		}
		if len(f.names) > len(f.stored) {
			return usagef("--%s must be one file of rows, or two files, one of sources and one of answers, got %d: %q", f.flag, len(f.names), f.names)
		}
		for i, name := range f.names {
			*f.stored[i] = name
		}
	}
	return nil
}

// flagOf maps the paths of settings to their flags. It leaves out paths whose last part is the name of the flag.
var flagOf = map[string]string{
	"data.file":                               "--data",
	"data.validation_file":                    "--validation-data",
	"data.target_file":                        "a second --data",
	"data.validation_target_file":             "a second --validation-data",
	"task.separator":                          "--label-separator",
	"model.positions.max_len":                 "max_len in --positions",
	"model.block.feed_forward.experts.shared": "shared in --experts",
	"from.low_rank.dropout":                   "--adapter-dropout",
	"training.optimizer.schedule.kind":        "--schedule",
	"training.optimizer.plateau.checks":       "--plateau",
	"training.optimizer.plateau.factor":       "--plateau-factor",
}

// wrongFlag turns a *model.ConfigError into a usageError that names flags instead of settings. It returns other errors
// unchanged. If given isn't nil, it decides between flags that set the same value, and a command that reads one column
// has the flag --column.
func wrongFlag(err error, given *pflag.FlagSet) error {
	var wrong *model.ConfigError
	if !errors.As(err, &wrong) {
		return err
	}
	return usagef("%s", wrong.Message(func(path string) string {
		if flag, ok := strings.CutSuffix(path, "_units"); ok && given != nil && given.Changed("units") && !given.Changed(strings.TrimPrefix(flag, "data.")+"-units") {
			return "--units"
		}
		if path == "data.columns" && given != nil && given.Lookup("column") != nil {
			return "--column"
		}
		return cmp.Or(flagOf[path], "--"+strings.ReplaceAll(path[strings.LastIndex(path, ".")+1:], "_", "-"))
	}))
}

// wrongInput turns a *model.InputError into a usageError. It returns other errors unchanged.
func wrongInput(err error) error {
	var wrong *model.InputError
	if errors.As(err, &wrong) {
		return &usageError{err}
	}
	return err
}

// aboutPresets lists the presets, one per line, each with its kind of task.
func aboutPresets() string {
	var s strings.Builder
	for _, p := range task.Presets() {
		fmt.Fprintf(&s, "  %-14s %s: %s\n", p.Name, p.Kind, p.About)
	}
	return s.String()
}

// aboutTasks lists the tasks, one per line.
func aboutTasks() string {
	var s strings.Builder
	for _, name := range task.Names() {
		if c, err := task.Named(name, 0); err == nil {
			fmt.Fprintf(&s, "  %-14s %s\n", name, c.Task.About)
		}
	}
	return s.String()
}

// baseOf returns the value of --base, which openModel, openTask and readConfig use.
func baseOf(flags *pflag.FlagSet) string { return flags.Lookup("base").Value.String() }
