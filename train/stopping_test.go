package train_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// scripted is a problem whose losses are given: those of training and of validation, an epoch each. Its one parameter
// loses its learning rate with every epoch, so that it tells which epoch it is of.
func scripted(t *testing.T, trainLosses, valLosses []float64) (train.Problem, *layers.Param) {
	return scriptedFrom(t, 0, trainLosses, valLosses)
}

// scriptedFrom is scripted for a run that begins with an epoch.
func scriptedFrom(t *testing.T, epoch int, trainLosses, valLosses []float64) (train.Problem, *layers.Param) {
	t.Helper()
	p, err := layers.NewParams(tensor.Float64, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.New("w", layers.Zeros(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	batch := func(x, y float64) (train.Batch, error) {
		return train.Batch{Values: []*tensor.Dense{
			tensor.New(tensor.WithShape(1, 1), tensor.WithBacking([]float64{x})), tensor.New(tensor.WithShape(1, 1), tensor.WithBacking([]float64{y})),
		}, Weight: 1}, nil
	}
	validated := epoch - 1 // as the first batch is to build the graph with
	return train.Problem{
		Params: p,
		Loss: func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
			node, err := b.Bind(in[0].Graph(), w)
			if err != nil {
				return nil, nil, err
			}
			xw, err := G.Mul(in[0], node) // (1, 1) x (1, 1) -> (1, 1)
			if err != nil {
				return nil, nil, err
			}
			terms, err := G.Add(xw, in[1])
			if err != nil {
				return nil, nil, err
			}
			loss, err := G.Sum(terms) // (1, 1) -> ()
			return loss, nil, err
		},
		Train: train.Dataset{Len: 1, Order: train.Fresh, Batch: func(examples []int) (train.Batch, error) {
			e := min(examples[0], len(trainLosses)-1)
			return batch(1, trainLosses[e]+float64(e)) // w is -e where the learning rate is 1
		}},
		Validation: train.Dataset{Len: 1, Batch: func([]int) (train.Batch, error) {
			defer func() { validated++ }()
			return batch(0, valLosses[max(validated, 0)])
		}},
	}, w
}

var nan, inf = math.NaN(), math.Inf(1)

// peers is a table of losses and options with the epoch, the reason and the weights that must come of them. Each case
// holds Heed to what a peer's documentation says of its option, or to what Heed says where peers differ.
var peers = []struct {
	name    string
	options train.Stopping
	values  []float64 // of the monitored value; training ends by itself after the last
	epochs  int       // how many epochs it trains
	because string    // how StoppedBecause begins; empty if nothing stops it early
	kept    int       // the epoch whose weights are left
}{
	{"notebook: its run", train.Stopping{Patience: 2}, []float64{0.300, 0.378, 0.346, 0.1}, 3, "val_loss has not improved for 2 epochs: the best is 0.3, of epoch 0", 0},

	// Keras: keras.io/api/callbacks/early_stopping
	{"Keras: patience is the number of epochs with no improvement after which training is stopped", train.Stopping{Patience: 3}, []float64{1, 1, 1, 1, 1, 1}, 4, "val_loss has not improved for 3 epochs", 0},
	{"Keras: an improvement starts the count again", train.Stopping{Patience: 2}, []float64{3, 4, 2, 3, 1, 2, 2, 0}, 7, "val_loss has not improved for 2 epochs: the best is 1, of epoch 4", 4},
	{"Keras: a change of less than min_delta is no improvement", train.Stopping{Patience: 2, MinDelta: 0.25}, []float64{1, 0.875, 0.8125, 0}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 0},
	{"Keras: changes add up to min_delta", train.Stopping{Patience: 3, MinDelta: 0.25}, []float64{1, 0.875, 0.5, 0.375, 0.375, 0.375, 0}, 6, "val_loss has not improved for 3 epochs: the best is 0.5, of epoch 2", 2},
	{"Keras: mode max stops when it no longer increases", train.Stopping{Patience: 2, Mode: "max"}, []float64{0.25, 0.5, 0.5, 0.375, 0.75}, 4, "val_loss has not improved for 2 epochs: the best is 0.5, of epoch 1", 1},
	{"Keras: mode max with min_delta", train.Stopping{Patience: 2, Mode: "max", MinDelta: 0.25}, []float64{0.25, 0.75, 0.875, 1, 2}, 4, "val_loss has not improved for 2 epochs: the best is 0.75, of epoch 1", 1},
	{"Keras: without improvement on the baseline it runs for patience epochs, and the best of them is restored", train.Stopping{Patience: 3, Baseline: new(0.5)}, []float64{1, 0.75, 0.875, 0.1}, 3, "val_loss has not improved on the baseline, 0.5, for 3 epochs: the best is 0.75, of epoch 1", 1},
	{"Keras: also where it improves all the time", train.Stopping{Patience: 3, Baseline: new(0.5)}, []float64{1, 0.75, 0.625, 0.1}, 3, "val_loss has not improved on the baseline, 0.5, for 3 epochs", 2},
	{"Keras: past the baseline, patience is what it was", train.Stopping{Patience: 2, Baseline: new(0.5)}, []float64{1, 0.25, 0.375, 0.375, 0.1}, 4, "val_loss has not improved for 2 epochs: the best is 0.25, of epoch 1", 1},
	{"Keras: a baseline to rise above", train.Stopping{Patience: 2, Mode: "max", Baseline: new(0.5)}, []float64{0.125, 0.25, 0.75}, 2, "val_loss has not improved on the baseline", 1},
	{"Keras: min_delta goes for the baseline too", train.Stopping{Patience: 2, MinDelta: 0.25, Baseline: new(0.5)}, []float64{1, 0.375, 0.1}, 2, "val_loss has not improved on the baseline", 1},
	{"Keras: start_from_epoch waits before it monitors improvement", train.Stopping{Patience: 2, FirstEpoch: 3}, []float64{1, 5, 6, 7, 8, 8, 0}, 6, "val_loss has not improved for 2 epochs: the best is 7, of epoch 3", 3},
	{"Keras: nothing is restored if it ends before start_from_epoch", train.Stopping{Patience: 2, FirstEpoch: 9}, []float64{1, 2, 3}, 3, "", 2},
	{"Keras: restore_best_weights false leaves those of the last step", train.Stopping{Patience: 2, KeepLast: true}, []float64{1, 2, 3, 0}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 2},
	{"Keras: restore_best_weights, also when patience never fired", train.Stopping{Patience: 5}, []float64{2, 1, 3, 4}, 4, "", 1},
	{"Keras: restore_best_weights false when patience never fired", train.Stopping{Patience: 5, KeepLast: true}, []float64{2, 1, 3, 4}, 4, "", 3},

	// Lightning: lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.EarlyStopping.html
	{"Lightning: patience counts checks", train.Stopping{Patience: 3}, []float64{0, 1, 2, 3, 4}, 4, "val_loss has not improved for 3 epochs", 0},
	{"Lightning: a change of min_delta is no improvement either", train.Stopping{Patience: 1, MinDelta: 0.25}, []float64{1, 0.75, 0}, 2, "val_loss has not improved for 1 epoch", 0},
	{"Lightning: it stops once the stopping threshold is reached", train.Stopping{Patience: 3, StoppingThreshold: new(0.5)}, []float64{1, 0.75, 0.375, 0.1}, 3, "val_loss is 0.375 and has reached the stopping threshold, 0.5", 2},
	{"Lightning: equal is reached", train.Stopping{Patience: 3, StoppingThreshold: new(0.5)}, []float64{1, 0.5, 0.1}, 2, "val_loss is 0.5 and has reached the stopping threshold, 0.5", 1},
	{"Lightning: a threshold to rise to", train.Stopping{Patience: 3, Mode: "max", StoppingThreshold: new(0.5)}, []float64{0.125, 0.25, 0.75, 1}, 3, "val_loss is 0.75 and has reached the stopping threshold", 2},
	{"Lightning: a threshold of 0", train.Stopping{Patience: 3, StoppingThreshold: new(0.0)}, []float64{1, 0.5, 0, 0}, 3, "val_loss is 0 and has reached the stopping threshold, 0", 2},
	{"Lightning: it stops when worse than the divergence threshold", train.Stopping{Patience: 3, DivergenceThreshold: new(4.0)}, []float64{2, 4, 5, 1}, 3, "val_loss is 5, worse than the divergence threshold, 4", 0},
	{"Lightning: divergence downwards", train.Stopping{Patience: 3, Mode: "max", DivergenceThreshold: new(-1.0)}, []float64{2, -1, -2, 9}, 3, "val_loss is -2, worse than the divergence threshold, -1", 0},
	{"Lightning: without check_finite, NaN is no improvement", train.Stopping{Patience: 2, AllowNonFinite: true}, []float64{1, nan, 2, 0}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 0},
	{"Lightning: nor an infinity", train.Stopping{Patience: 2, AllowNonFinite: true}, []float64{inf, 1, inf, inf, 0}, 4, "val_loss has not improved for 2 epochs: the best is 1, of epoch 1", 1},
	{"Lightning: the training loss can be monitored", train.Stopping{Patience: 2, Monitor: "train_loss"}, []float64{2, 1, 3, 4, 0}, 4, "train_loss has not improved for 2 epochs: the best is 1, of epoch 1", 1},

	// Hugging Face: huggingface.co/docs/transformers/main_classes/callback, EarlyStoppingCallback
	{"Hugging Face: it stops when the metric worsens for early_stopping_patience evaluation calls", train.Stopping{Patience: 1}, []float64{2, 1, 1.5, 0}, 3, "val_loss has not improved for 1 epoch", 1},
	{"Hugging Face: early_stopping_threshold is how much it must improve", train.Stopping{Patience: 1, MinDelta: 0.5}, []float64{2, 1, 0.75, 0}, 3, "val_loss has not improved for 1 epoch", 1},
	{"Hugging Face: greater_is_better", train.Stopping{Patience: 1, Mode: "max"}, []float64{0.25, 0.5, 0.5, 1}, 3, "val_loss has not improved for 1 epoch", 1},

	// fastai: docs.fast.ai/callback.tracker.html
	{"fastai: it stops when there is no improvement since the best epoch", train.Stopping{Patience: 3}, []float64{5, 4, 4.5, 4.25, 4, 0}, 5, "val_loss has not improved for 3 epochs: the best is 4, of epoch 1", 1},
	{"fastai: min_delta between the last value and the best", train.Stopping{Patience: 2, MinDelta: 0.5}, []float64{5, 4.75, 4.625, 0}, 3, "val_loss has not improved for 2 epochs: the best is 5, of epoch 0", 0},
	{"fastai: np.greater", train.Stopping{Patience: 2, Mode: "max", MinDelta: 0.5}, []float64{0, 1, 1.25, 1.5, 9}, 4, "val_loss has not improved for 2 epochs: the best is 1, of epoch 1", 1},

	// burn: docs.rs/burn-train, MetricEarlyStoppingStrategy, and the cases that it is tested on
	{"burn: never while it is improving", train.Stopping{Patience: 1}, []float64{0.4, 0.35, 0.3, 0.25}, 4, "", 3},
	{"burn: no improvement since two epochs", train.Stopping{Patience: 2}, []float64{0.75, 0.4, 2, 1.5, 0}, 4, "val_loss has not improved for 2 epochs", 1},
	{"burn: when it stays equal", train.Stopping{Patience: 2}, []float64{0.4, 0.4, 0.4, 0}, 3, "val_loss has not improved for 2 epochs", 0},

	{"a relative delta", train.Stopping{Patience: 2, MinDelta: 0.25, RelativeDelta: true}, []float64{4, 3.25, 3.125, 0}, 3, "val_loss has not improved for 2 epochs: the best is 4, of epoch 0", 0},
	{"a relative delta that is met", train.Stopping{Patience: 2, MinDelta: 0.25, RelativeDelta: true}, []float64{4, 2.5, 1.75, 1.5, 1.375, 0}, 5, "val_loss has not improved for 2 epochs: the best is 1.75, of epoch 2", 2},
	{"a relative delta below zero", train.Stopping{Patience: 1, MinDelta: 0.25, RelativeDelta: true}, []float64{-4, -6, -7, -100}, 3, "val_loss has not improved for 1 epoch: the best is -6, of epoch 1", 1},
	{"no patience", train.Stopping{}, []float64{1, 2, 3, 4, 5}, 5, "", 0},
	{"thresholds count from the first epoch on", train.Stopping{FirstEpoch: 2, StoppingThreshold: new(1.0), DivergenceThreshold: new(8.0)}, []float64{0.5, 9, 2, 0.75, 0}, 4, "val_loss is 0.75 and has reached the stopping threshold", 3},
	{"-Inf is no improvement", train.Stopping{Patience: 2, AllowNonFinite: true}, []float64{1, -inf, 2, 0}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 0},
	{"nor is +Inf with mode max", train.Stopping{Patience: 2, AllowNonFinite: true, Mode: "max"}, []float64{1, inf, 0.5, 9}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 0},
	{"-Inf first can be improved on", train.Stopping{Patience: 2, AllowNonFinite: true}, []float64{-inf, 2, 1, 3}, 4, "", 2},
	{"a threshold before patience", train.Stopping{Patience: 1, DivergenceThreshold: new(4.0)}, []float64{1, 5, 0}, 2, "val_loss is 5, worse than the divergence threshold, 4", 0},
}

// losses returns the training and the validation losses of a case: the monitored ones, and others that must not matter.
func losses(s train.Stopping, values []float64) (trainLosses, valLosses []float64) {
	other := make([]float64, len(values))
	for i := range other {
		other[i] = float64(i%3) + 0.5
	}
	if s.Monitor == "train_loss" {
		return values, other
	}
	return other, values
}

func TestStoppingAsThePeers(t *testing.T) {
	for _, c := range peers {
		t.Run(c.name, func(t *testing.T) {
			p, w := problemOf(t, 0, c.options, c.values)
			var log strings.Builder
			r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 1, Stopping: c.options, MaxEpochs: len(c.values)}, train.Call{Solver: G.NewVanillaSolver(G.WithLearnRate(1)), Log: &log})
			if err != nil {
				t.Fatal(err)
			}
			because, last := c.because, fmt.Sprintf("Early stopping at epoch %d\n", c.epochs-1)
			if because == "" {
				because, last = fmt.Sprintf("it was to take %d epochs at most", c.epochs), r.History[len(r.History)-1].String()+"\n"
			}
			if len(r.History) != c.epochs || r.StoppedEarly != (c.because != "") || !strings.HasPrefix(r.StoppedBecause, because) {
				t.Errorf("%d epochs, stopped early %t because %q, want %d because %q", len(r.History), r.StoppedEarly, r.StoppedBecause, c.epochs, because)
			}
			if got := w.Value.Data().([]float64)[0]; got != -float64(c.kept+1) || r.Best.Epoch != c.kept {
				t.Errorf("the weights are those of epoch %v, the result says of epoch %d, want %d", -got-1, r.Best.Epoch, c.kept)
			}
			if !strings.HasSuffix(log.String(), last) {
				t.Errorf("the log ends in %q, want %q", log.String(), last)
			}

			e := train.EarlyStopping{Stopping: c.options} // by hand
			for i, v := range c.values[:c.epochs] {
				if _, stop := e.Observe(v); stop != (c.because != "" && i == c.epochs-1) {
					t.Errorf("Observe says %t at epoch %d", stop, i)
				}
			}
			if !strings.HasPrefix(e.Because(), c.because) || (c.because == "") != (e.Because() == "") {
				t.Errorf("it says %q, want %q", e.Because(), c.because)
			}
		})
	}
}

// problemOf is the scripted problem of a case, for a run that begins with an epoch.
func problemOf(t *testing.T, from int, s train.Stopping, values []float64) (train.Problem, *layers.Param) {
	trainLosses, valLosses := losses(s, values)
	return scriptedFrom(t, from, trainLosses, valLosses)
}

// A run that is interrupted after any epoch and resumed ends as the run that never was.
func TestStoppingResumes(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	type end struct {
		result string
		weight float64
	}
	broken := errors.New("broken")
	for _, c := range peers {
		t.Run(c.name, func(t *testing.T) {
			fit := func(checkpoint string, from, until int) (end, error) {
				p, w := problemOf(t, from, c.options, c.values)
				r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 1, Stopping: c.options, MaxEpochs: len(c.values)}, train.Call{Solver: optim.NewAdamW(0.1), Checkpoint: checkpoint, Resume: from > 0, OnCheck: func(history []train.Check, _ bool) (bool, error) {
					if len(history) == until {
						return false, broken
					}
					return false, nil
				}})
				return end{fmt.Sprintf("%+v", r), w.Value.Data().([]float64)[0]}, err
			}
			want, err := fit(filepath.Join(t.TempDir(), "c"), 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			for until := 1; until <= c.epochs; until++ {
				if testing.Short() && until != (c.epochs+1)/2 {
					continue
				}
				checkpoint := filepath.Join(t.TempDir(), "c")
				if _, err := fit(checkpoint, 0, until); !errors.Is(err, broken) {
					t.Fatal(err)
				}
				if got, err := fit(checkpoint, until, -1); err != nil || got != want {
					t.Errorf("interrupted after %d epochs: %+v (%v), want %+v", until, got, err, want)
				}
			}
		})
	}
}

// What a resumed run looks at must be what it looked at before; the rest may be changed.
func TestStoppingResumesChanged(t *testing.T) {
	values := []float64{3, 1, 2, 4, 5, 6}
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(s train.Stopping, resume bool) (*train.Result, error) {
		from := 0
		if resume {
			from = 4
		}
		p, _ := problemOf(t, from, s, values)
		return train.Fit(t.Context(), p, train.Config{BatchSize: 1, Stopping: s, MaxEpochs: 6}, train.Call{Solver: optim.NewAdamW(0.1), Checkpoint: checkpoint, Resume: resume})
	}
	if r, err := fit(train.Stopping{Patience: 2}, false); err != nil || len(r.History) != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, s := range []train.Stopping{{Patience: 2, Monitor: "train_loss"}, {Patience: 2, Mode: "max"}, {Patience: 2, KeepLast: true}} {
		if _, err := fit(s, true); err == nil || !strings.Contains(err.Error(), "resume with") {
			t.Errorf("resumed with %+v: %v", s, err)
		}
	}
	if r, err := fit(train.Stopping{Patience: 3, Mode: "min"}, true); err != nil || len(r.History) != 5 || r.Best.Epoch != 1 {
		t.Errorf("with more patience: %+v, %v", r, err)
	}
}

// Losses that aren't finite end training, with an error, unless that is allowed and the parameters left are of another
// epoch.
func TestStoppingNotFinite(t *testing.T) {
	fit := func(s train.Stopping, trainLosses, valLosses []float64) (*train.Result, error) {
		p, _ := scripted(t, trainLosses, valLosses)
		return train.Fit(t.Context(), p, train.Config{BatchSize: 1, Stopping: s, MaxEpochs: len(valLosses)}, train.Call{Solver: G.NewVanillaSolver()})
	}
	ones := []float64{1, 1, 1}
	for _, c := range []struct {
		name                   string
		s                      train.Stopping
		trainLosses, valLosses []float64
		epoch                  int
	}{
		{"checked", train.Stopping{Patience: 5}, ones, []float64{1, nan, 1}, 1},
		{"checked before the first epoch that counts", train.Stopping{Patience: 5, FirstEpoch: 2}, ones, []float64{1, inf, 1}, 1},
		{"training", train.Stopping{Patience: 5, AllowNonFinite: true}, []float64{1, inf, 1}, ones, 1},
		{"no epoch is any good", train.Stopping{Patience: 5, AllowNonFinite: true}, ones, []float64{nan, inf, nan}, 2},
		{"the last epoch is kept, and is none", train.Stopping{Patience: 5, AllowNonFinite: true, KeepLast: true}, ones, []float64{1, 1, nan}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fit(c.s, c.trainLosses, c.valLosses)
			var e *train.NonFiniteError
			if !errors.As(err, &e) || e.Epoch != c.epoch || e.Validation != (c.name != "training") {
				t.Errorf("got %v, want it to name epoch %d", err, c.epoch)
			}
		})
	}
	for mode, infinite := range map[string]float64{"min": -inf, "max": inf} {
		e := train.EarlyStopping{Stopping: train.Stopping{Mode: mode}}
		e.Observe(1)
		if improved, stop := e.Observe(infinite); improved || !stop || e.Best != 1 || e.BestCheck != 0 {
			t.Errorf("mode %s: improved is %t at %v, stop %t, and the best is %v of check %d", mode, improved, infinite, stop, e.Best, e.BestCheck)
		}
	}
	e := train.EarlyStopping{Stopping: train.Stopping{Patience: 2}}
	if _, stop := e.Observe(nan); !stop || e.Because() != "val_loss is NaN" {
		t.Errorf("stop is %t at NaN, because %q", stop, e.Because())
	}
}

// An infinite metric stops training, and the weights that are left are those of the best finite one.
func TestInfiniteMetricIsNotTheBest(t *testing.T) {
	p, w := scripted(t, []float64{1, 1, 1}, []float64{1, 0, 0.5})
	loss := p.Loss
	p.Loss = func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
		l, _, err := loss(b, in)
		if err != nil {
			return nil, nil, err
		}
		logs, err := G.Log(in[1]) // (1, 1); -Inf in epoch 1
		if err != nil {
			return nil, nil, err
		}
		sum, err := G.Sum(logs) // (1, 1) -> ()
		return l, []train.Metric{{Name: "log", Sum: sum}}, err
	}
	stopping := train.Stopping{Monitor: "val_log", Mode: "min"}
	r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 1, Stopping: stopping, MaxEpochs: 3}, train.Call{Solver: G.NewVanillaSolver(G.WithLearnRate(1))})
	if err != nil || r.StoppedBecause != "val_log is -Inf" {
		t.Fatalf("%+v (%v), want a stop at -Inf", r, err)
	}
	if weight := w.Value.Data().([]float64)[0]; r.Best.Epoch != 0 || weight != -1 {
		t.Errorf("the best is epoch %d, the weight %v, want those of epoch 0, -1", r.Best.Epoch, weight)
	}
}
