package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// A checkpoint of another run, or whose state says a thing twice, isn't resumed.
func TestCheckpointOfAnotherRun(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(run string, resume bool) error {
		_, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 1}, train.Call{MaxSteps: 5, Checkpoint: checkpoint, Resume: resume, Run: run})
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

// How far training had got is in the header of a checkpoint, whatever has become of its tensors.
func TestReadProgress(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	if _, err := train.ReadProgress(checkpoint); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: got %v", err)
	}
	r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 2}, train.Call{MaxSteps: 25, Checkpoint: checkpoint, Run: "a"})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1] ^= 1
	if err := os.WriteFile(checkpoint, content, 0o666); err != nil {
		t.Fatal(err)
	}
	p, err := train.ReadProgress(checkpoint)
	if err != nil || p.Run != "a" || p.Step != 25 || len(p.History) != 1 || !reflect.DeepEqual(p.History, r.History) {
		t.Errorf("got %+v, %v, want 25 steps of a and the history %v", p, err, r.History)
	}
	for _, bad := range [][]byte{
		content[:100], bytes.Replace(content, []byte("heed.state"), []byte("heed.other"), 1), bytes.Replace(content, []byte(`\"step\":25`), []byte(`\"step\":15`), 1),
	} {
		if err := os.WriteFile(checkpoint, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		if p, err := train.ReadProgress(checkpoint); err == nil || !strings.Contains(err.Error(), checkpoint) {
			t.Errorf("of a damaged header: got %+v, %v, want an error", p, err)
		}
	}
}

// What decides which examples a step takes may not change.
func TestResumeWithOtherExamples(t *testing.T) {
	c := setup{train.Config{BatchSize: 16, MaxEpochs: 2}, train.Call{MaxSteps: 3, Seed: 1, Checkpoint: filepath.Join(t.TempDir(), "c")}}
	run := func(change func(p *train.Problem, c *setup)) error {
		p, c := digits(t, 1), c
		p.Train.Order = train.Shuffled
		change(&p, &c)
		_, err := train.Fit(t.Context(), p, c.Config, c.Call)
		return err
	}
	if err := run(func(*train.Problem, *setup) {}); err != nil {
		t.Fatal(err)
	}
	c.Resume, c.MaxSteps = true, 0
	for want, change := range map[string]func(p *train.Problem, c *setup){
		"with other settings: Seed 1, not 2: resume with the former":  func(_ *train.Problem, c *setup) { c.Seed = 2 },
		": Order 0, not 1: resume":                                    func(p *train.Problem, _ *setup) { p.Train.Order = train.InOrder },
		": steps in an epoch 20, not 21: resume":                      func(p *train.Problem, _ *setup) { p.Train.Bucket = func(e int) int { return e % 3 } },
		": Validation.Len 100, not 99: resume":                        func(p *train.Problem, _ *setup) { p.Validation.Len = 99 },
		": BatchSize 16, not 8; steps in an epoch 20, not 40: resume": func(_ *train.Problem, c *setup) { c.BatchSize = 8 },
		": rule optim.AdamW, not optim.SGD: resume": func(_ *train.Problem, c *setup) {
			c.Solver = &optim.Solver{Rule: optim.SGD{}, LearningRate: 0.1}
		},
	} {
		if err := run(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	if err := run(func(*train.Problem, *setup) {}); err != nil {
		t.Error(err)
	}
}

// Whatever state a checkpoint has, training goes on from it or says why not.
func FuzzCheckpoint(f *testing.F) {
	checkpoint := filepath.Join(f.TempDir(), "good")
	fit := func(tb testing.TB, checkpoint string, resume bool, steps int) error {
		_, err := train.Fit(tb.Context(), digits(tb, 1), train.Config{BatchSize: 16, MaxEpochs: 2, CheckEvery: 2}, train.Call{MaxSteps: steps, Checkpoint: checkpoint, Resume: resume})
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

// everything is a setup in which all that a checkpoint holds is in play. An epoch of digits has 20 steps.
func everything(checkpoint string) setup {
	return setup{train.Config{
		BatchSize: 16, MaxEpochs: 4, CheckEvery: 15,
		Optimizer: optim.Config{
			LearningRate: 0.02, WeightDecay: 0.01, ClipNorm: 0.5, Schedule: optim.Scheduling{Kind: "constant", WarmUp: 30},
			Plateau: optim.Plateauing{Checks: 1, Threshold: 0.2, Factor: 0.5}, Average: 0.9,
		},
	}, train.Call{Seed: 7, Checkpoint: checkpoint, CheckpointSteps: 4}}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Wherever a run ends, be it in the middle of an epoch, it goes on to the same history, parameters and checkpoint.
func TestResumeAnywhere(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	p := digits(t, 4)
	want, err := train.Fit(t.Context(), p, everything(filepath.Join(dir, "whole")).Config, everything(filepath.Join(dir, "whole")).Call)
	if err != nil {
		t.Fatal(err)
	}
	if last := want.History[len(want.History)-1]; last.Step != 80 || last.LearningRate >= 0.02 {
		t.Fatalf("the end is no check of its own, or the plateau has lowered no rate: %+v", last)
	}
	crash := errors.New("crash")
	for how, end := range map[string]func(p *train.Problem, c *setup, step int){
		"a limit": func(_ *train.Problem, c *setup, step int) { c.MaxSteps = step },
		"OnStep": func(_ *train.Problem, c *setup, step int) {
			c.OnStep = func(epoch, i int, _ float64) bool { return epoch*20+i+1 == step }
		},
		"a crash": func(p *train.Problem, _ *setup, step int) { // loses what is since the last checkpoint
			of := p.Train.Batch
			p.Train.Batch = func(examples []int) (train.Batch, error) {
				if examples[0] == step*16 {
					return train.Batch{}, crash
				}
				return of(examples)
			}
		},
		"fewer epochs": func(_ *train.Problem, c *setup, step int) { c.MaxEpochs = (step + 19) / 20 },
	} {
		for _, step := range []int{1, 3, 15, 16, 30, 59, 60, 62, 79} {
			t.Run(fmt.Sprintf("%s at step %d", how, step), func(t *testing.T) {
				checkpoint := filepath.Join(dir, "c")
				os.Remove(checkpoint)
				first, c := digits(t, 4), everything(checkpoint)
				end(&first, &c, step)
				if r, err := train.Fit(t.Context(), first, c.Config, c.Call); err != nil && !errors.Is(err, crash) || how != "fewer epochs" && r != nil && err == nil && !r.Unfinished {
					t.Fatalf("the first part ended with %v, %+v", err, r)
				}
				second, c := digits(t, 4), everything(checkpoint)
				c.Resume = true
				got, err := train.Fit(t.Context(), second, c.Config, c.Call)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("it ended with\n%+v, want\n%+v", got, want)
				}
				if !same(values(second.Params), values(p.Params)) {
					t.Error("the parameters aren't those of the run that never ended early")
				}
				if content(t, checkpoint) != content(t, filepath.Join(dir, "whole")) {
					t.Error("the checkpoint isn't that of the run that never ended early")
				}
			})
		}
	}
}

func TestCheckpointTime(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	written := 0
	_, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 1}, train.Call{Checkpoint: checkpoint, CheckpointTime: time.Nanosecond, OnStep: func(epoch, step int, _ float64) bool {
		if _, err := os.Stat(checkpoint); err == nil {
			written++
			os.Remove(checkpoint)
		}
		return false
	}})
	if err != nil || written != 19 { // the last is at the check
		t.Errorf("%d checkpoints were written between checks, want 19: %v", written, err)
	}
}

// BeforeSave comes before every checkpoint, and its error leaves the one that is there as it is.
func TestBeforeSave(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	wanted := errors.New("wanted")
	var content []byte
	calls := 0
	_, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 2}, train.Call{Checkpoint: checkpoint, CheckpointSteps: 5, BeforeSave: func() (err error) {
		if calls++; calls == 3 {
			content, _ = os.ReadFile(checkpoint)
			return wanted
		}
		return nil
	}})
	if !errors.Is(err, wanted) || calls != 3 {
		t.Errorf("after %d calls, of which the third failed: %v", calls, err)
	}
	if got, err := os.ReadFile(checkpoint); err != nil || len(got) == 0 || !bytes.Equal(got, content) {
		t.Errorf("the checkpoint was written all the same, or there was none: %v", err)
	}
}

// A checkpoint whose parts don't fit is an error that names them.
func TestCheckpointContradictions(t *testing.T) {
	dir := t.TempDir()
	checkpoint := filepath.Join(dir, "c")
	c := everything(checkpoint)
	c.MaxSteps = 34
	if _, err := train.Fit(t.Context(), digits(t, 4), c.Config, c.Call); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		from, to string // in the state
		want     string
	}{
		{"fewer steps", `"step":34`, `"step":33`, "33 steps have been taken, but the last check was after 30 and 4 since then"},
		{"solver", `"steps":34`, `"steps":33`, "34 steps have been taken, but 33 by its solver"},
		{"observed", `"Checks":2`, `"Checks":3`, "its history has 2 checks, but 3 have been observed to stop by"},
		{"order", `"step":15`, `"step":30`, "check 1 of its history is after 30 steps, the one before after 30"},
		{"epoch", `"epoch":1`, `"epoch":2`, "check 1 of its history, after 30 steps, is of epoch 2, but with 20 steps in an epoch it is of epoch 1"},
		{"average", `"average":0.9`, `"average":0.8`, "Average 0.8, not 0.9"},
		{"plateau", `"threshold":0.2`, `"threshold":0.3`, "Plateau {Checks:1 Factor:0.5 Threshold:0.3"},
		{"no plateau", `"plateau":{"Factor"`, `"none":{"Factor"`, "it must say what a Plateau has observed"},
		{"moments", "", "", "isn't finite at element 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tensors, metadata, err := safetensors.ReadFile(checkpoint)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range tensors {
				if test.name == "moments" && strings.HasPrefix(m.Name, "adamw.second.") {
					m.Data.([]float32)[3] = float32(math.NaN())
				}
			}
			if !strings.Contains(metadata["heed.state"], test.from) {
				t.Fatalf("there is no %s in %s", test.from, metadata["heed.state"])
			}
			metadata["heed.state"] = strings.Replace(metadata["heed.state"], test.from, test.to, 1)
			changed := filepath.Join(dir, test.name)
			err = atomicfile.WriteFile(changed, func(w io.Writer) error { return safetensors.Write(w, tensors, metadata) })
			if err != nil {
				t.Fatal(err)
			}
			p, c := digits(t, 4), everything(changed)
			before := values(p.Params)
			c.Resume = true
			if _, err = train.Fit(t.Context(), p, c.Config, c.Call); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), changed) {
				t.Errorf("got  %v\nwant … %s …", err, test.want)
			}
			if !same(before, values(p.Params)) {
				t.Error("it changed the parameters")
			}
		})
	}
	c = everything(checkpoint)
	c.Resume, c.Optimizer.Plateau = true, optim.Plateauing{}
	if _, err := train.Fit(t.Context(), digits(t, 4), c.Config, c.Call); err == nil || !strings.Contains(err.Error(), "Plateau") {
		t.Errorf("resumed without the plateau: %v", err)
	}
}

// A run that is interrupted in the middle of an epoch, and resumed, is the run that never was.
func TestFitResumes(t *testing.T) {
	whole := digits(t, 4)
	want, err := train.Fit(context.Background(), whole, train.Config{BatchSize: 16, MaxEpochs: 6}, train.Call{Seed: 7, Checkpoint: filepath.Join(t.TempDir(), "c")})
	if err != nil {
		t.Fatal(err)
	}

	checkpoint := filepath.Join(t.TempDir(), "c")
	ctx, cancel := context.WithCancel(context.Background())
	p := digits(t, 4)
	r, err := train.Fit(ctx, p, train.Config{BatchSize: 16, MaxEpochs: 6}, train.Call{Seed: 7, Checkpoint: checkpoint, OnStep: func(epoch, step int, _ float64) bool {
		if epoch == 3 && step == 11 {
			cancel()
		}
		return false
	}})
	if !errors.Is(err, context.Canceled) || len(r.History) != 3 {
		t.Fatalf("after cancelling: %v, %+v", err, r)
	}

	p = digits(t, 8) // other initial values, which the checkpoint replaces
	p.Train = whole.Train
	got, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, MaxEpochs: 6}, train.Call{Seed: 7, Checkpoint: checkpoint, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.History {
		if !reflect.DeepEqual(want.History[i], got.History[i]) {
			t.Errorf("epoch %d: %+v, want %+v", i, got.History[i], want.History[i])
		}
	}
	if !reflect.DeepEqual(got.Best, want.Best) || !same(values(p.Params), values(whole.Params)) {
		t.Error("the resumed run left other parameters")
	}
}

func TestFitFinished(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	c := setup{train.Config{BatchSize: 16, MaxEpochs: 2}, train.Call{Checkpoint: checkpoint}}
	p := digits(t, 4)
	if _, err := train.Fit(context.Background(), p, c.Config, c.Call); err != nil {
		t.Fatal(err)
	}
	want := values(p.Params)
	c.Resume = true
	p = digits(t, 4)
	r, err := train.Fit(context.Background(), p, c.Config, c.Call)
	if err != nil || len(r.History) != 2 || !same(want, values(p.Params)) {
		t.Errorf("resuming a run that was done: %v, %+v", err, r)
	}
}

func TestFitDamagedCheckpoint(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	c := setup{train.Config{BatchSize: 16, MaxEpochs: 1}, train.Call{Checkpoint: checkpoint}}
	if _, err := train.Fit(context.Background(), digits(t, 4), c.Config, c.Call); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	c.Resume = true
	for name, content := range map[string][]byte{
		"empty":     nil,
		"cut short": whole[:len(whole)/2],
		"one byte":  whole[:len(whole)-1],
		"no state":  bytes.Replace(whole, []byte("heed.state"), []byte("heed.stale"), 1),
		"garbage":   bytes.Repeat([]byte{0xff}, 100),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(checkpoint, content, 0o644); err != nil {
				t.Fatal(err)
			}
			p := digits(t, 4)
			before := values(p.Params)
			_, err := train.Fit(context.Background(), p, c.Config, c.Call)
			if err == nil || !strings.Contains(err.Error(), checkpoint) {
				t.Errorf("the error should name the file: %v", err)
			}
			if !same(before, values(p.Params)) {
				t.Error("a checkpoint that can't be read changed the parameters")
			}
		})
	}
	os.Remove(checkpoint)
	if r, err := train.Fit(context.Background(), digits(t, 4), c.Config, c.Call); err != nil || len(r.History) != 1 {
		t.Errorf("with nothing to resume from: %v", err)
	}
}
