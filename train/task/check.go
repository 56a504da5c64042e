package task

import (
	"cmp"
	"reflect"
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

// checkData checks the Data and the ClassWeights, except for numbers.
func (c *Config) checkData(k kind) error {
	d, f := &c.Data, k.about()
	draws := c.Task.Sample != nil || c.Task.Answer != nil || c.Task.Spell != nil || c.Task.Read != nil
	rows := c.FromRows()
	_, err := textfile.Named(d.Encoding)
	switch stray := c.stray(); {
	case d.File == "" && !c.Drawn():
		return setting.Errorf("%s %s must come with %s, the file to learn from", setting.Path("task"), c.Task.Name, setting.Path("data.file"))
	case d.File != "" && draws:
		return setting.Errorf("%s %s draws its own examples, so it can't come with %s: for a file, the task must be one of %s",
			setting.Path("task"), c.Task.Name, setting.Path("data.file"), strings.Join(Names()[len(toy.Names()):], ", "))
	case stray != nil:
		return stray
	case err != nil:
		return setting.Errorf("%s: %w", setting.Path("data.encoding"), err)
	case d.MergeLabels && !(rows && f.format.Labels):
		return setting.Errorf("%s is for the labels of a file, not for the task %s", setting.Path("data.merge_labels"), c.Task.Name)
	case d.Pack != "" && d.Pack != "yes" && d.Pack != "no":
		return setting.Errorf("%s must be yes, no or empty, got %q", setting.Path("data.pack"), d.Pack)
	case d.Pack == "yes" && c.Task.Kind != data.KindText:
		return setting.Errorf("%s is for %s %s, not for %s", setting.Path("data.pack"), setting.Path("task"), data.KindText, c.Task.Name)
	case d.ValidationFile == "" && d.ValidationTargetFile != "" || d.ValidationFile != "" && rows && (d.TargetFile == "") != (d.ValidationTargetFile == ""):
		return setting.Errorf("%s must have the same number of files as %s", setting.Path("data.validation_file"), setting.Path("data.file"))
	case d.ValidationFile != "" && d.Validation == 0:
		return setting.Errorf("%s needs a %s above 0", setting.Path("data.validation_file"), setting.Path("data.validation"))
	case d.Columns != nil && !rows && (len(d.Columns) != 1 || d.Columns[0] == ""):
		return setting.Errorf("%s must be one for %s %s, the key of the text in the lines of JSONL files, got %q", setting.Path("data.columns"), setting.Path("task"), c.Task.Name, d.Columns)
	case c.Training.ClassWeights != "" && c.Training.ClassWeights != "balanced":
		return setting.Errorf("%s must be balanced or empty, got %q", setting.Path("training.class_weights"), c.Training.ClassWeights)
	case c.Training.Loss != "" && f.losses == nil:
		return setting.Errorf("%s %s has only one loss: leave out %s", setting.Path("task"), c.Task.Name, setting.Path("training.loss"))
	case c.Training.Loss != "" && !slices.Contains(f.losses.Names(), c.Training.Loss):
		return setting.Errorf("%s must be one of %s, got %q%s", setting.Path("training.loss"), f.losses, c.Training.Loss, text.DidYouMean(c.Training.Loss, f.losses.Names()))
	case c.Training.ClassWeights != "" && !(rows && f.classes):
		return setting.Errorf("%s are for the labels and tags of a file, not for the task %s", setting.Path("training.class_weights"), c.Task.Name)
	}
	if err := table.CheckColumns(d.Columns, k.columns(c)); err != nil && rows {
		if f.pairs && !c.Task.Pairs {
			err = setting.Errorf("%w; for two texts per row, name three", err)
		}
		return err
	}
	return nil
}

// sourceNames describes the sources in the tag "for" of data.Settings.
var sourceNames = map[string]string{"rows": "one file of rows", "lines": "two parallel files", "text": "a text", "rule": "examples of its own"}

// stray returns an error if one of the Data is for other sources than the task's.
func (c *Config) stray() error {
	source := "text"
	switch {
	case c.Drawn():
		source = "rule"
	case c.FromRows() && c.Data.TargetFile != "":
		source = "lines"
	case c.FromRows():
		source = "rows"
	}
	for f, v := range reflect.ValueOf(c.Data).Fields() {
		allowed := strings.Fields(f.Tag.Get("for"))
		if v.IsZero() || slices.Contains(allowed, source) {
			continue
		}
		for i := range allowed {
			allowed[i] = sourceNames[allowed[i]]
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return setting.Errorf("%s is for %s, and %s %s learns %s", setting.Path("data."+name), text.Either(allowed), setting.Path("task"), c.Task.Name, sourceNames[source])
	}
	return nil
}

// check checks the settings of a caller or of a config.json. If decided is false, settings that New chooses from the
// rows of a file may still be 0 or negative.
func (c *Config) check(k kind, decided bool) error {
	if err := cmp.Or(c.checkData(k), c.Config.Check(decided)); err != nil {
		return err
	}
	one, zero := 1, 0
	if (c.FromRows() || c.Published()) && !decided {
		one, zero = 0, -1
	}
	t := &c.Training
	if err := cmp.Or(
		setting.Between("data.validation", c.Data.Validation, zero, rows.MaxValidation),
		setting.Between("data.vocab_size", c.Data.VocabSize, 0, 1<<18),
		setting.Between("training.batch_size", t.BatchSize, one, 1<<16),
		setting.Between("training.steps_per_epoch", t.StepsPerEpoch, one, 1<<30),
		setting.In("training.label_smoothing", t.LabelSmoothing, t.LabelSmoothing >= 0 && t.LabelSmoothing < 1, "at least 0 and below 1"),
		setting.In("training.temperature", t.Temperature, t.Temperature == 0 || t.Temperature >= 0.001 && t.Temperature <= 100, "from 0.001 to 100, or 0 for 0.05"),
	); err != nil {
		return err
	}
	if d := &c.Data; d.VocabSize != 0 && (d.VocabSize < 256 || d.SourceUnits != tokenizer.BPE && d.TargetUnits != tokenizer.BPE) {
		return setting.Errorf("%s is only for %s %s and must be at least 256, got %d", setting.Path("data.vocab_size"), setting.Path("data.units"), tokenizer.BPE, d.VocabSize)
	}
	return cmp.Or(k.check(c), c.checkTraining(k.about(), zero < 0))
}

// checkTraining checks the settings of training. If undecided is true, New hasn't yet chosen the values that depend on
// the rows.
func (c *Config) checkTraining(k facts, undecided bool) error {
	t := c.Training.Config
	if err := c.checkMonitor(k); err != nil {
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
