package train_test

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// rectified is digits with ReLU. If the bias of a hidden unit is −Inf, the unit is 0, and the loss and all gradients
// are finite.
func rectified(t *testing.T) train.Problem {
	return digitsOf(t, 1, layers.FeedForwardConfig{Hidden: 16, Activation: layers.ReLU})
}

// writes is SGD, but at some steps it also sets the first weight or the first element of the velocity to a given value.
type writes struct {
	optim.SGD
	weights, velocities map[int]float64 // by step, counted from 1
}

func (r writes) Update(s optim.Step) {
	r.SGD.Update(s)
	if x, ok := r.weights[s.Count]; ok {
		s.Weight.Float32s()[0] = float32(x)
	}
	if x, ok := r.velocities[s.Count]; ok {
		s.Memory[0].Value.Float32s()[0] = float32(x)
	}
}

// writing returns a RunOptions whose solver steps the bias of the hidden units by writes.
func writing(weights, velocities map[int]float64) train.RunOptions {
	return train.RunOptions{Solver: &optim.Solver{LearningRate: 0.01, Groups: []optim.Group{{
		Match: func(name string, rank int) bool { return name == "up.bias" },
		Rule:  writes{optim.SGD{Momentum: 0.5}, weights, velocities},
	}}}}
}

// A step that isn't finite ends training at the next check or checkpoint, even if the loss stays finite. The parameters
// of the best check and the last checkpoint stay, and training can be resumed from it.
func TestStepsNotFinite(t *testing.T) {
	at25 := map[int]float64{25: math.Inf(-1)} // an epoch has 20 steps
	for name, c := range map[string]struct {
		change              func(c *train.Config, options *train.RunOptions)
		weights, velocities map[int]float64
		want                train.NonFiniteError
		saved               int // step of the checkpoint; 0 if there is none
	}{
		"a weight":                           {nil, at25, nil, train.NonFiniteError{Epoch: 1, Step: 19, Value: "parameter up.bias"}, 20},
		"a weight in the first epoch":        {nil, map[int]float64{5: math.Inf(-1)}, nil, train.NonFiniteError{Epoch: 0, Step: 19, Value: "parameter up.bias"}, 0},
		"checks within an epoch":             {func(c *train.Config, _ *train.RunOptions) { c.CheckEvery = 8 }, at25, nil, train.NonFiniteError{Epoch: 1, Step: 11, Value: "parameter up.bias"}, 24},
		"a checkpoint before the next check": {func(_ *train.Config, options *train.RunOptions) { options.CheckpointSteps = 9 }, at25, nil, train.NonFiniteError{Epoch: 1, Step: 6, Value: "parameter up.bias"}, 20},
		"a limit before the next check":      {func(_ *train.Config, options *train.RunOptions) { options.MaxSteps = 30 }, at25, nil, train.NonFiniteError{Epoch: 1, Step: 9, Value: "parameter up.bias"}, 20},
		"AllowNonFinite":                     {func(c *train.Config, _ *train.RunOptions) { c.Stopping.AllowNonFinite = true }, at25, nil, train.NonFiniteError{Epoch: 1, Step: 19, Value: "parameter up.bias"}, 20},
		"the memory":                         {nil, map[int]float64{40: 1}, map[int]float64{40: math.NaN()}, train.NonFiniteError{Epoch: 1, Step: 19, Value: "the solver's memory of parameter up.bias"}, 20},
		"an average":                         {func(c *train.Config, _ *train.RunOptions) { c.Optimizer.Average = 0.5 }, map[int]float64{25: math.Inf(-1), 26: 1}, nil, train.NonFiniteError{Epoch: 1, Step: 19, Value: "the average of parameter up.bias"}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			p, best := rectified(t), [][]float32(nil)
			config, call := train.Config{BatchSize: 16, MaxEpochs: 3}, writing(c.weights, c.velocities)
			call.Checkpoint = filepath.Join(t.TempDir(), "c")
			call.OnCheck = keeping(p.Params, &best)
			if c.change != nil {
				c.change(&config, &call)
			}
			r, err := train.Fit(t.Context(), p, config, call)
			var e *train.NonFiniteError
			if !errors.As(err, &e) || *e != c.want || !strings.Contains(err.Error(), c.want.Value+" is NaN or infinite after epoch ") {
				t.Fatalf("got %v, want %+v", err, c.want)
			}
			if saved, err := train.ReadProgress(call.Checkpoint); err != nil && c.saved > 0 || saved.Step != c.saved {
				t.Errorf("the checkpoint is from step %d, %v, want step %d", saved.Step, err, c.saved)
			}
			if c.saved == 0 {
				return
			}
			if r == nil || r.Unfinished || !same(best, values(p.Params)) {
				t.Errorf("got %+v, want a Result that isn't Unfinished, and the parameters of its best check", r)
			}
			call.Solver, call.Resume, call.MaxSteps = writing(nil, nil).Solver, true, 0
			if r, err := train.Fit(t.Context(), rectified(t), config, call); err != nil || r.Best.Epoch != 2 {
				t.Errorf("resumed with finite steps: got %+v, %v, want the best check in epoch 2", r, err)
			}
		})
	}
}

// All processes of a Group end with the same error, also if only one of them has the memory that isn't finite.
func TestStepsNotFiniteInAGroup(t *testing.T) {
	for value, options := range map[string]train.RunOptions{
		"parameter up.bias":                        writing(map[int]float64{25: math.Inf(-1)}, nil),
		"the solver's memory of parameter up.bias": writing(map[int]float64{40: 1}, map[int]float64{40: math.NaN()}),
	} {
		want := train.NonFiniteError{Epoch: 1, Step: 19, Value: value}
		for rank, o := range fitAll(t, newLocal(4, 0), func(int) process {
			own := options
			own.Solver = new(*options.Solver.(*optim.Solver))
			return process{nil, rectified(t), setup{train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 3}, own}}
		}) {
			var e *train.NonFiniteError
			if !errors.As(o.err, &e) || *e != want || len(o.result.History) != 1 {
				t.Errorf("process %d: got %v, want %+v after one check", rank, o.err, want)
			}
		}
	}
}

// Adam's mean of squares overflows in single precision although every gradient is finite. Weights of 1e200 are finite.
func TestLargeSteps(t *testing.T) {
	p := rectified(t)
	p.Loss = added(p.Loss, func(_ *layers.Build, _ G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
		return G.Must(G.Mul(loss, G.NewConstant(float32(1e25)))), nil
	})
	_, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{})
	var e *train.NonFiniteError
	if !errors.As(err, &e) || !strings.HasPrefix(e.Value, "the solver's memory of parameter ") {
		t.Errorf("got %v, want a NonFiniteError about the solver's memory", err)
	}
	large, w := scripted(t, []float64{1, 1}, []float64{1, 1})
	w.Value.Float64s()[0] = 1e200
	fitted(t, large, train.Config{BatchSize: 1, MaxEpochs: 1}, train.RunOptions{Solver: G.NewVanillaSolver()})
}
