package task

import (
	"testing"

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
		c, err := Named(test.task, 0)
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		c.Training.plan(5000)
		if got := (chosen{c.Training.CheckEvery, c.Training.Stopping.Patience, c.Training.Stopping.MinDelta}); got != (chosen{}) {
			t.Errorf("preset %s: CheckEvery, Patience and MinDelta are %v, want 0", p.Name, got)
		}
	}
	// The configuration of a new task has the chosen values.
	if s := made(t, small(t, "classification")).Config.Training; s.CheckEvery != 0 || s.Stopping.Patience != 5 || s.Stopping.MinDelta != 1e-4 {
		t.Errorf("after New, CheckEvery is %d and Stopping is %+v, want 0, a Patience of 5 and a MinDelta of 0.0001", s.CheckEvery, s.Stopping)
	}
}
