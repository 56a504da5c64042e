package train_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// setup holds the settings and the arguments for Fit.
type setup struct {
	train.Config
	train.Call
}

// digits is a small problem: find the largest of 4 numbers. It uses dropout, so a run repeats only if the random state
// repeats too.
func digits(t testing.TB, seed uint64) train.Problem { return digitsWith(t, seed, 0.1) }

// digitsWith is digits with the given dropout.
func digitsWith(t testing.TB, seed uint64, dropout float64) train.Problem {
	t.Helper()
	p, err := layers.NewParams(tensor.Float32, seed)
	if err != nil {
		t.Fatal(err)
	}
	ff, err := layers.NewFeedForward(p, 4, layers.FeedForwardConfig{Hidden: 16, Dropout: dropout})
	if err != nil {
		t.Fatal(err)
	}
	return train.Problem{
		Params: p,
		Loss: func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
			logits, err := ff.Forward(b, in[0])
			if err != nil {
				return nil, nil, err
			}
			loss, err := layers.CrossEntropy(b, logits, in[1], layers.CrossEntropyOptions{})
			return loss, nil, err
		},
		Train: drawn(320, seed), Validation: drawn(100, 99),
		ValidationSize: 50,
	}
}

// drawn returns random examples for digits, with new ones in every epoch.
func drawn(n int, seed uint64) train.Dataset {
	return train.Dataset{Len: n, Order: train.Fresh, Batch: func(examples []int) (train.Batch, error) {
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
		return train.Batch{
			Values: []*tensor.Dense{tensor.New(tensor.WithShape(len(y), 4), tensor.WithBacking(x)), tensor.New(tensor.WithShape(len(y)), tensor.WithBacking(y))},
			Weight: float64(len(y)),
		}, nil
	}}
}

// changed returns a Dataset like d, and calls change on each of its batches.
func changed(d train.Dataset, change func(examples []int, b *train.Batch)) train.Dataset {
	batch := d.Batch
	d.Batch = func(examples []int) (train.Batch, error) {
		b, err := batch(examples)
		change(examples, &b)
		return b, err
	}
	return d
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
	r, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, Stopping: train.Stopping{Patience: 3}, MaxEpochs: 200}, train.Call{Solver: optim.NewAdamW(0.02), Seed: 1, Log: &log, OnCheck: func(history []train.Check, best bool) (bool, error) {
		if best {
			kept = values(p.Params)
		}
		return false, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
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
		t.Errorf("stopped early is %t, best epoch %d of %d, want true, 3 epochs before the last", r.StoppedEarly, r.Best.Epoch, len(r.History))
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(r.History)+1 || lines[0] != r.History[0].String() || !strings.HasPrefix(lines[len(lines)-1], "Early stopping at epoch ") {
		t.Errorf("the log must have a line for each epoch and a last line about early stopping, got\n%s", log.String())
	}
}

// Fit restores the best parameters even if patience doesn't run out.
func TestFitRestoresWithoutPatience(t *testing.T) {
	p := digits(t, 2)
	solver := optim.NewAdamW(0.02)
	var kept [][]float32
	r, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, MaxEpochs: 6}, train.Call{Solver: solver, OnCheck: func(history []train.Check, best bool) (bool, error) {
		if best {
			kept = values(p.Params)
		}
		if len(history) == 3 {
			solver.LearningRate = 3 // spoils all further epochs
		}
		return false, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.StoppedEarly || len(r.History) != 6 || r.Best.Epoch > 2 {
		t.Fatalf("got %+v, want all 6 epochs, the best among the first 3", r)
	}
	if !same(kept, values(p.Params)) {
		t.Error("Fit doesn't leave the parameters of the best epoch")
	}
}

func TestFitRepeats(t *testing.T) {
	run := func() ([]train.Check, [][]float32) {
		p := digits(t, 3)
		r, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, MaxEpochs: 4}, train.Call{Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		return r.History, values(p.Params)
	}
	h1, v1 := run()
	h2, v2 := run()
	for i := range h1 {
		if !reflect.DeepEqual(h1[i], h2[i]) {
			t.Errorf("epoch %d: two runs with the same seed have the checks %+v and %+v, want equal ones", i, h1[i], h2[i])
		}
	}
	if !same(v1, v2) {
		t.Error("two runs with the same seed leave different parameters")
	}
}

func TestFitNotFinite(t *testing.T) {
	nan := float32(math.NaN())
	t.Run("training", func(t *testing.T) {
		p := digits(t, 1)
		p.Train = changed(p.Train, func(examples []int, b *train.Batch) {
			if examples[0] == 320+7*16 {
				b.Values[0].Data().([]float32)[5] = nan
			}
		})
		r, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, MaxEpochs: 3}, train.Call{})
		var e *train.NonFiniteError
		if !errors.As(err, &e) || e.Epoch != 1 || e.Step != 7 || e.Validation {
			t.Fatalf("got %v, want a NonFiniteError at epoch 1, step 7", err)
		}
		if len(r.History) != 1 {
			t.Errorf("the history has %d epochs, want only the complete one", len(r.History))
		}
		for _, v := range values(p.Params) {
			for _, x := range v {
				if x != x {
					t.Fatal("a parameter is NaN")
				}
			}
		}
	})
	t.Run("validation", func(t *testing.T) {
		p := digits(t, 1)
		p.Validation = changed(p.Validation, func(examples []int, b *train.Batch) {
			if examples[0] == 50 {
				b.Values[0].Data().([]float32)[5] = float32(math.Inf(1))
			}
		})
		_, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, MaxEpochs: 3}, train.Call{})
		var e *train.NonFiniteError
		if !errors.As(err, &e) || e.Epoch != 0 || e.Step != 1 || !e.Validation {
			t.Fatalf("got %v, want a NonFiniteError in validation batch 1 of epoch 0", err)
		}
	})
}

// TestFitWithoutWeightInABatch validates on two batches. The second one has a weight of 0.
func TestFitWithoutWeightInABatch(t *testing.T) {
	loss := func(change func(*train.Problem, *setup)) float64 {
		p, c := digits(t, 1), setup{train.Config{BatchSize: 16, MaxEpochs: 1}, train.Call{}}
		change(&p, &c)
		r, err := train.Fit(context.Background(), p, c.Config, c.Call)
		if err != nil {
			t.Fatal(err)
		}
		return r.Best.ValLoss
	}
	one := loss(func(p *train.Problem, _ *setup) { p.Validation.Len = 50 })
	if got := loss(validationWeights(7, 0)); got != one || one == 0 {
		t.Errorf("the validation loss is %v, want the loss of the first batch, %v", got, one)
	}
}

// trainWeight sets the weight of every training batch.
func trainWeight(weight float64) func(*train.Problem, *setup) {
	return func(p *train.Problem, _ *setup) {
		p.Train = changed(p.Train, func(_ []int, b *train.Batch) { b.Weight = weight })
	}
}

// validationWeights sets the weights of the validation batches.
func validationWeights(weights ...float64) func(*train.Problem, *setup) {
	return func(p *train.Problem, _ *setup) {
		p.Validation = changed(p.Validation, func(examples []int, b *train.Batch) { b.Weight = weights[examples[0]/50] })
	}
}

// Fit also trains with a solver of Gorgonia.
func TestFitGorgoniaSolver(t *testing.T) {
	r, err := train.Fit(context.Background(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 8}, train.Call{Solver: G.NewAdamSolver(G.WithLearnRate(0.02))})
	if err != nil {
		t.Fatal(err)
	}
	if first := r.History[0].ValLoss; r.Best.ValLoss > first*0.8 {
		t.Errorf("the best validation loss: want at most 0.8 times the first, %v, got %v", first, r.Best.ValLoss)
	}
}
