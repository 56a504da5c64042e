package task

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// What nobody sets isn't in config.json, whose bytes are what they were.
func TestSolvingByDefault(t *testing.T) {
	content, err := json.Marshal(small(t, "copy"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"solver", "beta1", "beta2", "momentum", "nesterov", "muon_rate", "clip_value", "schedule", "plateau", "plateau_factor", "average"} {
		if strings.Contains(string(content), fmt.Sprintf("%q:", key)) {
			t.Errorf("the configuration has %q: %s", key, content)
		}
	}
}

func TestSchedules(t *testing.T) {
	for _, test := range []struct {
		schedule                string
		at0, at4, at9, at14, to float64 // the multiples at these steps and at 39
	}{
		{"", 0.2, 1, 0.6894, 0.1220, 0.1},
		{"cosine", 0.2, 1, 0.6894, 0.1220, 0.1},
		{"constant", 0.2, 1, 1, 1, 1},
		{"linear", 0.2, 1, 0.64, 0.19, 0.1},
		{"restarts", 0.2, 1, 0.6894, 0.1220, 0.9780},
		{"staircase", 0.2, 1, 1, 1, 0.01},
		{"inverse-square-root", 0.2, 1, math.Sqrt(0.5), math.Sqrt(1. / 3), math.Sqrt(1. / 8)},
		{"one-cycle", 0.04, 0.9083, 0.6281, 0.1, 0.1},
	} {
		t.Run(test.schedule, func(t *testing.T) {
			c := small(t, "copy")
			c.Training.Schedule, c.Training.WarmUp, c.Training.Decay, c.Training.Floor = test.schedule, 5, 15, 0.1
			schedule := made(t, c).FitConfig().Solver.(*optim.Solver).Schedule
			for step, want := range map[int]float64{0: test.at0, 4: test.at4, 9: test.at9, 14: test.at14, 39: test.to} {
				if got := schedule(step); math.Abs(got-want) > 1e-3 {
					t.Errorf("at step %d it is %.4f, want %.4f", step, got, want)
				}
			}
		})
	}
}

// Each setting trains, and otherwise than the default does; its Config goes to JSON and back.
func TestSolving(t *testing.T) {
	run := func(t *testing.T, change func(c *Training)) (string, []train.Check) {
		c := small(t, "copy")
		c.Training.WarmUp, c.Training.Decay, c.Training.CheckEvery = 5, 15, 5
		change(&c.Training)
		content, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseConfig(content)
		if err != nil || !same(back, c) {
			t.Fatalf("from JSON it is %+v, want %+v: %v", back.Training, c.Training, err)
		}
		task := made(t, c)
		r, err := train.Fit(t.Context(), task.Problem(), task.FitConfig())
		if err != nil {
			t.Fatal(err)
		}
		first, last := r.History[0], r.History[len(r.History)-1]
		if last.TrainLoss >= first.TrainLoss {
			t.Errorf("the loss went from %v to %v", first.TrainLoss, last.TrainLoss)
		}
		return fmt.Sprint(r.History), r.History
	}
	plain, _ := run(t, func(*Training) {})
	for name, change := range map[string]func(c *Training){
		"adam":             func(c *Training) { c.Solver, c.WeightDecay = "adam", 0.1 },
		"beta1":            func(c *Training) { c.Beta1 = 0.5 },
		"beta2":            func(c *Training) { c.Solver, c.Beta2 = "adam", 0.5 },
		"sgd":              func(c *Training) { c.Solver, c.Rate = "sgd", 0.1 },
		"sgd and momentum": func(c *Training) { c.Solver, c.Rate, c.Momentum, c.Nesterov = "sgd", 0.1, 0.9, true },
		"lion":             func(c *Training) { c.Solver, c.Rate = "lion", 1e-3 },
		"muon":             func(c *Training) { c.Solver, c.MuonRate = "muon", 0.01 },
		"clip value":       func(c *Training) { c.ClipValue = 1e-3 },
		"linear":           func(c *Training) { c.Schedule = "linear" },
		"average":          func(c *Training) { c.Average = 0.5 },
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := run(t, change); got == plain {
				t.Error("it trains as if it weren't set")
			}
		})
	}
	if named, _ := run(t, func(c *Training) { c.Solver, c.Schedule = "adamw", "cosine" }); named != plain {
		t.Error("the defaults by their names train otherwise")
	}
	_, history := run(t, func(c *Training) {
		c.Plateau, c.PlateauFactor, c.Schedule, c.MinDelta, c.Monitor, c.Mode = 1, 0.5, "constant", 0, "train_loss", "max" // never better, in that mode
	})
	if rates := []float64{history[0].LearningRate, history[1].LearningRate, history[3].LearningRate}; rates[0] != 3e-3 || rates[1] != 3e-3 || rates[2] != 3e-3/4 {
		t.Errorf("with a plateau of 1 check the rates are %v", rates)
	}
}
