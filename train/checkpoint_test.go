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
	"slices"
	"strings"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// rewrite writes a checkpoint to another file, with the state that change returns.
func rewrite(t *testing.T, from, to string, change func(state string, tensors []safetensors.Tensor) string) {
	t.Helper()
	tensors, metadata, err := safetensors.ReadFile(from)
	must.Do(t, err)
	metadata["heed.state"] = change(metadata["heed.state"], tensors)
	must.Do(t, atomicfile.WriteFile(to, func(w io.Writer) error { return safetensors.Write(w, tensors, metadata) }))
}

// replaced returns a change for rewrite that replaces a text in the state.
func replaced(t *testing.T, old, new string) func(state string, tensors []safetensors.Tensor) string {
	return func(state string, _ []safetensors.Tensor) string {
		if !strings.Contains(state, old) {
			t.Fatalf("the state has no %s: %s", old, state)
		}
		return strings.Replace(state, old, new, 1)
	}
}

// Fit doesn't resume from a checkpoint of another run, or from one whose state has a repeated key.
func TestCheckpointOfAnotherRun(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(run string, resume bool) error {
		return failure(train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{MaxSteps: 5, Checkpoint: checkpoint, Resume: resume, Run: run}))
	}
	must.Do(t, fit("a", false))
	for _, other := range []string{"b", ""} {
		wantError(t, "resuming as run "+other, fit(other, true), checkpoint+` belongs to another run: to "a", not to "`+other+`"`)
	}
	must.Do(t, fit("a", true))

	rewrite(t, checkpoint, checkpoint, func(state string, _ []safetensors.Tensor) string { return `{"step":1,` + state[1:] })
	wantError(t, "resuming from a state with two steps", fit("a", true), `"step" is given twice`)
}

// A checkpoint holds the processor's instructions. Resuming with others says so, once.
func TestResumeWithOtherInstructions(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(steps int) string {
		var log strings.Builder
		options := train.RunOptions{MaxSteps: steps, Checkpoint: checkpoint, Resume: true, Log: &log}
		must.Get(train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 1}, options))(t)
		return log.String()
	}
	fit(5)
	now := kernel.Instructions()
	rewrite(t, checkpoint, checkpoint, replaced(t, `"instructions":"`+now+`"`, `"instructions":"other"`))
	for i, want := range []int{1, 0} {
		if log := fit(6 + i); strings.Count(log, "Resuming with the instructions "+now+" after other") != want {
			t.Errorf("resumed up to step %d, the log is %q, want the notice %d times", 6+i, log, want)
		}
	}
}

// ReadProgress reads only the header of a checkpoint, so damaged tensors don't matter.
func TestReadProgress(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	if _, err := train.ReadProgress(checkpoint); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: got %v, want fs.ErrNotExist", err)
	}
	r := fitted(t, digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 2}, train.RunOptions{MaxSteps: 25, Checkpoint: checkpoint, Run: "a"})
	r.History = r.History[:1] // the check at the end isn't in the checkpoint
	content := must.Get(os.ReadFile(checkpoint))(t)
	content[len(content)-1] ^= 1
	must.Do(t, os.WriteFile(checkpoint, content, 0o666))
	p, err := train.ReadProgress(checkpoint)
	if err != nil || p.Run != "a" || p.Step != 25 || len(p.History) != 1 || !reflect.DeepEqual(p.History, r.History) {
		t.Errorf("got %+v, %v, want run a, 25 steps and the history %v", p, err, r.History)
	}
	for _, bad := range [][]byte{
		content[:100], bytes.Replace(content, []byte("heed.state"), []byte("heed.other"), 1), bytes.Replace(content, []byte(`\"step\":25`), []byte(`\"step\":15`), 1),
	} {
		must.Do(t, os.WriteFile(checkpoint, bad, 0o666))
		wantError(t, "with a damaged header", failure(train.ReadProgress(checkpoint)), checkpoint)
	}
}

// If a setting changes the examples of a step, resuming with another value returns an error.
func TestResumeWithOtherExamples(t *testing.T) {
	c := setup{train.Config{BatchSize: 16, MaxEpochs: 2}, train.RunOptions{MaxSteps: 3, Seed: 1, Checkpoint: filepath.Join(t.TempDir(), "c")}}
	run := func(change func(p *train.Problem, c *setup)) error {
		p, c := digits(t, 1), c
		p.Train.Order = train.Shuffled
		change(&p, &c)
		return failure(train.Fit(t.Context(), p, c.Config, c.RunOptions))
	}
	must.Do(t, run(func(*train.Problem, *setup) {}))
	c.Resume, c.MaxSteps = true, 0
	for want, change := range map[string]func(p *train.Problem, c *setup){
		"with other settings: Precision float32, not bfloat16: resume": func(_ *train.Problem, c *setup) { c.Precision = layers.BFloat16 },
		"with other settings: Seed 1, not 2: resume with the settings": func(_ *train.Problem, c *setup) { c.Seed = 2 },
		": Order 0, not 1: resume":                                     func(p *train.Problem, _ *setup) { p.Train.Order = train.InOrder },
		": steps in an epoch 20, not 21: resume":                       func(p *train.Problem, _ *setup) { p.Train.Bucket = func(e int) int { return e % 3 } },
		": Validation.Len 100, not 99: resume":                         func(p *train.Problem, _ *setup) { p.Validation.Len = 99 },
		"with other settings: MicroBatches 1, not 2: resume":           func(_ *train.Problem, c *setup) { c.MicroBatches = 2 },
		": BatchSize 16, not 8; steps in an epoch 20, not 40: resume":  func(_ *train.Problem, c *setup) { c.BatchSize = 8 },
		": rule optim.AdamW, not optim.SGD: resume": func(_ *train.Problem, c *setup) {
			c.Solver = &optim.Solver{Rule: optim.SGD{}, LearningRate: 0.1}
		},
		`to another model or solver: it has no "lion.mean.`: func(_ *train.Problem, c *setup) {
			c.Solver = &optim.Solver{LearningRate: 0.1, Groups: []optim.Group{{Match: func(string, int) bool { return true }, Rule: optim.Lion{}}}}
		},
	} {
		wantError(t, "other examples", run(change), want)
	}
	must.Do(t, run(func(_ *train.Problem, c *setup) { c.MicroBatches = 1 })) // the same as 0
}

// From any state, Fit resumes or returns an error; it doesn't panic.
func FuzzCheckpoint(f *testing.F) {
	checkpoint := filepath.Join(f.TempDir(), "good")
	fit := func(tb testing.TB, checkpoint string, resume bool, steps int) error {
		return failure(train.Fit(tb.Context(), digits(tb, 1), train.Config{BatchSize: 16, MaxEpochs: 2, CheckEvery: 2}, train.RunOptions{MaxSteps: steps, Checkpoint: checkpoint, Resume: resume}))
	}
	must.Do(f, fit(f, checkpoint, false, 5))
	tensors, metadata, err := safetensors.ReadFile(checkpoint)
	must.Do(f, err)
	state := metadata["heed.state"]
	f.Add(state)
	for _, span := range regexp.MustCompile(`[-+.e0-9]+[,}\]]`).FindAllStringIndex(state, -1) {
		for _, number := range []string{"-1", "0", "9223372036854775807", "1e308", "null"} {
			f.Add(state[:span[0]] + number + state[span[1]-1:])
		}
	}
	f.Fuzz(func(t *testing.T, state string) {
		path := filepath.Join(t.TempDir(), "c")
		err := atomicfile.WriteFile(path, func(w io.Writer) error {
			return safetensors.Write(w, tensors, map[string]string{"heed.state": state})
		})
		if err != nil {
			return // the state isn't UTF-8
		}
		fit(t, path, true, 7) // must end without a panic
	})
}

// everything is a setup in which each part of a checkpoint matters. An epoch of digits has 20 steps.
func everything(checkpoint string) setup {
	return setup{train.Config{
		BatchSize: 16, MicroBatches: 2, MaxEpochs: 4, CheckEvery: 15,
		Optimizer: optim.Config{
			LearningRate: 0.02, WeightDecay: 0.01, ClipNorm: 0.5, Schedule: optim.ScheduleConfig{Kind: "constant", WarmUp: 30},
			Plateau: optim.PlateauConfig{Checks: 1, Threshold: 0.4, Factor: 0.5}, Average: 0.9,
		},
	}, train.RunOptions{Seed: 7, Checkpoint: checkpoint, CheckpointSteps: 4}}
}

func content(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}

// A run that ends early, at any step, and resumes has the same history, parameters and checkpoint as an uninterrupted
// run. The last of the 20 steps of an epoch is short.
func TestResumeAnywhere(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	dir := t.TempDir()
	problem := func() train.Problem {
		p := digits(t, 4)
		p.Train.Order, p.Train.Len = train.Shuffled, 314
		return p
	}
	p := problem()
	want := fitted(t, p, everything(filepath.Join(dir, "whole")).Config, everything(filepath.Join(dir, "whole")).RunOptions)
	if last := want.History[len(want.History)-1]; last.Step != 80 || last.LearningRate >= 0.02 {
		t.Fatalf("got the last check %+v, want one at step 80, with a learning rate lowered by the plateau", last)
	}
	crash := errors.New("crash")
	for ending, end := range map[string]func(p *train.Problem, c *setup, step int, cancel func()){
		"a limit": func(_ *train.Problem, c *setup, step int, _ func()) { c.MaxSteps = step },
		"OnStep": func(_ *train.Problem, c *setup, step int, _ func()) {
			c.OnStep = func(epoch, i int, _ float64) bool { return epoch*20+i+1 == step }
		},
		"ctx": func(_ *train.Problem, c *setup, step int, cancel func()) {
			c.OnStep = func(epoch, i int, _ float64) bool {
				if epoch*20+i+1 == step {
					cancel()
				}
				return false
			}
		},
		"a crash": func(p *train.Problem, _ *setup, step int, _ func()) { // loses the steps since the last checkpoint
			batch, calls := p.Train.Batch, -1 // the first call is used to build the graph
			p.Train.Batch = func(examples []int) ([]*tensor.Dense, error) {
				if calls++; calls > 2*step {
					return nil, crash
				}
				return batch(examples)
			}
		},
		"fewer epochs": func(_ *train.Problem, c *setup, step int, _ func()) { c.MaxEpochs = (step + 19) / 20 },
	} {
		for _, step := range []int{1, 3, 15, 16, 30, 59, 60, 62, 79} {
			t.Run(fmt.Sprintf("%s at step %d", ending, step), func(t *testing.T) {
				checkpoint := filepath.Join(dir, "c")
				os.Remove(checkpoint)
				first, c := problem(), everything(checkpoint)
				ctx, cancel := context.WithCancel(t.Context())
				end(&first, &c, step, cancel)
				r, err := train.Fit(ctx, first, c.Config, c.RunOptions)
				if err != nil && !errors.Is(err, crash) && (ending != "ctx" || !errors.Is(err, context.Canceled)) || ending != "fewer epochs" && r != nil && err == nil && !r.Unfinished {
					t.Fatalf("the first part ended with %v, %+v, want a crash or an unfinished result", err, r)
				}
				second, c := problem(), everything(checkpoint)
				if c.Resume = true; ending == "a limit" {
					c.MaxSteps = step
					if again := fitted(t, problem(), c.Config, c.RunOptions); !again.Unfinished || len(again.History) != len(r.History) {
						t.Errorf("resumed with the same limit: got %+v, want an unfinished result without new checks", again)
					}
					c.MaxSteps = 0
				}
				got := fitted(t, second, c.Config, c.RunOptions)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("the resumed run has the result\n%+v, want\n%+v", got, want)
				}
				if !same(values(second.Params), values(p.Params)) {
					t.Error("the resumed run has other parameters than the uninterrupted run")
				}
				if content(t, checkpoint) != content(t, filepath.Join(dir, "whole")) {
					t.Error("the resumed run's checkpoint differs from the uninterrupted run's")
				}
			})
		}
	}
}

func TestCheckpointTime(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	written := 0
	_, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{Checkpoint: checkpoint, CheckpointTime: time.Nanosecond, OnStep: func(epoch, step int, _ float64) bool {
		if _, err := os.Stat(checkpoint); err == nil {
			written++
			os.Remove(checkpoint)
		}
		return false
	}})
	if err != nil || written != 19 { // the 20th is written at the check
		t.Errorf("%d checkpoints were written between checks, %v, want 19", written, err)
	}
}

// BeforeSave is called before each write of the checkpoint. If it returns an error, the old checkpoint stays.
func TestBeforeSave(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	wanted := errors.New("wanted")
	var content []byte
	calls := 0
	_, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 2}, train.RunOptions{Checkpoint: checkpoint, CheckpointSteps: 5, BeforeSave: func() (err error) {
		if calls++; calls == 3 {
			content, _ = os.ReadFile(checkpoint)
			return wanted
		}
		return nil
	}})
	if !errors.Is(err, wanted) || calls != 3 {
		t.Errorf("got %d calls of BeforeSave and the error %v, want 3 calls and the error of the third", calls, err)
	}
	if got, err := os.ReadFile(checkpoint); err != nil || len(got) == 0 || !bytes.Equal(got, content) {
		t.Errorf("the checkpoint was changed or is missing, %v, want the one before the error", err)
	}
}

// If two parts of a checkpoint contradict each other, the error names both.
func TestCheckpointContradictions(t *testing.T) {
	dir := t.TempDir()
	checkpoint := filepath.Join(dir, "c")
	c := everything(checkpoint)
	c.MaxSteps = 34
	problem := func() train.Problem {
		p := digits(t, 4)
		p.Loss = added(p.Loss, func(_ *layers.Build, inputs G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
			columns := G.Must(G.Sum(inputs[0], 0)) // (B, 4) -> (4)
			return loss, []train.Metric{{Name: "columns", Sum: columns, Value: func(sums []float64) float64 { return sums[0] }}}
		})
		return p
	}
	fitted(t, problem(), c.Config, c.RunOptions)
	for _, test := range []struct {
		name         string
		old, changed string // texts in the state
		want         string
	}{
		{"fewer steps", `"step":34`, `"step":33`, "it counts 33 steps, but its last check is after step 30, with 4 steps since then"},
		{"solver", `"steps":34`, `"steps":33`, "it counts 34 steps, but its solver counts 33"},
		{"observed", `"Checks":2`, `"Checks":3`, "its history has 2 checks, but its early stopping has observed 3"},
		{"order", `"step":15`, `"step":30`, "check 1 of its history is after step 30, but the check before is after step 30"},
		{"epoch", `"epoch":1`, `"epoch":2`, "check 1 of its history is after step 30 in epoch 2, but with 20 steps per epoch this step is in epoch 1"},
		{"average", `"average":0.9`, `"average":0.8`, "Average 0.8, not 0.9"},
		{"plateau", `"threshold":0.4`, `"threshold":0.3`, "Plateau {Checks:1 Factor:0.5 Threshold:0.3"},
		{"no plateau", `"plateau":{"Factor"`, `"none":{"Factor"`, "both the settings and the state of a Plateau, or neither"},
		{"sums of a vector", `"metrics":[[`, `"metrics":[[1,`, "has 5 sums of the metric columns, not 4: resume with the metrics of the checkpoint"},
		{"moments", "", "", "isn't finite at element 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			changed := filepath.Join(dir, test.name)
			rewrite(t, checkpoint, changed, func(state string, tensors []safetensors.Tensor) string {
				for _, m := range tensors {
					if test.name == "moments" && strings.HasPrefix(m.Name, "adamw.second.") {
						m.Data.([]float32)[3] = float32(math.NaN())
					}
				}
				return replaced(t, test.old, test.changed)(state, nil)
			})
			p, c := problem(), everything(changed)
			before := values(p.Params)
			c.Resume = true
			_, err := train.Fit(t.Context(), p, c.Config, c.RunOptions)
			wantError(t, "Fit", err, test.want)
			wantError(t, "Fit", err, changed)
			if !same(before, values(p.Params)) {
				t.Error("a failed resume changed the parameters")
			}
		})
	}
	c = everything(checkpoint)
	c.Resume, c.Optimizer.Plateau = true, optim.PlateauConfig{}
	wantError(t, "resuming without the plateau", failure(train.Fit(t.Context(), problem(), c.Config, c.RunOptions)), "Plateau")
}

func TestFitDamagedCheckpoint(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	c := setup{train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{Checkpoint: checkpoint}}
	fitted(t, digits(t, 4), c.Config, c.RunOptions)
	whole := must.Get(os.ReadFile(checkpoint))(t)
	c.Resume = true
	for name, content := range map[string][]byte{
		"empty":     nil,
		"cut short": whole[:len(whole)/2],
		"one byte":  whole[:len(whole)-1],
		"no state":  bytes.Replace(whole, []byte("heed.state"), []byte("heed.stale"), 1),
		"garbage":   bytes.Repeat([]byte{0xff}, 100),
	} {
		t.Run(name, func(t *testing.T) {
			must.Do(t, os.WriteFile(checkpoint, content, 0o644))
			p := digits(t, 4)
			before := values(p.Params)
			wantError(t, "Fit", failure(train.Fit(context.Background(), p, c.Config, c.RunOptions)), checkpoint)
			if !same(before, values(p.Params)) {
				t.Error("a damaged checkpoint changed the parameters")
			}
		})
	}
	os.Remove(checkpoint)
	if r, err := train.Fit(context.Background(), digits(t, 4), c.Config, c.RunOptions); err != nil || len(r.History) != 1 {
		t.Errorf("resuming without a checkpoint: got %v, want training from the start", err)
	}
}

// A parameter that is frozen when training resumes keeps the values that training gave it, in the best check, too.
func TestResumeFreezes(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(steps int, keepLast bool, freeze ...string) (*train.Result, map[string][]float32) {
		p := digits(t, 1)
		must.Do(t, p.Params.Freeze(freeze...))
		c := train.Config{BatchSize: 16, MaxEpochs: 4, Optimizer: optim.Config{LearningRate: 0.01}, Stopping: train.StoppingConfig{KeepLast: keepLast}}
		if !keepLast { // the first check stays the best
			c.Stopping.Monitor, c.Stopping.Mode = "val_loss", "max"
		}
		r := fitted(t, p, c, train.RunOptions{Checkpoint: checkpoint, Resume: true, MaxSteps: steps})
		got := map[string][]float32{}
		for _, q := range p.Params.All() {
			got[q.Name] = slices.Clone(q.Value.Float32s())
		}
		return r, got
	}
	for _, keepLast := range []bool{true, false} {
		os.Remove(checkpoint)
		_, before := fit(25, keepLast)
		for _, steps := range []int{30, 50} { // twice, because the next checkpoint must have the values, too
			r, after := fit(steps, keepLast, "up")
			if !slices.Equal(after["up.weight"], before["up.weight"]) || !slices.Equal(after["up.bias"], before["up.bias"]) {
				t.Errorf("KeepLast %t, resumed to step %d: the frozen parameters have other values than before", keepLast, steps)
			}
			if moved := !slices.Equal(after["down.weight"], before["down.weight"]); moved != keepLast || r.Best.Step != map[bool]int{true: steps, false: 20}[keepLast] {
				t.Errorf("KeepLast %t, resumed to step %d: the trained parameters moved: %t; the kept check is %v", keepLast, steps, moved, r.Best)
			}
		}
	}
}

// Parameters that are frozen must be frozen again, with the same values. The error names them.
func TestResumeComparesFrozen(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(steps int, change func(p *layers.Params)) error {
		p := digits(t, 1)
		change(p.Params)
		return failure(train.Fit(t.Context(), p, train.Config{BatchSize: 16}, train.RunOptions{Checkpoint: checkpoint, Resume: true, MaxSteps: steps}))
	}
	freeze := func(p *layers.Params) {
		must.Do(t, p.Freeze("up"))
		p.Get("up.bias").Value.Memset(float32(0.5)) // as if it were loaded
	}
	must.Do(t, fit(5, freeze))
	wantError(t, "other values", fit(9, func(p *layers.Params) {
		freeze(p)
		p.Get("up.bias").Value.Memset(float32(0))
	}), `was made with other values of these frozen parameters: "up.bias": load the values`)
	wantError(t, "not frozen", fit(9, func(p *layers.Params) {
		freeze(p)
		p.Get("up.weight").Frozen = false
	}), `was made while these parameters were frozen: "up.weight": freeze them`)
	wantError(t, "with the same parameters frozen", fit(9, freeze), "")
}
