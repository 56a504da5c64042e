package train_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// scripted is a problem with given losses, one training loss and one validation loss per epoch. Its one parameter
// decreases by the learning rate in every epoch, so its value shows the epoch.
func scripted(t *testing.T, trainLosses, valLosses []float64) (train.Problem, *layers.Param) {
	return scriptedFrom(t, 0, trainLosses, valLosses)
}

// scriptedFrom is scripted for a run that starts at the given epoch.
func scriptedFrom(t *testing.T, epoch int, trainLosses, valLosses []float64) (train.Problem, *layers.Param) {
	t.Helper()
	p := must.Get(layers.NewParams(tensor.Float64, 1))(t)
	w := must.Get(p.New("w", layers.Zeros(), 1, 1))(t)
	batch := func(x, y float64) ([]*tensor.Dense, error) {
		return []*tensor.Dense{
			tensor.New(tensor.WithShape(1, 1), tensor.WithBacking([]float64{x})), tensor.New(tensor.WithShape(1, 1), tensor.WithBacking([]float64{y})),
		}, nil
	}
	validated := epoch - 1 // the first batch is only used to build the graph
	return train.Problem{
		Params: p,
		Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			node, err := b.Bind(inputs[0].Graph(), w)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			xw := G.Must(G.Mul(inputs[0], node))                                            // (1, 1) x (1, 1) -> (1, 1)
			return layers.Loss{Mean: G.Must(G.Sum(G.Must(G.Add(xw, inputs[1]))))}, nil, nil // (1, 1) -> ()
		},
		Train: train.Dataset{Len: 1, Order: train.Fresh, Batch: func(examples []int) ([]*tensor.Dense, error) {
			e := min(examples[0], len(trainLosses)-1)
			return batch(1, trainLosses[e]+float64(e)) // with a learning rate of 1, w is -e
		}},
		Validation: train.Dataset{Len: 1, Batch: func([]int) ([]*tensor.Dense, error) {
			defer func() { validated++ }()
			return batch(0, valLosses[max(validated, 0)])
		}},
	}, w
}

var nan, inf = math.NaN(), math.Inf(1)

// peers lists options and monitored values with the expected number of epochs, reason to stop and kept epoch. The cases
// follow the documentation of other libraries, or the documentation of Heed where the libraries differ.
var peers = []struct {
	name    string
	options train.StoppingConfig
	values  []float64 // the monitored value in each epoch; MaxEpochs is their number
	epochs  int       // number of epochs trained
	because string    // start of StoppedBecause; empty if training doesn't stop early
	kept    int       // the epoch whose weights are kept
}{
	{"notebook: the run", train.StoppingConfig{Patience: 2}, []float64{0.300, 0.378, 0.346, 0.1}, 3, "val_loss has not improved for 2 epochs: the best is 0.3, of epoch 0", 0},

	// Keras: keras.io/api/callbacks/early_stopping
	{"Keras: patience is the number of epochs with no improvement after which training is stopped", train.StoppingConfig{Patience: 3}, []float64{1, 1, 1, 1, 1, 1}, 4, "val_loss has not improved for 3 epochs", 0},
	{"Keras: an improvement starts the count again", train.StoppingConfig{Patience: 2}, []float64{3, 4, 2, 3, 1, 2, 2, 0}, 7, "val_loss has not improved for 2 epochs: the best is 1, of epoch 4", 4},
	{"Keras: a change of less than min_delta is no improvement", train.StoppingConfig{Patience: 2, MinDelta: 0.25}, []float64{1, 0.875, 0.8125, 0}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 0},
	{"Keras: changes add up to min_delta", train.StoppingConfig{Patience: 3, MinDelta: 0.25}, []float64{1, 0.875, 0.5, 0.375, 0.375, 0.375, 0}, 6, "val_loss has not improved for 3 epochs: the best is 0.5, of epoch 2", 2},
	{"Keras: mode max stops when it no longer increases", train.StoppingConfig{Patience: 2, Mode: "max"}, []float64{0.25, 0.5, 0.5, 0.375, 0.75}, 4, "val_loss has not improved for 2 epochs: the best is 0.5, of epoch 1", 1},
	{"Keras: mode max with min_delta", train.StoppingConfig{Patience: 2, Mode: "max", MinDelta: 0.25}, []float64{0.25, 0.75, 0.875, 1, 2}, 4, "val_loss has not improved for 2 epochs: the best is 0.75, of epoch 1", 1},
	{"Keras: without improvement on the baseline it runs for patience epochs, and the best of them is restored", train.StoppingConfig{Patience: 3, Baseline: new(0.5)}, []float64{1, 0.75, 0.875, 0.1}, 3, "val_loss has not improved on the baseline, 0.5, for 3 epochs: the best is 0.75, of epoch 1", 1},
	{"Keras: a baseline stops a run even if it improves all the time", train.StoppingConfig{Patience: 3, Baseline: new(0.5)}, []float64{1, 0.75, 0.625, 0.1}, 3, "val_loss has not improved on the baseline, 0.5, for 3 epochs", 2},
	{"Keras: past the baseline, patience counts as usual", train.StoppingConfig{Patience: 2, Baseline: new(0.5)}, []float64{1, 0.25, 0.375, 0.375, 0.1}, 4, "val_loss has not improved for 2 epochs: the best is 0.25, of epoch 1", 1},
	{"Keras: a baseline to rise above", train.StoppingConfig{Patience: 2, Mode: "max", Baseline: new(0.5)}, []float64{0.125, 0.25, 0.75}, 2, "val_loss has not improved on the baseline", 1},
	{"Keras: min_delta applies to the baseline too", train.StoppingConfig{Patience: 2, MinDelta: 0.25, Baseline: new(0.5)}, []float64{1, 0.375, 0.1}, 2, "val_loss has not improved on the baseline", 1},
	{"Keras: start_from_epoch waits before it monitors improvement", train.StoppingConfig{Patience: 2, FirstCheck: 3}, []float64{1, 5, 6, 7, 8, 8, 0}, 6, "val_loss has not improved for 2 epochs: the best is 7, of epoch 3", 3},
	{"Keras: nothing is restored if it ends before start_from_epoch", train.StoppingConfig{Patience: 2, FirstCheck: 9}, []float64{1, 2, 3}, 3, "", 2},
	{"Keras: restore_best_weights false leaves those of the last step", train.StoppingConfig{Patience: 2, KeepLast: true}, []float64{1, 2, 3, 0}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 2},
	{"Keras: restore_best_weights, also when patience never fired", train.StoppingConfig{Patience: 5}, []float64{2, 1, 3, 4}, 4, "", 1},
	{"Keras: restore_best_weights false when patience never fired", train.StoppingConfig{Patience: 5, KeepLast: true}, []float64{2, 1, 3, 4}, 4, "", 3},

	// Lightning: lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.EarlyStopping.html
	{"Lightning: patience counts checks", train.StoppingConfig{Patience: 3}, []float64{0, 1, 2, 3, 4}, 4, "val_loss has not improved for 3 epochs", 0},
	{"Lightning: a change of min_delta is no improvement either", train.StoppingConfig{Patience: 1, MinDelta: 0.25}, []float64{1, 0.75, 0}, 2, "val_loss has not improved for 1 epoch", 0},
	{"Lightning: it stops once the stopping threshold is reached", train.StoppingConfig{Patience: 3, StoppingThreshold: new(0.5)}, []float64{1, 0.75, 0.375, 0.1}, 3, "val_loss is 0.375 and has reached the stopping threshold, 0.5", 2},
	{"Lightning: equal is reached", train.StoppingConfig{Patience: 3, StoppingThreshold: new(0.5)}, []float64{1, 0.5, 0.1}, 2, "val_loss is 0.5 and has reached the stopping threshold, 0.5", 1},
	{"Lightning: a threshold to rise to", train.StoppingConfig{Patience: 3, Mode: "max", StoppingThreshold: new(0.5)}, []float64{0.125, 0.25, 0.75, 1}, 3, "val_loss is 0.75 and has reached the stopping threshold", 2},
	{"Lightning: a threshold of 0", train.StoppingConfig{Patience: 3, StoppingThreshold: new(0.0)}, []float64{1, 0.5, 0, 0}, 3, "val_loss is 0 and has reached the stopping threshold, 0", 2},
	{"Lightning: it stops when worse than the divergence threshold", train.StoppingConfig{Patience: 3, DivergenceThreshold: new(4.0)}, []float64{2, 4, 5, 1}, 3, "val_loss is 5, worse than the divergence threshold, 4", 0},
	{"Lightning: divergence downwards", train.StoppingConfig{Patience: 3, Mode: "max", DivergenceThreshold: new(-1.0)}, []float64{2, -1, -2, 9}, 3, "val_loss is -2, worse than the divergence threshold, -1", 0},
	{"Lightning: without check_finite, NaN is no improvement", train.StoppingConfig{Patience: 2, AllowNonFinite: true}, []float64{1, nan, 2, 0}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 0},
	{"Lightning: without check_finite, infinity is no improvement", train.StoppingConfig{Patience: 2, AllowNonFinite: true}, []float64{inf, 1, inf, inf, 0}, 4, "val_loss has not improved for 2 epochs: the best is 1, of epoch 1", 1},
	{"Lightning: the training loss can be monitored", train.StoppingConfig{Patience: 2, Monitor: "train_loss"}, []float64{2, 1, 3, 4, 0}, 4, "train_loss has not improved for 2 epochs: the best is 1, of epoch 1", 1},

	// Hugging Face: huggingface.co/docs/transformers/main_classes/callback, EarlyStoppingCallback
	{"Hugging Face: it stops when the metric worsens for early_stopping_patience evaluation calls", train.StoppingConfig{Patience: 1}, []float64{2, 1, 1.5, 0}, 3, "val_loss has not improved for 1 epoch", 1},
	{"Hugging Face: early_stopping_threshold is how much it must improve", train.StoppingConfig{Patience: 1, MinDelta: 0.5}, []float64{2, 1, 0.75, 0}, 3, "val_loss has not improved for 1 epoch", 1},
	{"Hugging Face: greater_is_better", train.StoppingConfig{Patience: 1, Mode: "max"}, []float64{0.25, 0.5, 0.5, 1}, 3, "val_loss has not improved for 1 epoch", 1},

	// fastai: docs.fast.ai/callback.tracker.html
	{"fastai: it stops when there is no improvement since the best epoch", train.StoppingConfig{Patience: 3}, []float64{5, 4, 4.5, 4.25, 4, 0}, 5, "val_loss has not improved for 3 epochs: the best is 4, of epoch 1", 1},
	{"fastai: min_delta between the last value and the best", train.StoppingConfig{Patience: 2, MinDelta: 0.5}, []float64{5, 4.75, 4.625, 0}, 3, "val_loss has not improved for 2 epochs: the best is 5, of epoch 0", 0},
	{"fastai: np.greater", train.StoppingConfig{Patience: 2, Mode: "max", MinDelta: 0.5}, []float64{0, 1, 1.25, 1.5, 9}, 4, "val_loss has not improved for 2 epochs: the best is 1, of epoch 1", 1},

	// burn: docs.rs/burn-train, MetricEarlyStoppingStrategy, and the cases that it is tested on
	{"burn: never while it is improving", train.StoppingConfig{Patience: 1}, []float64{0.4, 0.35, 0.3, 0.25}, 4, "", 3},
	{"burn: no improvement since two epochs", train.StoppingConfig{Patience: 2}, []float64{0.75, 0.4, 2, 1.5, 0}, 4, "val_loss has not improved for 2 epochs", 1},
	{"burn: when it stays equal", train.StoppingConfig{Patience: 2}, []float64{0.4, 0.4, 0.4, 0}, 3, "val_loss has not improved for 2 epochs", 0},

	{"a relative delta", train.StoppingConfig{Patience: 2, MinDelta: 0.25, RelativeDelta: true}, []float64{4, 3.25, 3.125, 0}, 3, "val_loss has not improved for 2 epochs: the best is 4, of epoch 0", 0},
	{"a relative delta that is met", train.StoppingConfig{Patience: 2, MinDelta: 0.25, RelativeDelta: true}, []float64{4, 2.5, 1.75, 1.5, 1.375, 0}, 5, "val_loss has not improved for 2 epochs: the best is 1.75, of epoch 2", 2},
	{"a relative delta below zero", train.StoppingConfig{Patience: 1, MinDelta: 0.25, RelativeDelta: true}, []float64{-4, -6, -7, -100}, 3, "val_loss has not improved for 1 epoch: the best is -6, of epoch 1", 1},
	{"no patience", train.StoppingConfig{}, []float64{1, 2, 3, 4, 5}, 5, "", 0},
	{"thresholds count from the first epoch on", train.StoppingConfig{FirstCheck: 2, StoppingThreshold: new(1.0), DivergenceThreshold: new(8.0)}, []float64{0.5, 9, 2, 0.75, 0}, 4, "val_loss is 0.75 and has reached the stopping threshold", 3},
	{"-Inf is no improvement", train.StoppingConfig{Patience: 2, AllowNonFinite: true}, []float64{1, -inf, 2, 0}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 0},
	{"+Inf is no improvement with mode max", train.StoppingConfig{Patience: 2, AllowNonFinite: true, Mode: "max"}, []float64{1, inf, 0.5, 9}, 3, "val_loss has not improved for 2 epochs: the best is 1, of epoch 0", 0},
	{"-Inf first can be improved on", train.StoppingConfig{Patience: 2, AllowNonFinite: true}, []float64{-inf, 2, 1, 3}, 4, "", 2},
	{"a threshold before patience", train.StoppingConfig{Patience: 1, DivergenceThreshold: new(4.0)}, []float64{1, 5, 0}, 2, "val_loss is 5, worse than the divergence threshold, 4", 0},
}

// problemOf is a scripted problem that has the monitored values, for a run whose first epoch has the number from. The
// losses that aren't monitored have fixed values, which must not matter.
func problemOf(t *testing.T, from int, s train.StoppingConfig, values []float64) (train.Problem, *layers.Param) {
	other := make([]float64, len(values))
	for i := range other {
		other[i] = float64(i%3) + 0.5
	}
	if s.Monitor == "train_loss" {
		return scriptedFrom(t, from, values, other)
	}
	return scriptedFrom(t, from, other, values)
}

func TestStoppingAsThePeers(t *testing.T) {
	for _, c := range peers {
		t.Run(c.name, func(t *testing.T) {
			p, w := problemOf(t, 0, c.options, c.values)
			var log strings.Builder
			r := fitted(t, p, train.Config{BatchSize: 1, Stopping: c.options, MaxEpochs: len(c.values)}, train.RunOptions{Solver: G.NewVanillaSolver(G.WithLearnRate(1)), Log: &log})
			because, last := c.because, fmt.Sprintf("Early stopping at epoch %d\n", c.epochs-1)
			if because == "" {
				because, last = fmt.Sprintf("the limit of %d epochs is reached", c.epochs), r.History[len(r.History)-1].String()+"\n"
			}
			if len(r.History) != c.epochs || r.StoppedEarly != (c.because != "") || !strings.HasPrefix(r.StoppedBecause, because) {
				t.Errorf("got %d epochs, StoppedEarly %t and the reason %q, want %d epochs and the reason %q", len(r.History), r.StoppedEarly, r.StoppedBecause, c.epochs, because)
			}
			if got := w.Value.Data().([]float64)[0]; got != -float64(c.kept+1) || r.Best.Epoch != c.kept {
				t.Errorf("the weights are from epoch %v and Best is epoch %d, want epoch %d for both", -got-1, r.Best.Epoch, c.kept)
			}
			if !strings.HasSuffix(log.String(), last) {
				t.Errorf("the log is %q, want it to end with %q", log.String(), last)
			}

			e := train.EarlyStopping{StoppingConfig: c.options} // the same in a loop of our own that is always resumed
			for i, v := range c.values[:c.epochs] {
				state := must.Get(json.Marshal(e))(t)
				e = train.EarlyStopping{}
				must.Do(t, json.Unmarshal(state, &e))
				if _, stop := e.Observe(v); stop != (c.because != "" && i == c.epochs-1) {
					t.Errorf("Observe returns stop %t at epoch %d, want the opposite", stop, i)
				}
			}
			if !strings.HasPrefix(e.Because(), c.because) || (c.because == "") != (e.Because() == "") {
				t.Errorf("Because returns %q, want %q", e.Because(), c.because)
			}
		})
	}
}

// A resumed run must have the same Monitor, Mode and KeepLast. The other settings of Stopping may change.
func TestStoppingResumesChanged(t *testing.T) {
	values := []float64{3, 1, 2, 4, 5, 6}
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(s train.StoppingConfig, resume bool) (*train.Result, error) {
		from := 0
		if resume {
			from = 4
		}
		p, _ := problemOf(t, from, s, values)
		return train.Fit(t.Context(), p, train.Config{BatchSize: 1, Stopping: s, MaxEpochs: 6}, train.RunOptions{Solver: optim.NewAdamW(0.1), Checkpoint: checkpoint, Resume: resume})
	}
	if r, err := fit(train.StoppingConfig{Patience: 2}, false); err != nil || len(r.History) != 4 {
		t.Fatalf("got %+v, %v, want an early stop after 4 epochs", r, err)
	}
	for _, s := range []train.StoppingConfig{{Patience: 2, Monitor: "train_loss"}, {Patience: 2, Mode: "max"}, {Patience: 2, KeepLast: true}} {
		wantError(t, s, failure(fit(s, true)), "resume with")
	}
	if r, err := fit(train.StoppingConfig{Patience: 3, Mode: "min"}, true); err != nil || len(r.History) != 5 || r.Best.Epoch != 1 {
		t.Errorf("resumed with more patience: got %+v, %v, want 5 epochs, the best being epoch 1", r, err)
	}
}

// If a loss isn't finite, training ends with an error. With AllowNonFinite, it is an error only if the kept parameters
// have such a validation loss.
func TestStoppingNotFinite(t *testing.T) {
	fit := func(s train.StoppingConfig, trainLosses, valLosses []float64) (*train.Result, error) {
		p, _ := scripted(t, trainLosses, valLosses)
		return train.Fit(t.Context(), p, train.Config{BatchSize: 1, Stopping: s, MaxEpochs: len(valLosses)}, train.RunOptions{Solver: G.NewVanillaSolver()})
	}
	ones := []float64{1, 1, 1}
	for _, c := range []struct {
		name                   string
		s                      train.StoppingConfig
		trainLosses, valLosses []float64
		epoch                  int
	}{
		{"checked", train.StoppingConfig{Patience: 5}, ones, []float64{1, nan, 1}, 1},
		{"not finite before the first epoch that counts", train.StoppingConfig{Patience: 5, FirstCheck: 2}, ones, []float64{1, inf, 1}, 1},
		{"training", train.StoppingConfig{Patience: 5, AllowNonFinite: true}, []float64{1, inf, 1}, ones, 1},
		{"no epoch is finite", train.StoppingConfig{Patience: 5, AllowNonFinite: true}, ones, []float64{nan, inf, nan}, 2},
		{"the last epoch is kept, and isn't finite", train.StoppingConfig{Patience: 5, AllowNonFinite: true, KeepLast: true}, ones, []float64{1, 1, nan}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fit(c.s, c.trainLosses, c.valLosses)
			var e *train.NonFiniteError
			if !errors.As(err, &e) || e.Epoch != c.epoch || e.Validation != (c.name != "training") {
				t.Errorf("got %v, want a NonFiniteError at epoch %d", err, c.epoch)
			}
		})
	}
	for mode, infinite := range map[string]float64{"min": -inf, "max": inf} {
		e := train.EarlyStopping{StoppingConfig: train.StoppingConfig{Mode: mode}}
		e.Observe(1)
		if improved, stop := e.Observe(infinite); improved || !stop || e.Best != 1 || e.BestCheck != 0 {
			t.Errorf("mode %s: got improved %t at %v, stop %t and the best %v at check %d, want false, true and 1 at check 0", mode, improved, infinite, stop, e.Best, e.BestCheck)
		}
	}
	e := train.EarlyStopping{StoppingConfig: train.StoppingConfig{Patience: 2}}
	if _, stop := e.Observe(nan); !stop || e.Because() != "val_loss is NaN" {
		t.Errorf("at NaN: got stop %t because %q, want true because val_loss is NaN", stop, e.Because())
	}
}

// If a metric is infinite, training stops and keeps the weights of the best finite value.
func TestInfiniteMetricIsNotTheBest(t *testing.T) {
	p, w := scripted(t, []float64{1, 1, 1}, []float64{1, 0, 0.5})
	p.Loss = added(p.Loss, func(_ *layers.Build, inputs G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
		sum := G.Must(G.Sum(G.Must(G.Log(inputs[1])))) // (1, 1) -> (); -Inf in epoch 1
		return loss, []train.Metric{{Name: "log", Sum: sum}}
	})
	stopping := train.StoppingConfig{Monitor: "val_log", Mode: "min"}
	r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 1, Stopping: stopping, MaxEpochs: 3}, train.RunOptions{Solver: G.NewVanillaSolver(G.WithLearnRate(1))})
	if err != nil || r.StoppedBecause != "val_log is -Inf" {
		t.Fatalf("got %+v, %v, want a stop because val_log is -Inf", r, err)
	}
	if weight := w.Value.Data().([]float64)[0]; r.Best.Epoch != 0 || weight != -1 {
		t.Errorf("the best is epoch %d and the weight is %v, want epoch 0 and -1", r.Best.Epoch, weight)
	}
}
