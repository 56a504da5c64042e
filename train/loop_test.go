package train_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// everything is a Config in which all that a checkpoint holds is in play. An epoch of digits has 20 steps.
func everything(checkpoint string) train.Config {
	plateau := &optim.Plateau{Threshold: 0.2, Factor: 0.5}
	solver := optim.NewAdamW(0.02)
	solver.Schedule = optim.WarmUp(30).Times(plateau.Schedule)
	solver.ClipNorm = 0.5
	return train.Config{
		MaxEpochs: 4, CheckEvery: 15, Seed: 7, Solver: solver, Checkpoint: checkpoint, CheckpointSteps: 4,
		Average: &optim.Average{Decay: 0.9}, Plateau: plateau,
	}
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
	dir := t.TempDir()
	p := digits(t, 4)
	want, err := train.Fit(t.Context(), p, everything(filepath.Join(dir, "whole")))
	if err != nil {
		t.Fatal(err)
	}
	if last := want.History[len(want.History)-1]; last.Step != 80 || last.LearningRate >= 0.02 {
		t.Fatalf("the end is no check of its own, or the plateau has lowered no rate: %+v", last)
	}
	crash := errors.New("crash")
	for how, end := range map[string]func(p *train.Problem, c *train.Config, step int){
		"a limit": func(_ *train.Problem, c *train.Config, step int) { c.MaxSteps = step },
		"OnStep": func(_ *train.Problem, c *train.Config, step int) {
			c.OnStep = func(epoch, i int, _ float64) bool { return epoch*20+i+1 == step }
		},
		"a crash": func(p *train.Problem, _ *train.Config, step int) { // loses what is since the last checkpoint
			of := p.Train.Batch
			p.Train.Batch = func(examples []int) (train.Batch, error) {
				if examples[0] == step*16 {
					return train.Batch{}, crash
				}
				return of(examples)
			}
		},
		"fewer epochs": func(_ *train.Problem, c *train.Config, step int) { c.MaxEpochs = (step + 19) / 20 },
	} {
		for _, step := range []int{1, 3, 15, 16, 30, 59, 60, 62, 79} {
			t.Run(fmt.Sprintf("%s at step %d", how, step), func(t *testing.T) {
				checkpoint := filepath.Join(dir, "c")
				os.Remove(checkpoint)
				first, c := digits(t, 4), everything(checkpoint)
				end(&first, &c, step)
				if r, err := train.Fit(t.Context(), first, c); err != nil && !errors.Is(err, crash) || how != "fewer epochs" && r != nil && err == nil && !r.Unfinished {
					t.Fatalf("the first part ended with %v, %+v", err, r)
				}
				second, c := digits(t, 4), everything(checkpoint)
				c.Resume = true
				got, err := train.Fit(t.Context(), second, c)
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

// The parameters that are validated and kept are the average, which no step begins from.
func TestFitAverages(t *testing.T) {
	fit := func(average *optim.Average) (*train.Result, [][]float32) {
		p := digits(t, 4)
		r, err := train.Fit(t.Context(), p, train.Config{MaxEpochs: 2, Seed: 7, Average: average, Stopping: train.Stopping{KeepLast: true}})
		if err != nil {
			t.Fatal(err)
		}
		return r, values(p.Params)
	}
	plain, weights := fit(nil)
	average := &optim.Average{Decay: 0.99}
	averaged, kept := fit(average)
	for i, c := range averaged.History {
		if c.TrainLoss != plain.History[i].TrainLoss {
			t.Errorf("the average changed training: the loss of epoch %d is %v, without it %v", i, c.TrainLoss, plain.History[i].TrainLoss)
		}
		if c.ValLoss <= plain.History[i].ValLoss {
			t.Errorf("the average, which is behind so early, validates as %v, the weights as %v", c.ValLoss, plain.History[i].ValLoss)
		}
	}
	var means [][]float32
	for _, v := range average.Values {
		means = append(means, v.Float32s())
	}
	if same(kept, weights) || !same(kept, means) {
		t.Error("what is kept isn't the average")
	}
}

// What a callback is given of the history is its own.
func TestCallbacksAndHistory(t *testing.T) {
	p := digits(t, 1)
	var given []train.Check
	r, err := train.Fit(t.Context(), p, train.Config{MaxEpochs: 5, OnCheck: func(history []train.Check, _ bool) (bool, error) {
		history[0] = train.Check{Epoch: 100}
		given = append(history[:0], history...)
		return len(history) == 2, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.History) != 2 || len(given) != 2 || !r.Unfinished || r.StoppedEarly || r.StoppedBecause != "OnCheck asked for it" {
		t.Errorf("after a stop at the second check: %+v", r)
	}
	if r.History[0].Epoch != 0 || r.History[0].TrainLoss == 0 {
		t.Errorf("a callback changed the history to %+v", r.History[0])
	}
	r, err = train.Fit(t.Context(), p, train.Config{MaxEpochs: 1, OnCheck: func([]train.Check, bool) (bool, error) { return true, nil }})
	if err != nil || r.Unfinished {
		t.Errorf("a stop where training ends: %v, %+v", err, r)
	}
}

// A parameter whose tensor a callback replaced can't get back the values that are kept.
func TestCallbackReplacesAParameter(t *testing.T) {
	p := digits(t, 1)
	_, err := train.Fit(t.Context(), p, train.Config{MaxEpochs: 1, OnCheck: func([]train.Check, bool) (bool, error) {
		p.Params.All()[0].Value = tensor.New(tensor.WithShape(1), tensor.Of(p.Params.Dtype()))
		return false, nil
	}})
	if err == nil || !strings.Contains(err.Error(), "going back to the parameters that are kept") {
		t.Errorf("got %v", err)
	}
}

// The norm is the mean over the steps of a check, and the rate that of its last one.
func TestHistoryOfTheSolver(t *testing.T) {
	p := digits(t, 1)
	solver := optim.NewAdamW(0.02)
	solver.Schedule = optim.WarmUp(40)
	var norms []float64
	r, err := train.Fit(t.Context(), p, train.Config{MaxEpochs: 2, Solver: solver, OnStep: func(int, int, float64) bool {
		norms = append(norms, solver.Norm())
		return false
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range r.History {
		mean := 0.0
		for _, n := range norms[20*i:][:20] {
			mean += n / 20
		}
		if math.Abs(c.GradientNorm-mean) > 1e-9 || mean == 0 || math.Abs(c.LearningRate-0.01*float64(i+1)) > 1e-9 {
			t.Errorf("epoch %d has the norm %v and the rate %v, want %v and %v", i, c.GradientNorm, c.LearningRate, mean, 0.01*float64(i+1))
		}
	}
}

func TestCheckpointTime(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	written := 0
	_, err := train.Fit(t.Context(), digits(t, 1), train.Config{
		MaxEpochs: 1, Checkpoint: checkpoint, CheckpointTime: time.Nanosecond,
		OnStep: func(epoch, step int, _ float64) bool {
			if _, err := os.Stat(checkpoint); err == nil {
				written++
				os.Remove(checkpoint)
			}
			return false
		},
	})
	if err != nil || written != 19 { // the last is at the check
		t.Errorf("%d checkpoints were written between checks, want 19: %v", written, err)
	}
}

func TestDecimals(t *testing.T) {
	for x, want := range map[float64]string{
		0.457: "0.457", 0.000457: "0.000457", 0.0457: "0.0457", 12.3456: "12.346", 0: "0.000", -0.00123: "-0.00123", 1: "1.000",
		0.1: "0.100", 0.09996: "0.1000", 4.5e-12: "4.50e-12",
	} {
		if got := (train.Check{TrainLoss: x}).String(); got != "Epoch 0: Train="+want {
			t.Errorf("%v is printed as %q, want %q", x, got, want)
		}
	}
}

// A checkpoint whose parts don't fit is an error that names them.
func TestCheckpointContradictions(t *testing.T) {
	dir := t.TempDir()
	checkpoint := filepath.Join(dir, "c")
	c := everything(checkpoint)
	c.MaxSteps = 34
	if _, err := train.Fit(t.Context(), digits(t, 4), c); err != nil {
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
		{"average", `"average":0.9`, `"average":0.8`, "Average.Decay 0.8, not 0.9"},
		{"plateau", `"Threshold":0.2`, `"Threshold":0.3`, "Plateau {Factor:0.5 Patience:0 Threshold:0.3"},
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
			if _, err = train.Fit(t.Context(), p, c); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), changed) {
				t.Errorf("got  %v\nwant … %s …", err, test.want)
			}
			if !same(before, values(p.Params)) {
				t.Error("it changed the parameters")
			}
		})
	}
	c = everything(checkpoint)
	c.Resume, c.Plateau = true, nil
	if _, err := train.Fit(t.Context(), digits(t, 4), c); err == nil || !strings.Contains(err.Error(), "Plateau") {
		t.Errorf("resumed without the plateau: %v", err)
	}
}
