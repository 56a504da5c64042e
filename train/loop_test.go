package train_test

import (
	"bytes"
	"cmp"
	"context"
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

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// With an Average, Fit validates and keeps the averages. Training steps don't use them.
func TestFitAverages(t *testing.T) {
	const decay = 0.99
	var means [][]float32 // expected averages of the parameters
	var total float64     // sum of the shares of their weights, relative to the last
	fit := func(average float64, options train.RunOptions) (*train.Result, [][]float32) {
		p := digits(t, 4)
		means, total = nil, 0
		options.Seed, options.OnStep = 7, func(int, int, float64) bool {
			weights := values(p.Params)
			if means == nil {
				means = weights
			}
			total = decay*total + 1
			for i, w := range weights {
				for j, x := range w {
					means[i][j] += (x - means[i][j]) / float32(total)
				}
			}
			return false
		}
		c := train.Config{BatchSize: 16, MaxEpochs: 2, Stopping: train.StoppingConfig{KeepLast: true}}
		c.Optimizer = optim.Config{LearningRate: 1e-3, WeightDecay: 0.01, Average: average}
		r := fitted(t, p, c, options)
		return r, values(p.Params)
	}
	plain, weights := fit(0, train.RunOptions{})
	averaged, kept := fit(decay, train.RunOptions{})
	for i, c := range averaged.History {
		if c.TrainLoss != plain.History[i].TrainLoss {
			t.Errorf("with the average, the training loss of epoch %d is %v, want %v as without", i, c.TrainLoss, plain.History[i].TrainLoss)
		}
		if c.ValLoss <= plain.History[i].ValLoss {
			t.Errorf("the validation loss of the average is %v, want more than the loss of the weights, %v, because the average lags behind at first", c.ValLoss, plain.History[i].ValLoss)
		}
	}
	if same(kept, weights) {
		t.Error("with an Average, Fit keeps the weights")
	}
	for i, mean := range means {
		for j, x := range mean {
			if math.Abs(float64(kept[i][j]-x)) > 1e-6 {
				t.Fatalf("parameter %d is %v at element %d, want the average %v", i, kept[i][j], j, x)
			}
		}
	}
	if _, own := fit(decay, train.RunOptions{Solver: optim.NewAdamW(1e-3)}); !same(own, kept) {
		t.Error("Fit with a RunOptions.Solver doesn't keep the average")
	}
}

// The history that OnCheck gets is a copy.
func TestCallbacksAndHistory(t *testing.T) {
	p := digits(t, 1)
	var given []train.Check
	r := fitted(t, p, train.Config{BatchSize: 16, MaxEpochs: 5}, train.RunOptions{OnCheck: func(history []train.Check, _ bool) (bool, error) {
		history[0] = train.Check{Epoch: 100}
		given = append(history[:0], history...)
		return len(history) == 2, nil
	}})
	if len(r.History) != 2 || len(given) != 2 || !r.Unfinished || r.StoppedEarly || r.StoppedBecause != "OnCheck asked for it" {
		t.Errorf("OnCheck stops at the second check: got %+v, want two checks, unfinished", r)
	}
	if r.History[0].Epoch != 0 || r.History[0].TrainLoss == 0 {
		t.Errorf("OnCheck changed the first check of the result to %+v", r.History[0])
	}
	r = fitted(t, p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{OnCheck: func([]train.Check, bool) (bool, error) { return true, nil }})
	if r.Unfinished {
		t.Errorf("OnCheck stops at the last check: got %+v, want a finished result", r)
	}
}

// If a callback replaces the tensor of a parameter, Fit returns an error because it can't restore the parameter.
func TestCallbackReplacesAParameter(t *testing.T) {
	p := digits(t, 1)
	_, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{OnCheck: func([]train.Check, bool) (bool, error) {
		p.Params.All()[0].Value = tensor.New(tensor.WithShape(1), tensor.Of(p.Params.Dtype()))
		return false, nil
	}})
	wantError(t, "another tensor", err, "restoring the kept parameters")
}

// The gradient norm of a check is the mean over its steps, and its learning rate is the rate of the last step.
func TestHistoryOfTheSolver(t *testing.T) {
	p := digits(t, 1)
	solver := optim.NewAdamW(0.02)
	solver.Schedule = optim.WarmUp(40)
	var norms []float64
	r := fitted(t, p, train.Config{BatchSize: 16, MaxEpochs: 2}, train.RunOptions{Solver: solver, OnStep: func(int, int, float64) bool {
		norms = append(norms, solver.Norm)
		return false
	}})
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
	r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, Stopping: train.StoppingConfig{Patience: 1}, MaxEpochs: 3}, train.RunOptions{Log: &log, Solver: optim.NewAdamW(0.02)})
	if err != nil || len(r.History) != 3 || r.Best.Validated || r.Best.TrainLoss > r.History[0].TrainLoss {
		t.Fatalf("got %+v, %v, want 3 epochs, judged by a training loss that falls", r, err)
	}
	if want := fmt.Sprintf("Epoch 2: Train=%.3f\n", r.History[2].TrainLoss); !strings.HasSuffix(log.String(), want) {
		t.Errorf("the log is %q, want it to end with %q", log.String(), want)
	}
	wantError(t, "monitoring val_loss without validation data", failure(train.Fit(t.Context(), p, train.Config{BatchSize: 16, Stopping: train.StoppingConfig{Patience: 1, Monitor: "val_loss"}}, train.RunOptions{})), `stopping.monitor must be one of train_loss, got "val_loss"`)
}

func TestCheckEvery(t *testing.T) {
	var log strings.Builder
	r := fitted(t, digits(t, 1), train.Config{BatchSize: 16, CheckEvery: 7, MaxEpochs: 2}, train.RunOptions{Log: &log, Solver: optim.NewAdamW(0.02)})
	var steps, epochs []int
	for _, c := range r.History {
		steps, epochs = append(steps, c.Step), append(epochs, c.Epoch)
	}
	if !slices.Equal(steps, []int{7, 14, 21, 28, 35, 40}) || !slices.Equal(epochs, []int{0, 0, 1, 1, 1, 1}) || r.StoppedBecause != "the last epoch is done, after 40 steps" {
		t.Errorf("got checks after steps %v in epochs %v, and training stopped because %s; want a check every 7 steps and after step 40", steps, epochs, r.StoppedBecause)
	}
	if !strings.HasPrefix(log.String(), fmt.Sprintf("Step 7: Train=%.3f, Val=%.3f\nStep 14: ", r.History[0].TrainLoss, r.History[0].ValLoss)) {
		t.Errorf("the log is %q, want it to begin with the lines of steps 7 and 14", log.String())
	}
	log.Reset()
	r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, CheckEvery: 3, Stopping: train.StoppingConfig{Patience: 2}}, train.RunOptions{Log: &log, Solver: G.NewVanillaSolver(G.WithLearnRate(0))})
	if err != nil || len(r.History) != 3 || !strings.HasSuffix(r.StoppedBecause, "has not improved for 2 checks: the best is "+fmt.Sprintf("%.4g", r.Best.ValLoss)+", of check 0") {
		t.Errorf("got %+v, %v, want an early stop at the third check, after 2 without improvement", r, err)
	}
	if !strings.HasSuffix(log.String(), "Early stopping at step 9\n") {
		t.Errorf("the log is %q, want it to end with early stopping at step 9", log.String())
	}
}

// A limit may end training before its first step. Up to a limit, no batch is made in vain.
func TestLimits(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16}, train.RunOptions{MaxTime: time.Nanosecond, Checkpoint: checkpoint})
	if err != nil || !r.Unfinished || len(r.History) != 0 || !strings.HasPrefix(r.StoppedBecause, "the limit of 1ns is reached, after 0 steps") {
		t.Errorf("with a MaxTime of 1 ns: got %+v, %v, want an unfinished result without steps", r, err)
	}
	if _, err := os.Stat(checkpoint); err == nil {
		t.Error("Fit wrote a checkpoint without a step, which can't be resumed")
	}
	var batches [][]int
	p := digits(t, 1)
	p.Train = noted(p.Train, &batches)
	if _, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16}, train.RunOptions{MaxSteps: 2}); err != nil || len(batches) != 3 {
		t.Errorf("with 2 steps: got %v and %d batches, want one for each step and one for building the graph", err, len(batches))
	}
}

// Training ends with a check, also at a limit between two checks or before the first one: the last steps count.
func TestLastStepsCount(t *testing.T) {
	fit := func(c train.Config, options train.RunOptions) (*train.Result, [][]float32) {
		p := digits(t, 1)
		c.BatchSize, c.Optimizer.LearningRate = 16, 0.01
		r := fitted(t, p, c, options)
		return r, values(p.Params)
	}
	for name, c := range map[string]struct {
		config train.Config
		limit  func(o *train.RunOptions)
	}{
		"MaxSteps":                  {train.Config{CheckEvery: 5}, func(o *train.RunOptions) { o.MaxSteps = 7 }},
		"KeepLast":                  {train.Config{CheckEvery: 5, Stopping: train.StoppingConfig{KeepLast: true}}, func(o *train.RunOptions) { o.MaxSteps = 7 }},
		"no check before":           {train.Config{}, func(o *train.RunOptions) { o.MaxSteps = 7 }},
		"OnStep":                    {train.Config{MaxEpochs: 1}, func(o *train.RunOptions) { o.OnStep = func(_, step int, _ float64) bool { return step == 6 } }},
		"no check before, averages": {train.Config{Optimizer: optim.Config{Average: 0.5}}, func(o *train.RunOptions) { o.MaxSteps = 7 }},
	} {
		options := train.RunOptions{}
		c.limit(&options)
		got, parameters := fit(c.config, options)
		every := c.config
		every.CheckEvery, every.Stopping.KeepLast = 7, true
		want, last := fit(every, train.RunOptions{MaxSteps: 7})
		if n := len(got.History); n == 0 || !reflect.DeepEqual(got.History[n-1].ValLoss, want.Best.ValLoss) || got.Best.Step != 7 || !got.Unfinished || !same(parameters, last) {
			t.Errorf("%s: got %+v, want a check after the last of 7 steps, with its parameters", name, got)
		}
	}
}

// A check that only a limit has brought about doesn't stop training early.
func TestLastCheckIsNoReasonToStop(t *testing.T) {
	p, _ := scripted(t, []float64{1, 1, 1, 1}, []float64{1, 1, 1, 2, 2, 2, 2})
	var log bytes.Buffer
	c := train.Config{BatchSize: 1, CheckEvery: 2, Stopping: train.StoppingConfig{Patience: 1}}
	r := fitted(t, p, c, train.RunOptions{MaxSteps: 3, Log: &log, Solver: G.NewVanillaSolver(G.WithLearnRate(1))})
	if !r.Unfinished || r.StoppedEarly || len(r.History) != 2 || r.StoppedBecause != "the limit of 3 steps is reached" || strings.Contains(log.String(), "Early") {
		t.Errorf("got %+v and the log %q, want a limit and no early stopping", r, log.String())
	}
}

// Without a check, an error leaves the averages.
func TestAveragesWithoutACheck(t *testing.T) {
	fit := func(average float64, steps int) [][]float32 {
		p := digits(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		c := train.Config{BatchSize: 16, MaxEpochs: 1, Optimizer: optim.Config{LearningRate: 0.1, Average: average}}
		_, err := train.Fit(ctx, p, c, train.RunOptions{OnStep: at(steps-1, cancel)})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		return values(p.Params)
	}
	if same(fit(0.9, 5), fit(0, 5)) {
		t.Error("cancelled before the first check, Fit leaves the weights, want their averages")
	}
}

// MaxEpochs may have its maximum without an overflow of the number of steps.
func TestAnyNumberOfEpochs(t *testing.T) {
	for _, every := range []int{0, 2} {
		r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 1 << 30, CheckEvery: every}, train.RunOptions{MaxSteps: 50})
		if err != nil || !r.Unfinished || len(r.History) != (50+cmp.Or(every, 20)-1)/cmp.Or(every, 20) {
			t.Errorf("CheckEvery %d: got %+v, %v, want an unfinished result after 50 steps", every, r, err)
		}
	}
}

// wantGoroutines checks that there are at most n goroutines.
func wantGoroutines(t *testing.T, what string, n int) {
	t.Helper()
	// The goroutines of Gorgonia's machines need a moment to end, and longer on a busy machine.
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= n {
			return
		}
	}
	t.Errorf("%s: got %d goroutines, want at most %d, as before", what, runtime.NumGoroutine(), n)
}

// Fit leaves no goroutine behind, whatever ends training.
func TestFitEndsItsGoroutines(t *testing.T) {
	ends := map[string]func(p *train.Problem, c *setup){
		"the last epoch": func(p *train.Problem, c *setup) {},
		"a limit":        func(p *train.Problem, c *setup) { c.MaxSteps = 3 },
		"a batch": func(p *train.Problem, c *setup) {
			p.Validation = changed(p.Validation, func(examples []int, values []*tensor.Dense) {
				if examples[0] > 0 {
					values[0] = nil
				}
			})
		},
		"a validation loss": func(p *train.Problem, c *setup) {
			p.Validation = changed(p.Validation, func(_ []int, values []*tensor.Dense) { values[0].Float32s()[0] = float32(math.NaN()) })
		},
		"OnCheck": func(p *train.Problem, c *setup) {
			c.OnCheck = failAt(1, errors.New("enough"))
		},
	}
	fit := func(end func(p *train.Problem, c *setup)) {
		p, c := digits(t, 1), setup{train.Config{BatchSize: 16, MicroBatches: 2, MaxEpochs: 1, CheckEvery: 5}, train.RunOptions{Workers: 2}}
		p.ValidationSize = 10
		end(&p, &c)
		train.Fit(t.Context(), p, c.Config, c.RunOptions)
	}
	fit(ends["a limit"]) // starts the kernels' goroutines, which stay
	before := runtime.NumGoroutine()
	for name, end := range ends {
		for range 5 {
			fit(end)
		}
		wantGoroutines(t, name, before)
	}
}

// numbersOf returns the first inputs of all examples.
func numbersOf(t *testing.T, d train.Dataset) []float32 {
	var examples []int
	for e := range d.Len {
		examples = append(examples, e)
	}
	return must.Get(d.Batch(examples))(t)[0].Float32s()
}

// A metric may add up a vector: here the root of the sum of squares of column sums.
func TestVectorMetric(t *testing.T) {
	var vectors [][]float64
	p := metered(t, func(loss, _, _ *G.Node) []train.Metric {
		columns := G.Must(G.Sum(loss.Graph().ByName("input 0")[0], 0)) // (B, 4) -> (4)
		return []train.Metric{{Name: "norm", Sum: columns, Value: func(sums []float64) float64 {
			vectors = append(vectors, slices.Clone(sums))
			return math.Sqrt(sums[0]*sums[0] + sums[1]*sums[1] + sums[2]*sums[2] + sums[3]*sums[3])
		}}}
	})
	p.Train.Len, p.Validation.Len = 40, 70 // the last batches are short
	want := func(d train.Dataset) []float64 {
		sums := make([]float64, 4)
		for i, x := range numbersOf(t, d) {
			sums[i%4] += float64(x)
		}
		return sums
	}
	wants := [][]float64{want(p.Train), want(p.Validation), want(p.Validation)}
	for _, micro := range []int{1, 4} {
		vectors = nil
		r := fitted(t, p, train.Config{BatchSize: 16, MicroBatches: micro, MaxEpochs: 1, Stopping: train.StoppingConfig{Monitor: "val_norm", Mode: "min"}}, train.RunOptions{})
		values, err := train.Evaluate(t.Context(), p)
		if err != nil || len(vectors) != 3 {
			t.Fatalf("%d micro-batches: error %v, vectors %v; want three", micro, err, vectors)
		}
		for i, v := range vectors {
			for j, x := range v {
				if math.Abs(x-wants[i][j]) > 1e-4 {
					t.Errorf("%d micro-batches: the vectors are %v, want %v", micro, vectors, wants)
				}
			}
		}
		if got := r.Best.Metrics["val_norm"]; got != values["val_norm"] || got == 0 || r.Best.Metrics["train_norm"] == 0 {
			t.Errorf("%d micro-batches: Fit has metrics %v, and Evaluate %v", micro, r.Best.Metrics, values)
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
		for _, x := range numbersOf(t, d) {
			want[i] += float64(x) / float64(4*d.Len)
		}
	}
	for _, micro := range []int{1, 4} {
		var log strings.Builder
		r := fitted(t, p, train.Config{BatchSize: 16, MicroBatches: micro, MaxEpochs: 1, Stopping: train.StoppingConfig{Monitor: "val_perplexity", Mode: "min"}}, train.RunOptions{Log: &log})
		m := r.Best.Metrics
		if len(m) != 6 || math.Abs(m["train_mean"]-want[0]) > 1e-6 || math.Abs(m["val_mean"]-want[1]) > 1e-6 {
			t.Errorf("%d micro-batches: got metrics %v, want means of %v", micro, m, want)
		}
		if m["train_perplexity"] != math.Exp(r.Best.TrainLoss) || m["val_perplexity"] != math.Exp(r.Best.ValLoss) || m["val_half"] == m["val_mean"] {
			t.Errorf("%d micro-batches: got metrics %v, want perplexities of the losses, and val_half to differ from val_mean", micro, m)
		}
		if want := fmt.Sprintf("; half: Train=%.3f, Val=%.3f; mean: Train=%.3f, Val=", m["train_half"], m["val_half"], m["train_mean"]); !strings.Contains(log.String(), want) {
			t.Errorf("the log is %q, want it to contain %q", log.String(), want)
		}
		values, err := train.Evaluate(t.Context(), p)
		if err != nil || len(values) != 4 || values["val_mean"] != m["val_mean"] || values["val_perplexity"] != m["val_perplexity"] {
			t.Errorf("Evaluate returns %v, %v, want the validation metrics of Fit, %v", values, err, m)
		}
	}
	for _, c := range []struct {
		name    string
		metrics func(loss, mean, count *G.Node) []train.Metric
		want    string
	}{
		{"two with the same name", func(loss, mean, _ *G.Node) []train.Metric {
			return []train.Metric{{Name: "x", Sum: mean}, {Name: "x", Sum: loss}}
		}, `its own name, which must not be loss, got "x"`},
		{"no name", func(_, mean, _ *G.Node) []train.Metric { return []train.Metric{{Sum: mean}} }, `got ""`},
		{"loss", func(_, mean, _ *G.Node) []train.Metric { return []train.Metric{{Name: "loss", Sum: mean}} }, `got "loss"`},
		{"loss in another case", func(_, mean, _ *G.Node) []train.Metric { return []train.Metric{{Name: "Loss", Sum: mean}} }, `got "Loss"`},
		{"no sum", func(_, _, count *G.Node) []train.Metric { return []train.Metric{{Name: "x", Count: count}} }, "the Sum of metric x"},
		{"not a scalar", func(loss, _, _ *G.Node) []train.Metric {
			return []train.Metric{{Name: "x", Sum: loss.Graph().ByName("input 0")[0]}}
		}, "scalar nodes"},
		{"of another graph", func(_, _, _ *G.Node) []train.Metric {
			return []train.Metric{{Name: "x", Sum: G.NewScalar(G.NewGraph(), tensor.Float32)}}
		}, "in the graph of the inputs"},
		{"a Value of a scalar", func(_, mean, _ *G.Node) []train.Metric {
			return []train.Metric{{Name: "x", Sum: mean, Value: func([]float64) float64 { return 0 }}}
		}, "metric x has a Value, so its Sum must be a vector of at most 262144 elements"},
		{"a Value and a Count", func(loss, _, count *G.Node) []train.Metric {
			return []train.Metric{{Name: "x", Sum: G.Must(G.Sum(loss.Graph().ByName("input 0")[0], 0)), Count: count, Value: func([]float64) float64 { return 0 }}}
		}, "without Count and Of"},
		{"unknown name to monitor", func(_, mean, _ *G.Node) []train.Metric { return []train.Metric{{Name: "y", Sum: mean}} }, `one of train_loss, val_loss, train_y, val_y, got "val_x"`},
	} {
		wantError(t, c.name, failure(train.Fit(t.Context(), metered(t, c.metrics), train.Config{BatchSize: 16, MaxEpochs: 1, Stopping: train.StoppingConfig{Monitor: "val_x", Mode: "max"}}, train.RunOptions{})), c.want)
	}
}
