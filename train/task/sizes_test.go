package task

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train"
)

// For rows of a file, New must choose a MinDelta, so that training ends soon after all answers are right, and checks
// within long epochs. Settings of the caller, of presets and of rules must stay.
func TestChosenStopping(t *testing.T) {
	t.Parallel()
	accuracy := train.StoppingConfig{Monitor: "val_accuracy", Mode: "max", Patience: -1, MinDelta: -1}
	type chosen struct {
		every, patience int
		delta           float64
	}
	for _, test := range []struct {
		name, task string
		steps      int
		change     func(c *Training)
		want       chosen
	}{
		{"a short epoch", "classification", 2000, nil, chosen{0, 5, 1e-4}},
		{"a long epoch", "classification", 2001, nil, chosen{200, 50, 1e-4}},
		{"checks of the caller", "classification", 5000, func(c *Training) { c.CheckEvery = 700 }, chosen{700, 5, 1e-4}},
		{"no checks within an epoch", "seq2seq", 5000, func(c *Training) { c.CheckEvery = 0 }, chosen{0, 5, 1e-4}},
		{"patience of the caller", "seq2seq", 5000, func(c *Training) { c.Stopping.Patience = 7 }, chosen{500, 7, 1e-4}},
		{"no patience", "tagging", 5000, func(c *Training) { c.Stopping.Patience = 0 }, chosen{500, 0, 1e-4}},
		{"no delta", "tagging", 50, func(c *Training) { c.Stopping.MinDelta = 0 }, chosen{0, 5, 0}},
		{"the training loss", "tagging", 50, func(c *Training) { c.Stopping.Monitor = "train_loss" }, chosen{0, 5, 1e-4}},
		{"an accuracy", "seq2seq", 50, func(c *Training) { c.Stopping = accuracy }, chosen{0, 5, 0}},
		{"a rule", "copy", 5000, nil, chosen{0, 3, 0}},
		{"a text", "text", 5000, nil, chosen{0, 3, 0}},
	} {
		c := must.Get(Named(test.task, 0))(t)
		if test.change != nil {
			test.change(&c.Training)
		}
		c.Training.plan(test.steps)
		if got := (chosen{c.Training.CheckEvery, c.Training.Stopping.Patience, c.Training.Stopping.MinDelta}); got != test.want {
			t.Errorf("%s: CheckEvery, Patience and MinDelta are %v, want %v", test.name, got, test.want)
		}
	}
	for _, p := range Presets() {
		c, err := Named(string(p.Kind), 0)
		if err == nil {
			err = c.Apply(p.Name)
		}
		must.Do(t, err)
		c.Training.plan(5000)
		if got := (chosen{c.Training.CheckEvery, c.Training.Stopping.Patience, c.Training.Stopping.MinDelta}); got != (chosen{}) {
			t.Errorf("preset %s: CheckEvery, Patience and MinDelta are %v, want 0", p.Name, got)
		}
	}
	// The configuration of a new task has the chosen values.
	if s := made(t, small(t, "classification")).Config.Training; s.CheckEvery != 0 || s.Stopping.Patience != 5 || s.Stopping.MinDelta != 0 {
		t.Errorf("after New, CheckEvery is %d and Stopping is %+v, want 0, a Patience of 5 and a MinDelta of 0 for accuracy", s.CheckEvery, s.Stopping)
	}
}

// A new classification of rows monitors accuracy or, where labels are rare, macro F1. Other tasks, and settings of the
// caller, stay.
func TestChosenMonitor(t *testing.T) {
	t.Parallel()
	rows := func(counts ...int) string {
		var s strings.Builder
		for label, n := range counts {
			for i := range n {
				fmt.Fprintf(&s, "%d of %d\tlabel %c\n", i, label, 'a'+label)
			}
		}
		return s.String()
	}
	for _, test := range []struct {
		name   string
		kind   data.Kind
		rows   string
		change func(c *Config)
		want   string
	}{
		{"even labels", data.KindClassification, rows(50, 50, 40), nil, "val_accuracy"},
		{"a frequent label", data.KindClassification, rows(200, 20), nil, "val_macro_f1"},
		{"a label below a tenth of its share", data.KindClassification, rows(100, 100, 5), nil, "val_macro_f1"},
		{"a label of its share", data.KindClassification, rows(100, 100, 20), nil, "val_accuracy"},
		{"a value of the caller", data.KindClassification, rows(200, 20), func(c *Config) { c.Training.Stopping.Monitor = "val_loss" }, "val_loss"},
		{"a mode of the caller", data.KindClassification, rows(200, 20), func(c *Config) { c.Training.Stopping.Mode = "min" }, ""},
		{"no validation", data.KindClassification, rows(200, 20), func(c *Config) { c.Data.Validation = 0 }, ""},
		{"tags", data.KindTagging, someRows(data.KindTagging), nil, ""},
	} {
		c := forRows(t, test.kind, test.rows)
		if test.change != nil {
			test.change(&c)
		}
		task := made(t, c)
		got := task.Config.Training.Stopping
		if got.Monitor != test.want || test.want != "" && test.want != "val_loss" && (got.Mode != "max" || got.MinDelta != 0) {
			t.Errorf("%s: Stopping is %+v, want to monitor %q, and a higher value to be better", test.name, got, test.want)
		}
		if told := strings.Contains(task.DescribeData(), "\n  monitored: macro F1, because the "); told != (test.want == "val_macro_f1") {
			t.Errorf("%s: the description is\n%s", test.name, task.DescribeData())
		}
		c = task.Config // of a run that an earlier heed began
		c.Training.Stopping.Monitor, c.Training.Stopping.Mode = "", ""
		if again := made(t, c).Config.Training.Stopping; again.Monitor != "" {
			t.Errorf("%s: the run continues with %+v", test.name, again)
		}
	}
}

// A published model learns for a few epochs, and a head on its kept states for more of them if a file is small. A head
// on a run of our own learns as long as a new model.
func TestChosenEpochs(t *testing.T) {
	for _, test := range []struct {
		published   bool
		tune        string
		steps, want int
	}{
		{false, "", 6, 100}, {false, "head", 6, 100}, {false, "head", 300, 15},
		{true, "", 6, 20}, {true, "", 45, 6}, {true, "lora", 6, 20}, {true, "", 300, 3},
		{true, "head", 1, 20}, {true, "head", 6, 20}, {true, "head", 300, 3},
	} {
		c := must.Get(Named("classification", 0))(t)
		c.From.Tune = test.tune
		if test.published {
			c.Task.Published.Tokens = 10
		}
		if err := c.planPass(test.steps); err != nil || c.Training.MaxEpochs != test.want {
			t.Errorf("%+v: got %d epochs, %v", test, c.Training.MaxEpochs, err)
		}
	}
}
