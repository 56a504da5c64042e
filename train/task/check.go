package task

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/textfile"
)

// needsFile reports whether the task can learn only from a file: it is of kind text or is named after a kind.
func (c *Config) needsFile() bool {
	if c.opened() {
		return false
	}
	k := kindOf(c.Task.Kind).about()
	return k.Name != "" && !k.Rows || kindOf(data.Kind(c.Task.Name)).about().Name != ""
}

// opened reports whether the model is a published one that hasn't been trained here.
func (c *Config) opened() bool { return c.published() && c.Data.File == "" }

// Drawn reports whether the task's rule draws its examples, as Heed's toy rules and your own rules do.
func (c *Config) Drawn() bool {
	return c.Task.Sample != nil || c.Data.File == "" && !c.needsFile() && !c.opened()
}

// fromRows reports whether the task learns from the rows of a file.
func (c *Config) fromRows() bool {
	return c.Data.File != "" && kindOf(c.Task.Kind).about().Rows
}

// checkData checks the Data and the ClassWeights, except for numbers.
func (c *Config) checkData() error {
	d, k := &c.Data, c.Kind()
	draws := c.Task.Sample != nil || c.Task.Answer != nil || c.Task.Spell != nil || c.Task.Read != nil
	_, err := textfile.Named(d.Encoding)
	switch stray := c.stray(); {
	case d.File == "" && c.needsFile():
		return setting.Errorf("%s %s must come with %s, the file to learn from", setting.Path("task"), c.Task.Name, setting.Path("data.file"))
	case d.File != "" && draws:
		return setting.Errorf("%s %s draws its own examples, so it can't come with %s: for a file, the task must be one of %s",
			setting.Path("task"), c.Task.Name, setting.Path("data.file"), strings.Join(Names()[len(toy.Names()):], ", "))
	case stray != "" && c.Drawn():
		return setting.Errorf("%s is for tasks that learn from %s, and %s %s needs none", stray, setting.Path("data.file"), setting.Path("task"), c.Task.Name)
	case stray != "":
		return setting.Errorf("%s is for tasks that learn rows, not for %s %s", stray, setting.Path("task"), c.Task.Name)
	case err != nil:
		return setting.Errorf("%s: %w", setting.Path("data.encoding"), err)
	case d.TargetUnits != "" && !k.AnswerUnits:
		return setting.Errorf("%s %s can't have %s: its answers aren't split into units", setting.Path("task"), c.Task.Name, setting.Path("data.target_units"))
	case d.MergeLabels && !(c.fromRows() && k.Classes && !k.AnswerUnits):
		return setting.Errorf("%s is for the labels of a file, not for the task %s", setting.Path("data.merge_labels"), c.Task.Name)
	case d.TargetFile != "" && d.Columns != nil:
		return setting.Errorf("%s are columns of one file, so they can't come with %s", setting.Path("data.columns"), setting.Path("data.target_file"))
	case d.TargetFile != "" && d.Header != "":
		return setting.Errorf("%s is for one file, so it can't come with %s", setting.Path("data.header"), setting.Path("data.target_file"))
	case d.TargetFile != "" && d.Quotes != "":
		return setting.Errorf("%s is for one file, so it can't come with %s", setting.Path("data.quotes"), setting.Path("data.target_file"))
	case d.ValidationFile == "" && d.ValidationTargetFile != "" || d.ValidationFile != "" && (d.TargetFile == "") != (d.ValidationTargetFile == ""):
		return setting.Errorf("%s must have the same number of files as %s", setting.Path("data.validation_file"), setting.Path("data.file"))
	case d.ValidationFile != "" && d.Validation == 0:
		return setting.Errorf("%s needs a %s above 0", setting.Path("data.validation_file"), setting.Path("data.validation"))
	case d.MoreFiles != nil && c.fromRows():
		return setting.Errorf("%s are for texts, not for %s %s", setting.Path("data.more_files"), setting.Path("task"), c.Task.Name)
	case d.Columns != nil && !c.fromRows() && (len(d.Columns) != 1 || d.Columns[0] == ""):
		return setting.Errorf("%s must be one for %s %s, the key of the text in the lines of JSONL files, got %q", setting.Path("data.columns"), setting.Path("task"), c.Task.Name, d.Columns)
	case c.Training.ClassWeights != "" && c.Training.ClassWeights != "balanced":
		return setting.Errorf("%s must be balanced or empty, got %q", setting.Path("training.class_weights"), c.Training.ClassWeights)
	case c.Mix && !c.hasBaseline():
		return setting.Errorf("%s is for classification, regression and tagging with the rows of a file, not for the task %s", setting.Path("mix"), c.Task.Name)
	case c.Task.Pairs && !k.Pairs:
		return setting.Errorf("%s can't be set: a task of kind %s learns one text per row", setting.Path("task.pairs"), c.Task.Kind)
	case c.Training.Loss != "" && k.losses == nil:
		return setting.Errorf("%s %s has only one loss: leave out %s", setting.Path("task"), c.Task.Name, setting.Path("training.loss"))
	case c.Training.Loss != "" && !slices.Contains(k.losses.Names(), c.Training.Loss):
		return setting.Errorf("%s must be one of %s, got %q%s", setting.Path("training.loss"), k.losses, c.Training.Loss, text.DidYouMean(c.Training.Loss, k.losses.Names()))
	case c.Training.ClassWeights != "" && !(c.fromRows() && k.Classes):
		return setting.Errorf("%s are for the labels and tags of a file, not for the task %s", setting.Path("training.class_weights"), c.Task.Name)
	}
	if err := table.CheckColumns(d.Columns, c.columns()); err != nil && c.fromRows() {
		if k.Pairs && !c.Task.Pairs {
			err = setting.Errorf("%w; for two texts per row, name three", err)
		}
		return err
	}
	for i, units := range []tokenizer.Units{d.SourceUnits, d.TargetUnits} {
		known := strings.Split(k.units, ", ")
		if i == 0 && c.published() {
			known = []string{string(tokenizer.Published)}
		}
		if i == 1 { // an answer is written, and words don't keep its spaces
			known = slices.DeleteFunc(known, func(name string) bool { return name == string(tokenizer.Words) })
		}
		if units != "" && !slices.Contains(known, string(units)) {
			return setting.Errorf("%s must be one of %s for the task %s, got %q%s", []setting.Path{"data.source_units", "data.target_units"}[i], strings.Join(known, ", "), c.Task.Name, units, text.DidYouMean(string(units), known))
		}
	}
	return nil
}

// stray returns the path of a setting that is only for tasks that learn from a file, or only for tasks that learn rows,
// if this task isn't such a task. It returns "" if there is none.
func (c *Config) stray() setting.Path {
	d := &c.Data
	for _, s := range []struct {
		path       setting.Path
		set, texts bool // whether it is set, and whether tasks of kind text may have it
	}{
		{"data.target_file", d.TargetFile != "", false},
		{"data.validation_file", d.ValidationFile != "" || d.ValidationTargetFile != "", c.published() && d.ValidationTargetFile == ""},
		{"data.columns", d.Columns != nil, true},
		{"data.header", d.Header != "", false},
		{"data.quotes", d.Quotes != "", false},
		{"data.skip_bad", d.SkipBad, false},
		{"data.target_units", d.TargetUnits != "", false},
		{"data.source_units", d.SourceUnits != "", true},
		{"data.more_files", d.MoreFiles != nil, true},
		{"data.encoding", d.Encoding != "", true},
		{"data.tokenizers_sha256", d.Tokenizers != nil, true},
	} {
		if s.set && !c.fromRows() && !(s.texts && d.File != "") {
			return s.path
		}
	}
	return ""
}

// check checks the settings of a caller or of a config.json. If decided is false, settings that New chooses from the
// rows of a file may still be 0 or negative.
func (c *Config) check(decided bool) error {
	if c.Format != format {
		return setting.Errorf("%s must be %d, got %d", setting.Path("format"), format, c.Format)
	}
	if err := c.checkData(); err != nil {
		return err
	}
	one, zero, longest := 1, 0, longest
	if c.opened() {
		longest = math.MaxInt
	}
	if (c.fromRows() || c.published()) && !decided {
		one, zero = 0, -1
	}
	m, t := &c.Model, &c.Training
	a, f := &m.Block.Attention, &m.Block.FeedForward
	if err := cmp.Or(
		setting.Between("task.max_len", c.Task.MaxLen, one, longest),
		setting.Between("task.max_answer", c.Task.MaxAnswer, 0, longest),
		setting.Between("data.validation", c.Data.Validation, zero, rows.MaxValidation),
		setting.Between("data.vocab_size", c.Data.VocabSize, 0, 1<<18),
		setting.Between("model.dim", m.Dim, one, 1<<14),
		setting.Between("model.layers", m.Layers, one, 128),
		setting.Between("decoder_layers", c.DecoderLayers, 0, 128),
		setting.Between("model.block.feed_forward.hidden", f.Hidden, 0, 1<<16),
		setting.Between("model.block.attention.heads", a.Heads, one, 1<<10),
		setting.Between("model.block.attention.key_value_heads", a.KeyValueHeads, 0, 1<<10),
		setting.Between("model.block.attention.head_dim", a.HeadDim, 0, 1<<14),
		setting.Between("model.block.attention.value_dim", a.ValueDim, 0, 1<<14),
		setting.Between("training.batch_size", t.BatchSize, one, 1<<16),
		setting.Between("training.steps_per_epoch", t.StepsPerEpoch, one, 1<<30),
	); err != nil {
		return err
	}
	if c.DecoderLayers > 0 && !c.Kind().Sequences {
		return setting.Errorf("%s is for models with an encoder and a decoder, not for the task %s", setting.Path("decoder_layers"), c.Task.Name)
	}
	if d := &c.Data; d.VocabSize != 0 && (d.VocabSize < 256 || d.SourceUnits != tokenizer.BPE && d.TargetUnits != tokenizer.BPE) {
		return setting.Errorf("%s is only for %s %s and must be at least 256, got %d", setting.Path("data.vocab_size"), setting.Path("data.units"), tokenizer.BPE, d.VocabSize)
	}
	share := func(path setting.Path, x float64) error {
		return setting.In(path, x, x >= 0 && x < 1, "at least 0 and below 1")
	}
	if err := cmp.Or(
		share("model.dropout", m.Dropout),
		share("model.block.dropout", m.Block.Dropout),
		share("model.block.attention.dropout", a.Dropout),
		share("model.block.feed_forward.dropout", f.Dropout),
		share("training.label_smoothing", t.LabelSmoothing),
		setting.In("training.temperature", t.Temperature, t.Temperature == 0 || t.Temperature >= 0.001 && t.Temperature <= 100, "from 0.001 to 100, or 0 for 0.05"),
	); err != nil {
		return err
	}
	if t.Temperature != 0 && !c.Kind().Embeds {
		return setting.Errorf("%s is for the task %s, not for %s", setting.Path("training.temperature"), data.KindEmbed, c.Task.Name)
	}
	if _, whole := a.HeadWidth(m.Dim); !whole {
		return setting.Errorf("%s must be a multiple of %s, got %d and %d", setting.Path("model.dim"), setting.Path("model.block.attention.heads"), m.Dim, a.Heads)
	}
	return cmp.Or(kindOf(c.Task.Kind).check(c), c.checkTune(), c.checkTraining(zero < 0))
}

// checkTraining checks the settings of training. If undecided is true, New hasn't yet chosen the values that depend on
// the rows.
func (c *Config) checkTraining(undecided bool) error {
	t := c.Training.Config
	if err := c.checkMonitor(); err != nil {
		return err
	}
	if undecided { // put valid values in place of those that New will choose
		t.BatchSize = cmp.Or(t.BatchSize, max(t.MicroBatches, 1))
		for _, n := range []*int{&t.MaxEpochs, &t.CheckEvery, &t.Stopping.Patience, &t.Optimizer.Schedule.WarmUp} {
			if *n == -1 {
				*n = 0
			}
		}
		if t.Stopping.MinDelta == -1 {
			t.Stopping.MinDelta = 0
		}
		if t.Optimizer.Schedule.Decay == -1 {
			t.Optimizer.Schedule.Decay = 1 << 30
		}
	}
	if err := t.Check(); err != nil {
		return setting.Within("training", err)
	}
	if c.Training.Stopping.Patience == 0 && c.Training.MaxEpochs == 0 {
		return setting.Errorf("training would never end: set %s or %s above 0", setting.Path("training.stopping.patience"), setting.Path("training.max_epochs"))
	}
	return nil
}
