package train_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// The parameters that are validated and kept are the average, which no step begins from.
func TestFitAverages(t *testing.T) {
	const decay = 0.99
	var means [][]float32 // of what steps left
	fit := func(average float64, call train.Call) (*train.Result, [][]float32) {
		p := digits(t, 4)
		means = nil
		call.Seed, call.OnStep = 7, func(int, int, float64) bool {
			weights := values(p.Params)
			if means == nil {
				means = weights
			}
			for i, w := range weights {
				for j, x := range w {
					means[i][j] += (x - means[i][j]) * (1 - decay)
				}
			}
			return false
		}
		c := train.Config{BatchSize: 16, MaxEpochs: 2, Stopping: train.Stopping{KeepLast: true}}
		c.Optimizer = optim.Config{LearningRate: 1e-3, WeightDecay: 0.01, Average: average}
		r, err := train.Fit(t.Context(), p, c, call)
		if err != nil {
			t.Fatal(err)
		}
		return r, values(p.Params)
	}
	plain, weights := fit(0, train.Call{})
	averaged, kept := fit(decay, train.Call{})
	for i, c := range averaged.History {
		if c.TrainLoss != plain.History[i].TrainLoss {
			t.Errorf("the average changed training: the loss of epoch %d is %v, without it %v", i, c.TrainLoss, plain.History[i].TrainLoss)
		}
		if c.ValLoss <= plain.History[i].ValLoss {
			t.Errorf("the average, which is behind so early, validates as %v, the weights as %v", c.ValLoss, plain.History[i].ValLoss)
		}
	}
	if same(kept, weights) {
		t.Error("what is kept isn't the average")
	}
	for i, mean := range means {
		for j, x := range mean {
			if math.Abs(float64(kept[i][j]-x)) > 1e-6 {
				t.Fatalf("parameter %d has %v at %d, want the average %v", i, kept[i][j], j, x)
			}
		}
	}
	if _, own := fit(decay, train.Call{Solver: optim.NewAdamW(1e-3)}); !same(own, kept) {
		t.Error("a Solver of one's own isn't averaged")
	}
}

// What a callback is given of the history is its own.
func TestCallbacksAndHistory(t *testing.T) {
	p := digits(t, 1)
	var given []train.Check
	r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 5}, train.Call{OnCheck: func(history []train.Check, _ bool) (bool, error) {
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
	r, err = train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.Call{OnCheck: func([]train.Check, bool) (bool, error) { return true, nil }})
	if err != nil || r.Unfinished {
		t.Errorf("a stop where training ends: %v, %+v", err, r)
	}
}

// A parameter whose tensor a callback replaced can't get back the values that are kept.
func TestCallbackReplacesAParameter(t *testing.T) {
	p := digits(t, 1)
	_, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.Call{OnCheck: func([]train.Check, bool) (bool, error) {
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
	r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 2}, train.Call{Solver: solver, OnStep: func(int, int, float64) bool {
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

func TestWithoutValidation(t *testing.T) {
	p := digits(t, 1)
	p.Validation = train.Dataset{}
	var log strings.Builder
	r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, Stopping: train.Stopping{Patience: 1}, MaxEpochs: 3}, train.Call{Log: &log, Solver: optim.NewAdamW(0.02)})
	if err != nil || len(r.History) != 3 || r.Best.Validated || r.Best.TrainLoss > r.History[0].TrainLoss {
		t.Fatalf("%+v, %v", r, err)
	}
	if want := fmt.Sprintf("Epoch 2: Train=%.3f\n", r.History[2].TrainLoss); !strings.HasSuffix(log.String(), want) {
		t.Errorf("the log is %q", log.String())
	}
	_, err = train.Fit(t.Context(), p, train.Config{BatchSize: 16, Stopping: train.Stopping{Patience: 1, Monitor: "val_loss"}}, train.Call{})
	if err == nil || !strings.Contains(err.Error(), `stopping.monitor must be one of train_loss, got "val_loss"`) {
		t.Errorf("val_loss without validation: %v", err)
	}
}

func TestCheckEvery(t *testing.T) {
	var log strings.Builder
	r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, CheckEvery: 7, MaxEpochs: 2}, train.Call{Log: &log, Solver: optim.NewAdamW(0.02)})
	if err != nil {
		t.Fatal(err)
	}
	var steps, epochs []int
	for _, c := range r.History {
		steps, epochs = append(steps, c.Step), append(epochs, c.Epoch)
	}
	if !slices.Equal(steps, []int{7, 14, 21, 28, 35, 40}) || !slices.Equal(epochs, []int{0, 0, 1, 1, 1, 1}) || r.StoppedBecause != "it was to take 40 steps at most" {
		t.Errorf("checks after steps %v, in epochs %v, %s", steps, epochs, r.StoppedBecause)
	}
	if !strings.HasPrefix(log.String(), fmt.Sprintf("Step 7: Train=%.3f, Val=%.3f\nStep 14: ", r.History[0].TrainLoss, r.History[0].ValLoss)) {
		t.Errorf("the log is %q", log.String())
	}
	log.Reset()
	r, err = train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, CheckEvery: 3, Stopping: train.Stopping{Patience: 2}}, train.Call{Log: &log, Solver: G.NewVanillaSolver(G.WithLearnRate(0))})
	if err != nil || len(r.History) != 3 || !strings.HasSuffix(r.StoppedBecause, "has not improved for 2 checks: the best is "+fmt.Sprintf("%.4g", r.Best.ValLoss)+", of check 0") {
		t.Errorf("%+v, %v", r, err)
	}
	if !strings.HasSuffix(log.String(), "Early stopping at step 9\n") {
		t.Errorf("the log is %q", log.String())
	}
}

// What a limit ends after any step goes on as if it had not.
func TestLimits(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, every := range []int{0, 7} {
		fit := func(checkpoint string, resume bool, most int) (*train.Result, [][]float32) {
			p := digits(t, 1)
			p.Train.Len = 90 // 6 steps, the last of them short
			p.Train.Order = train.Shuffled
			r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MicroBatches: 2, Stopping: train.Stopping{Patience: 9}, MaxEpochs: 3, CheckEvery: every}, train.Call{MaxSteps: most, Seed: 3, Checkpoint: checkpoint, Resume: resume, Solver: optim.NewAdamW(0.01)})
			if err != nil {
				t.Fatal(err)
			}
			return r, values(p.Params)
		}
		want, weights := fit(filepath.Join(t.TempDir(), "c"), false, 0)
		if want.Unfinished || len(want.History) != 3 {
			t.Fatalf("%+v", want)
		}
		for most := 1; most < 18; most++ {
			checkpoint := filepath.Join(t.TempDir(), "c")
			r, _ := fit(checkpoint, false, most)
			if because := fmt.Sprintf("the limit of %d step", most); !r.Unfinished || r.StoppedEarly || !strings.HasPrefix(r.StoppedBecause, because) {
				t.Fatalf("after %d steps: %+v", most, r)
			}
			if again, _ := fit(checkpoint, true, most); !again.Unfinished || len(again.History) != len(r.History) {
				t.Errorf("with the limit that it reached: %+v", again)
			}
			if most%3 == 0 {
				fit(checkpoint, true, most+2)
			}
			got, end := fit(checkpoint, true, 0)
			if !reflect.DeepEqual(got, want) || !same(end, weights) {
				t.Errorf("interrupted after %d steps: %+v, want %+v", most, got, want)
			}
		}
	}
	checkpoint := filepath.Join(t.TempDir(), "c")
	r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16}, train.Call{MaxTime: time.Nanosecond, Checkpoint: checkpoint})
	if err != nil || !r.Unfinished || len(r.History) != 0 || !strings.HasPrefix(r.StoppedBecause, "the limit of 1ns is reached, after 0 steps") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(checkpoint); err == nil {
		t.Error("a checkpoint of no step was written, which can't be resumed")
	}
	var batches [][]int
	p := digits(t, 1)
	p.Train = noted(p.Train, &batches)
	if _, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16}, train.Call{MaxSteps: 2}); err != nil || len(batches) != 3 {
		t.Errorf("%v: %d batches were made for 2 steps, want one for each and the one that the graph is built by", err, len(batches))
	}
}

// The greatest number of epochs is as good as no end.
func TestAnyNumberOfEpochs(t *testing.T) {
	for _, every := range []int{0, 2} {
		r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 1 << 30, CheckEvery: every}, train.Call{MaxSteps: 50})
		if err != nil || !r.Unfinished || len(r.History) != 50/cmp.Or(every, 20) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// A fit leaves no goroutine, whatever ended it.
func TestFitEndsItsGoroutines(t *testing.T) {
	ends := map[string]func(p *train.Problem, c *setup){
		"the last epoch": func(p *train.Problem, c *setup) {},
		"a limit":        func(p *train.Problem, c *setup) { c.MaxSteps = 3 },
		"a batch": func(p *train.Problem, c *setup) {
			p.Validation = changed(p.Validation, func(examples []int, b *train.Batch) {
				if examples[0] > 0 {
					b.Weight = -1
				}
			})
		},
		"a validation loss": func(p *train.Problem, c *setup) {
			p.Validation = changed(p.Validation, func(_ []int, b *train.Batch) { b.Values[0].Float32s()[0] = float32(math.NaN()) })
		},
		"OnCheck": func(p *train.Problem, c *setup) {
			c.OnCheck = func([]train.Check, bool) (bool, error) { return false, errors.New("enough") }
		},
	}
	fit := func(end func(p *train.Problem, c *setup)) {
		p, c := digits(t, 1), setup{train.Config{BatchSize: 16, MicroBatches: 2, MaxEpochs: 1, CheckEvery: 5}, train.Call{Workers: 2}}
		p.ValidationSize = 10
		end(&p, &c)
		train.Fit(t.Context(), p, c.Config, c.Call)
	}
	fit(ends["a limit"]) // the kernels' helpers stay
	before := runtime.NumGoroutine()
	for name, end := range ends {
		for range 5 {
			fit(end)
		}
		for range 100 { // machines' goroutines may take a moment
			if runtime.NumGoroutine() <= before {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%s: %d goroutines, %d before", name, after, before)
		}
	}
}

func TestMetrics(t *testing.T) {
	p := metered(t, func(loss, mean, count *G.Node) []train.Metric {
		return []train.Metric{{Name: "mean", Sum: mean}, {Name: "half", Sum: mean, Count: count}, {Name: "perplexity", Sum: loss, Of: math.Exp}}
	})
	p.Train.Len, p.Validation.Len = 40, 70 // the last batches are short
	var want [2]float64
	for i, d := range []train.Dataset{p.Train, p.Validation} {
		var examples []int
		for e := range d.Len {
			examples = append(examples, e)
		}
		b, err := d.Batch(examples)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range b.Values[0].Float32s() {
			want[i] += float64(x) / float64(4*d.Len)
		}
	}
	for _, micro := range []int{1, 4} {
		var log strings.Builder
		r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MicroBatches: micro, MaxEpochs: 1, Stopping: train.Stopping{Monitor: "val_perplexity", Mode: "min"}}, train.Call{Log: &log})
		if err != nil {
			t.Fatal(err)
		}
		m := r.Best.Metrics
		if len(m) != 6 || math.Abs(m["train_mean"]-want[0]) > 1e-6 || math.Abs(m["val_mean"]-want[1]) > 1e-6 {
			t.Errorf("%d micro-batches: %v, want means of %v", micro, m, want)
		}
		if m["train_perplexity"] != math.Exp(r.Best.TrainLoss) || m["val_perplexity"] != math.Exp(r.Best.ValLoss) || m["val_half"] == m["val_mean"] {
			t.Errorf("%d micro-batches: %v", micro, m)
		}
		if want := fmt.Sprintf("; half: Train=%.3f, Val=%.3f; mean: Train=%.3f, Val=", m["train_half"], m["val_half"], m["train_mean"]); !strings.Contains(log.String(), want) {
			t.Errorf("the log is %q", log.String())
		}
		values, err := train.Evaluate(t.Context(), p)
		if err != nil || len(values) != 4 || values["val_mean"] != m["val_mean"] || values["val_perplexity"] != m["val_perplexity"] {
			t.Errorf("Evaluate has %v (%v), Fit %v", values, err, m)
		}
	}
	for _, c := range []struct {
		name    string
		metrics func(loss, mean, count *G.Node) []train.Metric
		want    string
	}{
		{"two of one name", func(loss, mean, _ *G.Node) []train.Metric {
			return []train.Metric{{Name: "x", Sum: mean}, {Name: "x", Sum: loss}}
		}, `a name of its own, other than loss, got "x"`},
		{"no name", func(_, mean, _ *G.Node) []train.Metric { return []train.Metric{{Sum: mean}} }, `got ""`},
		{"loss", func(_, mean, _ *G.Node) []train.Metric { return []train.Metric{{Name: "loss", Sum: mean}} }, `got "loss"`},
		{"loss in another case", func(_, mean, _ *G.Node) []train.Metric { return []train.Metric{{Name: "Loss", Sum: mean}} }, `got "Loss"`},
		{"no sum", func(_, _, count *G.Node) []train.Metric { return []train.Metric{{Name: "x", Count: count}} }, "metric x must have a Sum"},
		{"no scalar", func(loss, _, _ *G.Node) []train.Metric {
			return []train.Metric{{Name: "x", Sum: loss.Graph().ByName("input 0")[0]}}
		}, "scalar nodes"},
		{"of another graph", func(_, _, _ *G.Node) []train.Metric {
			return []train.Metric{{Name: "x", Sum: G.NewScalar(G.NewGraph(), tensor.Float32)}}
		}, "of the inputs' graph"},
		{"none of that name", func(_, mean, _ *G.Node) []train.Metric { return []train.Metric{{Name: "y", Sum: mean}} }, `one of train_loss, val_loss, train_y, val_y, got "val_x"`},
	} {
		_, err := train.Fit(t.Context(), metered(t, c.metrics), train.Config{BatchSize: 16, MaxEpochs: 1, Stopping: train.Stopping{Monitor: "val_x", Mode: "max"}}, train.Call{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to say %q", c.name, err, c.want)
		}
	}
}
