package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// Training with each setting must lower the loss and differ from training with the defaults. Each Config must be the
// same after encoding to JSON and decoding.
func TestTraining(t *testing.T) {
	run := func(t *testing.T, change func(c *Training)) (string, []train.Check) {
		c := small(t, "copy")
		c.Training.Optimizer.Schedule.WarmUp, c.Training.Optimizer.Schedule.Decay = 5, 15
		c.Training.StepsPerEpoch, c.Training.CheckEvery = 10, 5
		change(&c.Training)
		var back Config
		if must.Do(t, json.Unmarshal(must.Get(json.Marshal(c))(t), &back)); !runfolder.SameJSON(back, c) {
			t.Fatalf("decoded from JSON: got %+v, want %+v", back.Training, c.Training)
		}
		task := made(t, c)
		r := must.Get(train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: task.Config.Seed}))(t)
		first, last := r.History[0], r.History[len(r.History)-1]
		if last.TrainLoss >= first.TrainLoss {
			t.Errorf("the loss went from %v to %v, want it to fall", first.TrainLoss, last.TrainLoss)
		}
		return fmt.Sprint(r.History), r.History
	}
	plain, _ := run(t, func(*Training) {})
	for name, change := range map[string]func(c *optim.Config){
		"adam":             func(c *optim.Config) { c.Solver, c.WeightDecay = optim.Adam{Beta2: 0.98}, 0.1 },
		"beta1":            func(c *optim.Config) { c.Solver = optim.AdamW{Beta1: 0.5, Beta2: 0.98} },
		"beta2":            func(c *optim.Config) { c.Solver = optim.Adam{Beta2: 0.5} },
		"sgd":              func(c *optim.Config) { c.Solver, c.LearningRate = optim.SGD{}, 0.1 },
		"sgd and momentum": func(c *optim.Config) { c.Solver, c.LearningRate = optim.SGD{Momentum: 0.9, Nesterov: true}, 0.1 },
		"lion":             func(c *optim.Config) { c.Solver, c.LearningRate = optim.Lion{}, 1e-3 },
		"muon":             func(c *optim.Config) { c.Solver = optim.Muon{LearningRate: 0.01} },
		"clip value":       func(c *optim.Config) { c.ClipValue = 1e-3 },
		"linear":           func(c *optim.Config) { c.Schedule.Kind = "linear" },
		"average":          func(c *optim.Config) { c.Average = 0.5 },
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := run(t, func(c *Training) { change(&c.Optimizer) }); got == plain {
				t.Error("the history is the same as without the setting")
			}
		})
	}
	if named, _ := run(t, func(c *Training) { c.Optimizer.Schedule.Kind = "cosine" }); named != plain {
		t.Error("the history with the schedule cosine differs from the history with the default, which is cosine")
	}
	_, history := run(t, func(c *Training) { // in this mode, no check is better
		c.Optimizer.Plateau, c.Optimizer.Schedule.Kind = optim.PlateauConfig{Checks: 1, Factor: 0.5}, "constant"
		c.Stopping = train.StoppingConfig{Monitor: "train_loss", Mode: "max", Patience: c.Stopping.Patience}
	})
	if rates := []float64{history[0].LearningRate, history[1].LearningRate, history[3].LearningRate}; rates[0] != 3e-3 || rates[1] != 3e-3 || rates[2] != 3e-3/4 {
		t.Errorf("with a plateau of 1 check, the rates are %v, want two of 0.003, then 0.00075", rates)
	}
}

// Training removes the temporary files that killed processes left, even if the first one was killed before config.json
// was complete. It keeps users' files, and the page that heed report may be writing at this moment.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	keep := []string{".config.json.tmp-notes", ".config.json.tmp-", ".other.json.tmp-1", "config.json.tmp-1", ".report.html.tmp-2"}
	remove := []string{".config.json.tmp-1", ".tokenizer.json.tmp-4294967295", ".report.html.tmp-1"}
	for _, name := range append(keep, remove...) {
		write(t, filepath.Join(dir, name), "")
	}
	must.Do(t, os.Chtimes(filepath.Join(dir, ".report.html.tmp-1"), time.Now(), time.Now().Add(-time.Hour)))
	must.Do(t, os.Mkdir(filepath.Join(dir, ".config.json.tmp-3"), 0o777))
	run(t, made(t, small(t, "copy")), dir, train.RunOptions{MaxSteps: 1})
	for _, name := range append(keep, ".config.json.tmp-3") {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("got the error %v, want %s kept", err, name)
		}
	}
	for _, name := range remove {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got the error %v, want the file removed", name, err)
		}
	}
}
