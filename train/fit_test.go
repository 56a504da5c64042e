package train_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// setup holds the settings and the arguments for Fit.
type setup struct {
	train.Config
	train.RunOptions
}

// digits is a small problem: find the largest of 4 numbers. It uses dropout, so a run repeats only if the random state
// repeats too.
func digits(t testing.TB, seed uint64) train.Problem { return digitsWith(t, seed, 0.1) }

// digitsWith is digits with the given dropout.
func digitsWith(t testing.TB, seed uint64, dropout float64) train.Problem {
	return digitsOf(t, seed, layers.FeedForwardConfig{Hidden: 16, Dropout: dropout})
}

// digitsOf is digits with the given network.
func digitsOf(t testing.TB, seed uint64, c layers.FeedForwardConfig) train.Problem {
	t.Helper()
	p := must.Get(layers.NewParams(tensor.Float32, seed))(t)
	ff := must.Get(layers.NewFeedForward(p, 4, c))(t)
	return train.Problem{
		Params: p,
		Loss:   entropy(ff.Forward),
		Train:  drawn(320, seed), Validation: drawn(100, 99),
		ValidationSize: 50,
	}
}

// A lossFunc is the Loss of a Problem.
type lossFunc = func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error)

// entropy returns a Problem's Loss: the cross-entropy of the logits that forward computes from the first input.
func entropy(forward func(b *layers.Build, x *G.Node) (*G.Node, error)) lossFunc {
	return func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
		logits, err := forward(b, inputs[0])
		if err != nil {
			return layers.Loss{}, nil, err
		}
		loss, err := layers.CrossEntropy(b, logits, inputs[1], layers.CrossEntropyOptions{})
		return loss, nil, err
	}
}

// added returns a Loss like plain, and passes its Mean to change, which returns the new Mean and the metrics.
func added(plain lossFunc, change func(b *layers.Build, inputs G.Nodes, mean *G.Node) (*G.Node, []train.Metric)) lossFunc {
	return func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
		loss, _, err := plain(b, inputs)
		if err != nil {
			return layers.Loss{}, nil, err
		}
		var metrics []train.Metric
		loss.Mean, metrics = change(b, inputs, loss.Mean)
		return loss, metrics, nil
	}
}

// afterLoss calls change after each call of p's Loss, whose result it may change.
func afterLoss(p *train.Problem, change func(b *layers.Build, inputs G.Nodes, loss *layers.Loss)) {
	plain := p.Loss
	p.Loss = func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
		loss, metrics, err := plain(b, inputs)
		if err == nil {
			change(b, inputs, &loss)
		}
		return loss, metrics, err
	}
}

// beforeLoss calls change before each call of p's Loss, whose arguments it may change.
func beforeLoss(p *train.Problem, change func(b *layers.Build, inputs G.Nodes)) {
	plain := p.Loss
	p.Loss = func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
		change(b, inputs)
		return plain(b, inputs)
	}
}

// drawn returns random examples for digits, with new ones in every epoch.
func drawn(n int, seed uint64) train.Dataset {
	return train.Dataset{Len: n, Order: train.Fresh, Batch: func(examples []int) ([]*tensor.Dense, error) {
		x, y := make([]float32, 0, 4*len(examples)), make([]int, len(examples))
		for i, e := range examples {
			rng := rand.New(rand.NewPCG(seed, uint64(e)))
			for j := range 4 {
				x = append(x, float32(rng.NormFloat64()))
				if x[i*4+j] > x[i*4+y[i]] {
					y[i] = j
				}
			}
		}
		return []*tensor.Dense{tensor.New(tensor.WithShape(len(y), 4), tensor.WithBacking(x)), tensor.New(tensor.WithShape(len(y)), tensor.WithBacking(y))}, nil
	}}
}

// changed returns a Dataset like d, and calls change on each of its batches.
func changed(d train.Dataset, change func(examples []int, values []*tensor.Dense)) train.Dataset {
	batch := d.Batch
	d.Batch = func(examples []int) ([]*tensor.Dense, error) {
		values, err := batch(examples)
		change(examples, values)
		return values, err
	}
	return d
}

// fitted returns the result of Fit, which must not fail.
func fitted(t *testing.T, p train.Problem, c train.Config, options train.RunOptions) *train.Result {
	t.Helper()
	return must.Get(train.Fit(t.Context(), p, c, options))(t)
}

// at returns an OnStep that calls do at a step of each epoch.
func at(step int, do func()) func(epoch, step int, loss float64) bool {
	return func(_, now int, _ float64) bool {
		if now == step {
			do()
		}
		return false
	}
}

// failAt returns an OnCheck that fails at check number n, from 1.
func failAt(n int, err error) func(history []train.Check, best bool) (bool, error) {
	return func(history []train.Check, _ bool) (bool, error) {
		if len(history) == n {
			return false, err
		}
		return false, nil
	}
}

// keeping returns an OnCheck that copies the parameters of the best check to kept.
func keeping(p *layers.Params, kept *[][]float32) func(history []train.Check, best bool) (bool, error) {
	return func(_ []train.Check, best bool) (bool, error) {
		if best {
			*kept = values(p)
		}
		return false, nil
	}
}

// failure returns the error of a call: failure(train.Fit(ctx, p, c, options)).
func failure[T any](_ T, err error) error { return err }

// wantError checks that err is an error that contains a text, or nil if the text is empty.
func wantError(t *testing.T, what any, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%v: got the error %v, want one that contains %q (none if empty)", what, err, text)
	}
}

// values returns copies of the values of all parameters.
func values(p *layers.Params) [][]float32 {
	var out [][]float32
	for _, q := range p.All() {
		out = append(out, append([]float32(nil), q.Value.Data().([]float32)...))
	}
	return out
}

func same(a, b [][]float32) bool {
	for i := range a {
		for j := range a[i] {
			if math.Float32bits(a[i][j]) != math.Float32bits(b[i][j]) {
				return false
			}
		}
	}
	return len(a) == len(b)
}

func TestFitLearnsAndKeepsTheBest(t *testing.T) {
	p := digits(t, 1)
	var log bytes.Buffer
	var kept [][]float32
	r := fitted(t, p, train.Config{BatchSize: 16, Stopping: train.StoppingConfig{Patience: 3}, MaxEpochs: 200}, train.RunOptions{Solver: optim.NewAdamW(0.02), Seed: 1, Log: &log, OnCheck: keeping(p.Params, &kept)})
	if first := r.History[0].ValLoss; r.Best.ValLoss > first/2 {
		t.Errorf("the best validation loss: want at most half of the first, %v, got %v", first, r.Best.ValLoss)
	}
	for _, e := range r.History {
		if e.ValLoss < r.Best.ValLoss {
			t.Errorf("epoch %d has a lower validation loss than the best check, %+v", e.Epoch, r.Best)
		}
	}
	if !same(kept, values(p.Params)) {
		t.Error("Fit doesn't leave the parameters of the best epoch")
	}
	if !r.StoppedEarly || r.Best.Epoch != len(r.History)-1-3 {
		t.Errorf("stopped early: %t, best epoch %d of %d; want true and a best epoch 3 before the last", r.StoppedEarly, r.Best.Epoch, len(r.History))
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(r.History)+1 || lines[0] != r.History[0].String() || !strings.HasPrefix(lines[len(lines)-1], "Early stopping at epoch ") {
		t.Errorf("the log must have a line for each epoch and a last line about early stopping, got\n%s", log.String())
	}
}

func TestFitNotFinite(t *testing.T) {
	for _, c := range []struct {
		name        string
		first       int // first example of the batch
		validation  bool
		epoch, step int
		saved       int // step of the checkpoint; 0 if there is none
	}{
		{"training", 320 + 7*16, false, 1, 7, 20}, {"validation", 50, true, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := digits(t, 1)
			d := map[bool]*train.Dataset{false: &p.Train, true: &p.Validation}[c.validation]
			*d = changed(*d, func(examples []int, values []*tensor.Dense) {
				if examples[0] == c.first {
					values[0].Float32s()[5] = float32(math.NaN())
				}
			})
			checkpoint := filepath.Join(t.TempDir(), "c")
			r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 3}, train.RunOptions{Checkpoint: checkpoint})
			var e *train.NonFiniteError
			if !errors.As(err, &e) || e.Epoch != c.epoch || e.Step != c.step || e.Validation != c.validation {
				t.Fatalf("got %v, want a NonFiniteError at epoch %d, step %d", err, c.epoch, c.step)
			}
			if r != nil && len(r.History) != c.epoch {
				t.Errorf("the history has %d epochs, want only the complete ones", len(r.History))
			}
			if saved, err := train.ReadProgress(checkpoint); err != nil && c.saved > 0 || saved.Step != c.saved {
				t.Errorf("the checkpoint is from step %d, %v, want step %d: this error is no reason to save", saved.Step, err, c.saved)
			}
			for _, v := range values(p.Params) {
				if slices.ContainsFunc(v, func(x float32) bool { return x != x }) {
					t.Fatal("a parameter is NaN")
				}
			}
		})
	}
}

// TestValidationBatchOfNothing validates on two batches. In the second one, no target counts.
func TestValidationBatchOfNothing(t *testing.T) {
	one, two := digits(t, 1), digits(t, 1)
	one.Validation.Len, two.Validation = 50, ignored(two.Validation, 50)
	c := train.Config{BatchSize: 16, MaxEpochs: 1}
	want, got := fitted(t, one, c, train.RunOptions{}).Best.ValLoss, fitted(t, two, c, train.RunOptions{}).Best.ValLoss
	if got != want || want == 0 {
		t.Errorf("the validation loss is %v, want the loss of the first batch, %v", got, want)
	}
}

// withInput returns p with one more input of the loss: a scalar, which number computes from the examples.
func withInput(p train.Problem, number func(examples []int) float32) train.Problem {
	for _, d := range []*train.Dataset{&p.Train, &p.Validation} {
		batch := d.Batch
		d.Batch = func(examples []int) ([]*tensor.Dense, error) {
			values, err := batch(examples)
			return append(values, tensor.New(tensor.FromScalar(number(examples)))), err
		}
	}
	return p
}

// counted returns p with a Loss whose Count is an input. The function count computes it from the examples.
func counted(p train.Problem, count func(examples []int) float32) train.Problem {
	afterLoss(&p, func(_ *layers.Build, inputs G.Nodes, loss *layers.Loss) { loss.Count = inputs[len(inputs)-1] })
	return withInput(p, count)
}

// ignored returns a Dataset like d in which no target counts from example number first on.
func ignored(d train.Dataset, first int) train.Dataset {
	return changed(d, func(examples []int, values []*tensor.Dense) {
		targets := values[1].Data().([]int)
		for i, e := range examples {
			if e >= first {
				targets[i] = layers.Ignore
			}
		}
	})
}
