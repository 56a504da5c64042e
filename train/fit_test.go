package train_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// digits is a small problem: to label vectors of 4 numbers by the largest, with dropout, so that everything that makes
// a run repeatable is in play.
func digits(t testing.TB, seed uint64) train.Problem { return digitsWith(t, seed, 0.1) }

// digitsWith is digits with another dropout.
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
		BatchSize: 16, ValidationSize: 50,
	}
}

// drawn are examples of digits, others in every epoch.
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

// changed is a Dataset whose batches are changed.
func changed(d train.Dataset, change func(examples []int, b *train.Batch)) train.Dataset {
	of := d.Batch
	d.Batch = func(examples []int) (train.Batch, error) {
		b, err := of(examples)
		change(examples, &b)
		return b, err
	}
	return d
}

// values are copies of all parameters' values.
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
	r, err := train.Fit(context.Background(), p, train.Config{
		Stopping: train.Stopping{Patience: 3}, MaxEpochs: 200, Solver: optim.NewAdamW(0.02), Seed: 1, Log: &log,
		OnCheck: func(history []train.Check, best bool) (bool, error) {
			if best {
				kept = values(p.Params)
			}
			return false, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if first := r.History[0].ValLoss; r.Best.ValLoss > first/2 {
		t.Errorf("validation loss went from %v to %v only", first, r.Best.ValLoss)
	}
	for _, e := range r.History {
		if e.ValLoss < r.Best.ValLoss {
			t.Errorf("epoch %d was better than the best: %+v", e.Epoch, r.Best)
		}
	}
	if !same(kept, values(p.Params)) {
		t.Error("the parameters left behind aren't the best epoch's")
	}
	if !r.StoppedEarly || r.Best.Epoch != len(r.History)-1-3 {
		t.Errorf("stopped early: %t, best epoch %d of %d", r.StoppedEarly, r.Best.Epoch, len(r.History))
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(r.History)+1 || lines[0] != r.History[0].String() || !strings.HasPrefix(lines[len(lines)-1], "Early stopping at epoch ") {
		t.Errorf("the log is\n%s", log.String())
	}
}

// The best parameters come back also when patience never fired.
func TestFitRestoresWithoutPatience(t *testing.T) {
	p := digits(t, 2)
	solver := optim.NewAdamW(0.02)
	var kept [][]float32
	r, err := train.Fit(context.Background(), p, train.Config{
		MaxEpochs: 6, Solver: solver,
		OnCheck: func(history []train.Check, best bool) (bool, error) {
			if best {
				kept = values(p.Params)
			}
			if len(history) == 3 {
				solver.LearningRate = 3 // ruin it
			}
			return false, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.StoppedEarly || len(r.History) != 6 || r.Best.Epoch > 2 {
		t.Fatalf("the run didn't go as planned: %+v", r)
	}
	if !same(kept, values(p.Params)) {
		t.Error("the parameters left behind aren't the best epoch's")
	}
}

func TestFitRepeats(t *testing.T) {
	run := func() ([]train.Check, [][]float32) {
		p := digits(t, 3)
		r, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 4, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		return r.History, values(p.Params)
	}
	h1, v1 := run()
	h2, v2 := run()
	for i := range h1 {
		if !reflect.DeepEqual(h1[i], h2[i]) {
			t.Errorf("epoch %d: %+v and %+v", i, h1[i], h2[i])
		}
	}
	if !same(v1, v2) {
		t.Error("two runs with one seed left different parameters")
	}
}

// A run that is interrupted in the middle of an epoch, and resumed, is the run that never was.
func TestFitResumes(t *testing.T) {
	whole := digits(t, 4)
	want, err := train.Fit(context.Background(), whole, train.Config{MaxEpochs: 6, Seed: 7, Checkpoint: filepath.Join(t.TempDir(), "c")})
	if err != nil {
		t.Fatal(err)
	}

	checkpoint := filepath.Join(t.TempDir(), "c")
	ctx, cancel := context.WithCancel(context.Background())
	p := digits(t, 4)
	r, err := train.Fit(ctx, p, train.Config{MaxEpochs: 6, Seed: 7, Checkpoint: checkpoint, OnStep: func(epoch, step int, _ float64) bool {
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
	got, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 6, Seed: 7, Checkpoint: checkpoint, Resume: true})
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
	c := train.Config{MaxEpochs: 2, Checkpoint: checkpoint}
	p := digits(t, 4)
	if _, err := train.Fit(context.Background(), p, c); err != nil {
		t.Fatal(err)
	}
	want := values(p.Params)
	c.Resume = true
	p = digits(t, 4)
	r, err := train.Fit(context.Background(), p, c)
	if err != nil || len(r.History) != 2 || !same(want, values(p.Params)) {
		t.Errorf("resuming a run that was done: %v, %+v", err, r)
	}
}

func TestFitDamagedCheckpoint(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	c := train.Config{MaxEpochs: 1, Checkpoint: checkpoint}
	if _, err := train.Fit(context.Background(), digits(t, 4), c); err != nil {
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
			_, err := train.Fit(context.Background(), p, c)
			if err == nil || !strings.Contains(err.Error(), checkpoint) {
				t.Errorf("the error should name the file: %v", err)
			}
			if !same(before, values(p.Params)) {
				t.Error("a checkpoint that can't be read changed the parameters")
			}
		})
	}
	os.Remove(checkpoint)
	if r, err := train.Fit(context.Background(), digits(t, 4), c); err != nil || len(r.History) != 1 {
		t.Errorf("with nothing to resume from: %v", err)
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
		r, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 3})
		var e *train.NonFiniteError
		if !errors.As(err, &e) || e.Epoch != 1 || e.Step != 7 || e.Validation {
			t.Fatalf("got %v", err)
		}
		if len(r.History) != 1 {
			t.Errorf("the history has %d epochs, want the one that was done", len(r.History))
		}
		for _, v := range values(p.Params) {
			for _, x := range v {
				if x != x {
					t.Fatal("a NaN got into the parameters")
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
		_, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 3})
		var e *train.NonFiniteError
		if !errors.As(err, &e) || e.Epoch != 0 || e.Step != 1 || !e.Validation {
			t.Fatalf("got %v", err)
		}
	})
}

// TestFitWithoutWeightInABatch validates on two batches, of which one counts for nothing.
func TestFitWithoutWeightInABatch(t *testing.T) {
	loss := func(change func(*train.Problem, *train.Config)) float64 {
		p, c := digits(t, 1), train.Config{MaxEpochs: 1}
		change(&p, &c)
		r, err := train.Fit(context.Background(), p, c)
		if err != nil {
			t.Fatal(err)
		}
		return r.Best.ValLoss
	}
	one := loss(func(p *train.Problem, _ *train.Config) { p.Validation.Len = 50 })
	if got := loss(validationWeights(7, 0)); got != one || one == 0 {
		t.Errorf("the loss is %v, want that of the first batch alone, %v", got, one)
	}
}

// TestFitNumbersOfItsOwn adds to the loss the mean square of numbers that no batch has.
func TestFitNumbersOfItsOwn(t *testing.T) {
	start := []float32{1, 2, 3, 4}
	other, err := layers.NewParams(tensor.Float32, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		params  func(p train.Problem) *layers.Params // where the numbers are from; nil for a plain node
		fixed   bool
		want    string // error
		trained bool
	}{
		{"a parameter", func(p train.Problem) *layers.Params { return p.Params }, false, "", true},
		{"a parameter that is fixed", func(p train.Problem) *layers.Params { return p.Params }, true, "", false},
		{"a parameter of other Params", func(train.Problem) *layers.Params { return other }, false, `"numbers", which is neither an input that Loss is given nor a parameter`, false},
		{"one that is fixed", func(train.Problem) *layers.Params { return other.Scope("fixed") }, true, "", false},
		{"a node", nil, false, `"numbers", which is neither`, false},
		{"a node that is fixed", nil, true, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := digits(t, 1)
			numbers := &layers.Param{Name: "numbers", Value: tensor.New(tensor.WithShape(4), tensor.Of(tensor.Float32))}
			if c.params != nil {
				var err error
				if numbers, err = c.params(p).New("numbers", layers.Init{}, 4); err != nil {
					t.Fatal(err)
				}
			}
			copy(numbers.Value.Float32s(), start)
			plain := p.Loss
			p.Loss = func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
				loss, _, err := plain(b, in)
				if err != nil {
					return nil, nil, err
				}
				g := loss.Graph()
				var n *G.Node
				if c.params == nil {
					n = G.NewVector(g, tensor.Float32, G.WithName("numbers"), G.WithShape(4), G.WithValue(numbers.Value))
				} else if n, err = b.Bind(g, numbers); err != nil {
					return nil, nil, err
				}
				if c.fixed {
					b.Fixed = append(b.Fixed, n)
				}
				loss, err = G.Add(loss, G.Must(G.Mean(G.Must(G.Square(n)))))
				return loss, nil, err
			}
			_, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 2})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if trained := !slices.Equal(numbers.Value.Float32s(), start); trained != c.trained {
				t.Errorf("the numbers are %v", numbers.Value)
			}
		})
	}
}

// trainWeight gives every training batch a weight.
func trainWeight(weight float64) func(*train.Problem, *train.Config) {
	return func(p *train.Problem, _ *train.Config) {
		p.Train = changed(p.Train, func(_ []int, b *train.Batch) { b.Weight = weight })
	}
}

// validationWeights gives the validation batches weights.
func validationWeights(weights ...float64) func(*train.Problem, *train.Config) {
	return func(p *train.Problem, _ *train.Config) {
		p.Validation = changed(p.Validation, func(examples []int, b *train.Batch) { b.Weight = weights[examples[0]/50] })
	}
}

func TestFitErrors(t *testing.T) {
	var noContext context.Context
	if _, err := train.Fit(noContext, digits(t, 1), train.Config{MaxEpochs: 1}); err == nil || !strings.Contains(err.Error(), "the context is nil") {
		t.Errorf("got %v", err)
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		change func(*train.Problem, *train.Config)
		want   string
	}{
		"no end":              {func(_ *train.Problem, c *train.Config) { c.MaxEpochs = 0 }, "no end"},
		"nothing to train on": {func(p *train.Problem, _ *train.Config) { p.Train.Len = 0 }, "Train needs a Len of 1 example or more, got 0"},
		"no order":            {func(p *train.Problem, _ *train.Config) { p.Train.Order = 3 }, "Order of Shuffled, InOrder or Fresh, got 3"},
		"buckets that are fresh": {func(p *train.Problem, _ *train.Config) {
			p.Train.Order, p.Train.Bucket = train.Fresh, func(int) int { return 0 }
		}, "Train can't have a Bucket"},
		"no loss":        {func(p *train.Problem, _ *train.Config) { p.Loss = nil }, "needs Params and a Loss"},
		"resume nothing": {func(_ *train.Problem, c *train.Config) { c.Resume = true }, "Checkpoint"},
		"checkpoint of another solver": {func(_ *train.Problem, c *train.Config) {
			c.Checkpoint, c.Solver = "x", G.NewVanillaSolver()
		}, "*optim.Solver"},
		"batch fails": {func(p *train.Problem, _ *train.Config) {
			p.Train.Batch = func([]int) (train.Batch, error) { return train.Batch{}, broken }
		}, "broken"},
		"too few values": {func(p *train.Problem, _ *train.Config) {
			p.Train.Batch = func([]int) (train.Batch, error) { return train.Batch{Weight: 1}, nil }
		}, "it must have Values"},
		"a value is nil": {func(p *train.Problem, _ *train.Config) {
			p.Train = changed(p.Train, func(_ []int, b *train.Batch) { b.Values[1] = nil })
		}, "batch of epoch 0, step 0: value 1 is nil or an empty tensor"},
		"wrong shape": {func(p *train.Problem, _ *train.Config) {
			p.Validation = changed(p.Validation, func(_ []int, b *train.Batch) {
				b.Values[0] = tensor.New(tensor.WithShape(3, 5), tensor.Of(tensor.Float32))
			})
		}, "(3, 5)"},
		"a weight that was never set":      {trainWeight(0), "batch of epoch 0, step 0: its Weight must be above 0, got 0: set it"},
		"a negative weight":                {trainWeight(-1), "at least 0 and finite, got -1"},
		"a weight that is NaN":             {trainWeight(math.NaN()), "at least 0 and finite, got NaN"},
		"an infinite weight":               {trainWeight(math.Inf(1)), "at least 0 and finite, got +Inf"},
		"a negative validation weight":     {validationWeights(3, -1), "validation batch 1: its Weight must be at least 0 and finite, got -1"},
		"a validation weight that is NaN":  {validationWeights(math.NaN(), 1), "validation batch 0: its Weight must be at least 0 and finite, got NaN"},
		"an infinite validation weight":    {validationWeights(math.Inf(1), 1), "finite, got +Inf"},
		"validation weights all never set": {validationWeights(0, 0), "every validation batch has a Weight of 0"},
		"callback fails": {func(_ *train.Problem, c *train.Config) {
			c.OnCheck = func([]train.Check, bool) (bool, error) { return false, broken }
		}, "broken"},
		"folder missing": {func(_ *train.Problem, c *train.Config) {
			c.Checkpoint = filepath.Join(t.TempDir(), "missing", "c")
		}, "missing"},
		"a loss of no parameters": {func(p *train.Problem, _ *train.Config) {
			p.Loss = func(_ *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
				loss, err := G.Sum(in[0])
				return loss, nil, err
			}
		}, "no parameter"},
		"a loss of another graph": {func(p *train.Problem, _ *train.Config) {
			p.Loss = func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
				return G.NewScalar(G.NewGraph(), tensor.Float32), nil, nil
			}
		}, "a scalar node of the inputs' graph"},
		"an input of one's own": {func(p *train.Problem, _ *train.Config) {
			loss := p.Loss
			p.Loss = func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
				return loss(b, G.Nodes{G.NewMatrix(in[0].Graph(), tensor.Float32, G.WithShape(in[0].Shape()...), G.WithName("mine")), in[1]})
			}
		}, `the loss reads "mine", which has no value: use the inputs`},
		"a parameter that is bound and not used": {func(p *train.Problem, _ *train.Config) {
			loss := p.Loss
			w, err := p.Params.New("w", layers.Zeros(), 1)
			if err != nil {
				panic(err)
			}
			p.Loss = func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
				if _, err := b.Bind(in[0].Graph(), w); err != nil {
					return nil, nil, err
				}
				return loss(b, in)
			}
		}, "the loss must depend on every parameter that it binds"},
	} {
		t.Run(name, func(t *testing.T) {
			p, config := digits(t, 1), train.Config{MaxEpochs: 1}
			c.change(&p, &config)
			_, err := train.Fit(context.Background(), p, config)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

// Any of Gorgonia's solvers will do.
func TestFitGorgoniaSolver(t *testing.T) {
	r, err := train.Fit(context.Background(), digits(t, 1), train.Config{MaxEpochs: 8, Solver: G.NewAdamSolver(G.WithLearnRate(0.02))})
	if err != nil {
		t.Fatal(err)
	}
	if first := r.History[0].ValLoss; r.Best.ValLoss > first*0.8 {
		t.Errorf("validation loss went from %v to %v only", first, r.Best.ValLoss)
	}
}
