package train_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// A checkpoint has all memory of the solver, for every rule.
func TestSolversResume(t *testing.T) {
	solvers := map[string]func() *optim.Solver{
		"SGD":      func() *optim.Solver { return &optim.Solver{Rule: optim.SGD{}} },
		"momentum": func() *optim.Solver { return &optim.Solver{Rule: optim.SGD{Momentum: 0.9}} },
		"Lion":     func() *optim.Solver { return &optim.Solver{Rule: optim.Lion{}} },
		"Muon": func() *optim.Solver {
			return &optim.Solver{Groups: []optim.Group{
				{Match: func(_ string, rank int) bool { return rank == 2 }, Rule: optim.Muon{}},
				{Match: func(name string, _ int) bool { return strings.HasPrefix(name, "up") }, Frozen: true},
			}}
		},
	}
	fit := func(solver *optim.Solver, checkpoint string, resume bool, steps int) (*train.Result, [][]float32, error) {
		p := digits(t, 1)
		solver.LearningRate, solver.ClipNorm, solver.Schedule = 0.01, 0.1, optim.WarmUp(9)
		r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1, CheckEvery: 6}, train.RunOptions{MaxSteps: steps, Solver: solver, Checkpoint: checkpoint, Resume: resume})
		return r, values(p.Params), err
	}
	for name, solver := range solvers {
		whole, weights, err := fit(solver(), filepath.Join(t.TempDir(), "c"), false, 12)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkpoint := filepath.Join(t.TempDir(), "c")
		if _, _, err := fit(solver(), checkpoint, false, 5); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, end, err := fit(solver(), checkpoint, true, 12)
		if err != nil || !reflect.DeepEqual(got, whole) || !same(end, weights) {
			t.Errorf("%s: resumed, got %+v, %v, want %+v and the same parameters", name, got, err, whole)
		}
		_, untouched, err := fit(optim.NewAdamW(0.01), checkpoint, true, 12)
		want := ", not optim.AdamW: resume"
		if name == "Muon" { // only one group of the solver uses Muon, so its Rule is AdamW
			want = `to another model or solver: it has no "adamw.first.`
		}
		if err == nil || !strings.Contains(err.Error(), want) || !same(untouched, values(digits(t, 1).Params)) {
			t.Errorf("%s: resumed with AdamW, got %v, want an error and unchanged parameters", name, err)
		}
	}
}
