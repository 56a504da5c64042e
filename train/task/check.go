package task

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
)

// A setting is where config.json has it, such as model.dim.
type setting string

// A ConfigError is a setting that can't be.
type ConfigError struct {
	format string
	args   []any
}

func configErrorf(format string, args ...any) *ConfigError { return &ConfigError{format, args} }

// asConfigError returns what a constructor says of a configuration as a *ConfigError.
func asConfigError(err error) *ConfigError {
	var already *ConfigError
	if errors.As(err, &already) {
		return already
	}
	return configErrorf("%w", err)
}

// Error names settings as config.json has them, such as model.dim.
func (e *ConfigError) Error() string { return e.Message(nil) }

// Message returns the error's text with settings as name has them, which is given a setting such as model.dim; nil
// leaves them.
func (e *ConfigError) Message(name func(setting string) string) string {
	args := slices.Clone(e.args)
	for i, arg := range args {
		if s, ok := arg.(setting); ok && name != nil {
			args[i] = name(string(s))
		}
	}
	return fmt.Errorf(e.format, args...).Error()
}

// fromRows reports whether the rows of a file are learned.
func (c *Config) fromRows() bool { return c.Data.File != "" && c.Task.Kind != data.KindText }

// judgesSymbols reports whether each symbol of an answer is judged by itself, not the answer as a whole.
func (c *Config) judgesSymbols() bool {
	return c.Task.Kind == data.KindText || c.Task.Kind == data.KindTags && c.fromRows()
}

// checkData checks what is learned from, but for its numbers.
func (c *Config) checkData() error {
	d := &c.Data
	draws := c.Task.Sample != nil || c.Task.Answer != nil || c.Task.Spell != nil || c.Task.Read != nil
	fileTask := c.Task.Kind == data.KindText || slices.ContainsFunc(fileTasks, func(r data.Rule) bool { return r.Name == c.Task.Name })
	switch {
	case d.File == "" && fileTask:
		return configErrorf("%s %s must come with %s, the file to learn", setting("task"), c.Task.Name, setting("data.file"))
	case d.File != "" && draws:
		return configErrorf("%s %s draws its own examples, and can't come with %s: for a file, the task is pairs, labels, tags or text", setting("task"), c.Task.Name, setting("data.file"))
	case c.Task.Kind == data.KindText && d.SourceUnits == tokenizer.Tokens:
		return configErrorf("%s of text must be %s or %s, got %q", setting("data.units"), tokenizer.Characters, tokenizer.BPE, d.SourceUnits)
	case !c.fromRows() && (d.TargetFile != "" || d.ValidationFile != "" || d.ValidationTargetFile != "" || d.Columns != nil || d.TargetUnits != "") ||
		d.File == "" && (d.SourceUnits != "" || d.Tokenizers != nil):
		return configErrorf("%s %s has no rows: only pairs, labels and tags can have %s, %s, %s and %s", setting("task"), c.Task.Name,
			setting("data.validation_file"), setting("data.columns"), setting("data.source_units"), setting("data.target_units"))
	case d.TargetFile != "" && d.Columns != nil:
		return configErrorf("%s are of one file, and %s is a second one", setting("data.columns"), setting("data.target_file"))
	case d.ValidationFile == "" && d.ValidationTargetFile != "" || d.ValidationFile != "" && (d.TargetFile == "") != (d.ValidationTargetFile == ""):
		return configErrorf("%s needs as many files as %s", setting("data.validation_file"), setting("data.file"))
	case d.ValidationFile != "" && d.Validation == 0:
		return configErrorf("%s needs a %s above 0", setting("data.validation_file"), setting("data.validation"))
	case d.Columns != nil && len(d.Columns) != 2:
		return configErrorf("%s must be two, that of sources and that of answers, got %q", setting("data.columns"), d.Columns)
	case c.Task.Kind == data.KindLabels && d.TargetUnits != "":
		return configErrorf("%s labels has no %s: a label is a whole", setting("task"), setting("data.target_units"))
	case c.Training.ClassWeights != "" && c.Training.ClassWeights != "balanced":
		return configErrorf("%s must be balanced, or empty for none, got %q", setting("training.class_weights"), c.Training.ClassWeights)
	case c.Training.ClassWeights != "" && (!c.fromRows() || c.Task.Kind == data.KindPairs):
		return configErrorf("%s are for the tasks labels and tags, got them for %s", setting("training.class_weights"), c.Task.Name)
	}
	for _, u := range []struct {
		name setting
		got  tokenizer.Units
	}{{"data.source_units", d.SourceUnits}, {"data.target_units", d.TargetUnits}} {
		switch u.got {
		case "", tokenizer.Characters, tokenizer.Tokens:
		case tokenizer.BPE:
			if c.Task.Kind == data.KindTags {
				return configErrorf("%s of tags can't be %s, whose pieces have no tag of their own: %s or %s", u.name, tokenizer.BPE, tokenizer.Characters, tokenizer.Tokens)
			}
		default:
			return configErrorf("%s must be %s, %s or %s, got %q", u.name, tokenizer.Characters, tokenizer.Tokens, tokenizer.BPE, u.got)
		}
	}
	return nil
}

// check checks the settings: those of a caller, and those of a config.json that anybody may have written. Before New
// has decided what is left to the rows of a file, they may be left so.
func (c *Config) check(decided bool) error {
	if c.Format != Format {
		return configErrorf("%s must be %d, got %d", setting("format"), Format, c.Format)
	}
	if err := c.checkData(); err != nil {
		return err
	}
	one, zero := 1, 0
	if c.fromRows() && !decided {
		one, zero = 0, -1
	}
	m, t := &c.Model, &c.Training
	a, f := &m.Block.Attention, &m.Block.FeedForward
	for _, n := range []struct {
		name      setting
		got       int
		low, high int
	}{
		{"task.max_len", c.Task.MaxLen, one, longest}, {"task.max_answer", c.Task.MaxAnswer, 0, longest},
		{"data.validation", c.Data.Validation, zero, mostValidation}, {"data.vocab_size", c.Data.VocabSize, 0, 1 << 18},
		{"model.dim", m.Dim, one, 1 << 14}, {"model.layers", m.Layers, one, 128}, {"decoder_layers", c.DecoderLayers, 0, 128},
		{"model.block.feed_forward.hidden", f.Hidden, 0, 1 << 16},
		{"model.block.attention.heads", a.Heads, one, 1 << 10}, {"model.block.attention.key_value_heads", a.KeyValueHeads, 0, 1 << 10},
		{"model.block.attention.head_dim", a.HeadDim, 0, 1 << 14}, {"model.block.attention.value_dim", a.ValueDim, 0, 1 << 14},
		{"training.batch", t.Batch, one, 1 << 16}, {"training.micro_batches", t.MicroBatches, 0, cmp.Or(t.Batch, 1<<16)},
		{"training.steps", t.Steps, one, 1 << 30}, {"training.warm_up", t.WarmUp, zero, 1 << 30},
		{"training.decay", t.Decay, zero, 1 << 30}, {"training.patience", t.Patience, 0, 1 << 30}, {"training.epochs", t.Epochs, zero, 1 << 30},
		{"training.first_epoch", t.FirstEpoch, 0, 1 << 30}, {"training.check_every", t.CheckEvery, 0, 1 << 30},
		{"training.plateau", t.Plateau, 0, 1 << 30},
	} {
		if n.got < n.low || n.got > n.high {
			return configErrorf("%s must be from %d to %d, got %d", n.name, n.low, n.high, n.got)
		}
	}
	if c.DecoderLayers > 0 && c.Task.Kind != data.KindPairs {
		return configErrorf("%s is for tasks of pairs alone, got it for %s", setting("decoder_layers"), c.Task.Name)
	}
	if d := &c.Data; d.VocabSize != 0 && (d.VocabSize < 256 || d.SourceUnits != tokenizer.BPE && d.TargetUnits != tokenizer.BPE) {
		return configErrorf("%s is for %s %s, and at least 256, got %d", setting("data.vocab_size"), setting("data.units"), tokenizer.BPE, d.VocabSize)
	}
	for _, rate := range []struct {
		name setting
		got  float64
	}{
		{"model.dropout", m.Dropout}, {"model.block.dropout", m.Block.Dropout},
		{"model.block.attention.dropout", a.Dropout}, {"model.block.feed_forward.dropout", f.Dropout},
	} {
		if !(rate.got >= 0 && rate.got < 1) {
			return configErrorf("%s must be at least 0 and below 1, got %v", rate.name, rate.got)
		}
	}
	for _, x := range []struct {
		name setting
		got  float64
		ok   bool
		want string
	}{
		{"training.learning_rate", t.Rate, t.Rate > 0 && t.Rate <= 10, "above 0 and at most 10"},
		{"training.floor", t.Floor, t.Floor >= 0 && t.Floor <= 1, "from 0 to 1"},
		{"training.label_smoothing", t.LabelSmoothing, t.LabelSmoothing >= 0 && t.LabelSmoothing < 1, "at least 0 and below 1"},
		{"training.weight_decay", t.WeightDecay, t.WeightDecay >= 0 && t.WeightDecay <= 10, "from 0 to 10"},
		{"training.clip", t.Clip, t.Clip >= 0 && t.Clip <= 1e30, "from 0 to 1e30"},
		{"training.beta1", t.Beta1, t.Beta1 >= 0 && t.Beta1 < 1, "at least 0 and below 1"},
		{"training.beta2", t.Beta2, t.Beta2 >= 0 && t.Beta2 < 1, "at least 0 and below 1"},
		{"training.momentum", t.Momentum, t.Momentum >= 0 && t.Momentum < 1, "at least 0 and below 1"},
		{"training.muon_rate", t.MuonRate, t.MuonRate >= 0 && t.MuonRate <= 10, "from 0 to 10"},
		{"training.clip_value", t.ClipValue, t.ClipValue >= 0 && t.ClipValue <= 1e30, "from 0 to 1e30"},
		{"training.plateau_factor", t.PlateauFactor, t.PlateauFactor >= 0 && t.PlateauFactor < 1, "at least 0 and below 1"},
		{"training.average", t.Average, t.Average >= 0 && t.Average < 1, "at least 0 and below 1"},
		{"training.min_delta", t.MinDelta, t.MinDelta >= 0 && t.MinDelta <= 1e30, "from 0 to 1e30"},
	} {
		if !x.ok {
			return configErrorf("%s must be %s, got %v", x.name, x.want, x.got)
		}
	}
	for _, x := range []struct {
		name setting
		got  *float64
	}{
		{"training.baseline", t.Baseline}, {"training.stopping_threshold", t.StoppingThreshold}, {"training.divergence_threshold", t.DivergenceThreshold},
	} {
		if x.got != nil && !(math.Abs(*x.got) <= 1e30) {
			return configErrorf("%s must be from -1e30 to 1e30, got %v", x.name, *x.got)
		}
	}
	monitors := []string{"train_loss", "train_accuracy", "val_loss", "val_accuracy"}
	if c.Data.Validation == 0 {
		monitors = monitors[:2]
	}
	if t.Monitor != "" && !slices.Contains(monitors, t.Monitor) {
		return configErrorf("%s must be one of %s, got %q", setting("training.monitor"), strings.Join(monitors, ", "), t.Monitor)
	}
	if t.Mode == "" && strings.HasSuffix(t.Monitor, "accuracy") {
		return configErrorf("%s must be max, if more of %s is better, or min", setting("training.mode"), t.Monitor)
	}
	if !slices.Contains([]string{"", "min", "max"}, t.Mode) {
		return configErrorf("%s must be min or max, got %q", setting("training.mode"), t.Mode)
	}
	if err := t.checkSolving(); err != nil {
		return err
	}
	if a.HeadDim == 0 && a.Heads > 0 && m.Dim%a.Heads != 0 {
		return configErrorf("%s must be a multiple of %s, got %d and %d", setting("model.dim"), setting("model.block.attention.heads"), m.Dim, a.Heads)
	}
	if t.MicroBatches > 1 && t.Batch%t.MicroBatches != 0 {
		return configErrorf("%s must be a multiple of %s, got %d and %d", setting("training.batch"), setting("training.micro_batches"), t.Batch, t.MicroBatches)
	}
	if t.Patience == 0 && t.Epochs == 0 {
		return configErrorf("training needs an end: set %s or %s above 0", setting("training.patience"), setting("training.epochs"))
	}
	return nil
}
