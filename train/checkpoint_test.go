package train_test

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// A checkpoint of another run, or whose state says a thing twice, isn't resumed.
func TestCheckpointOfAnotherRun(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(run string, resume bool) error {
		_, err := train.Fit(t.Context(), digits(t, 1), train.Config{MaxEpochs: 1, MaxSteps: 5, Checkpoint: checkpoint, Resume: resume, Run: run})
		return err
	}
	if err := fit("a", false); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"b", ""} {
		if err := fit(other, true); err == nil || !strings.Contains(err.Error(), checkpoint+` belongs to another run: to "a", not to "`+other+`"`) {
			t.Errorf("resumed as %q: %v", other, err)
		}
	}
	if err := fit("a", true); err != nil {
		t.Error(err)
	}

	tensors, metadata, err := safetensors.ReadFile(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	metadata["heed.state"] = `{"step":1,` + metadata["heed.state"][1:]
	err = atomicfile.WriteFile(checkpoint, func(w io.Writer) error { return safetensors.Write(w, tensors, metadata) })
	if err != nil {
		t.Fatal(err)
	}
	if err := fit("a", true); err == nil || !strings.Contains(err.Error(), `"step" is given twice`) {
		t.Errorf("resumed from a state that says it twice: %v", err)
	}
}

// What decides which examples a step takes may not change.
func TestResumeWithOtherExamples(t *testing.T) {
	c := train.Config{MaxEpochs: 2, MaxSteps: 3, Seed: 1, Checkpoint: filepath.Join(t.TempDir(), "c")}
	run := func(change func(p *train.Problem, c *train.Config)) error {
		p, c := digits(t, 1), c
		p.Train.Order = train.Shuffled
		change(&p, &c)
		_, err := train.Fit(t.Context(), p, c)
		return err
	}
	if err := run(func(*train.Problem, *train.Config) {}); err != nil {
		t.Fatal(err)
	}
	c.Resume, c.MaxSteps = true, 0
	for want, change := range map[string]func(p *train.Problem, c *train.Config){
		"with other settings: Seed 1, not 2: resume with the former":  func(_ *train.Problem, c *train.Config) { c.Seed = 2 },
		": Order 0, not 1: resume":                                    func(p *train.Problem, _ *train.Config) { p.Train.Order = train.InOrder },
		": steps in an epoch 20, not 21: resume":                      func(p *train.Problem, _ *train.Config) { p.Train.Bucket = func(e int) int { return e % 3 } },
		": Validation.Len 100, not 99: resume":                        func(p *train.Problem, _ *train.Config) { p.Validation.Len = 99 },
		": BatchSize 16, not 8; steps in an epoch 20, not 40: resume": func(p *train.Problem, _ *train.Config) { p.BatchSize = 8 },
		": rule optim.AdamW, not optim.SGD: resume": func(_ *train.Problem, c *train.Config) {
			c.Solver = &optim.Solver{Rule: optim.SGD{}, LearningRate: 0.1}
		},
	} {
		if err := run(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	if err := run(func(*train.Problem, *train.Config) {}); err != nil {
		t.Error(err)
	}
}

// Whatever state a checkpoint has, training goes on from it or says why not.
func FuzzCheckpoint(f *testing.F) {
	checkpoint := filepath.Join(f.TempDir(), "good")
	fit := func(tb testing.TB, checkpoint string, resume bool, steps int) error {
		_, err := train.Fit(tb.Context(), digits(tb, 1), train.Config{MaxEpochs: 2, MaxSteps: steps, CheckEvery: 2, Checkpoint: checkpoint, Resume: resume})
		return err
	}
	if err := fit(f, checkpoint, false, 5); err != nil {
		f.Fatal(err)
	}
	tensors, metadata, err := safetensors.ReadFile(checkpoint)
	if err != nil {
		f.Fatal(err)
	}
	state := metadata["heed.state"]
	f.Add(state)
	for _, at := range regexp.MustCompile(`[-+.e0-9]+[,}\]]`).FindAllStringIndex(state, -1) {
		for _, number := range []string{"-1", "0", "1", "9223372036854775807", "1e308", "null", `"NaN"`} {
			f.Add(state[:at[0]] + number + state[at[1]-1:])
		}
	}
	f.Fuzz(func(t *testing.T, state string) {
		path := filepath.Join(t.TempDir(), "c")
		err := atomicfile.WriteFile(path, func(w io.Writer) error {
			return safetensors.Write(w, tensors, map[string]string{"heed.state": state})
		})
		if err != nil {
			return // it isn't UTF-8
		}
		fit(t, path, true, 7) // ends, and doesn't panic
	})
}
