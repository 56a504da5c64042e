package train_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// Training with the rate from FindRate gives nearly the lowest loss of a grid of rates. A second call finds the same.
func TestFindRate(t *testing.T) {
	p := digits(t, 1)
	before := values(p.Params)
	numbers := map[int]int{}
	find := func() ([]train.RateLoss, float64) {
		options := train.RunOptions{Seed: 3, OnStep: func(number, step int, _ float64) bool {
			if numbers[number]++; step >= 40 {
				t.Errorf("training %d has a step %d, want 40 steps at most", number, step)
			}
			return false
		}}
		curve, rate, err := train.FindRate(t.Context(), p, train.Config{BatchSize: 16}, options, 1e-5, 10, 40)
		must.Do(t, err)
		return curve, rate
	}
	curve, rate := find()
	if !same(before, values(p.Params)) {
		t.Error("FindRate changed the parameters")
	}
	if len(curve) < 10 || len(curve) > 13 || curve[0].Rate != 1e-5 || len(numbers) != len(curve)+12 {
		t.Errorf("FindRate made %d trainings at %d rates, %v, want 10 to 13 rates from 1e-5, and 12 trainings more", len(numbers), len(curve), curve)
	}
	for _, c := range curve {
		if c.Loss > curve[0].Loss {
			t.Errorf("the loss at %v is %v, want at most the loss at the lowest rate, %v", c.Rate, c.Loss, curve[0].Loss)
		}
	}
	if again, found := find(); found != rate || !slices.Equal(again, curve) {
		t.Errorf("a second call finds %v and %v, want %v and %v", found, again, rate, curve)
	}
	loss := func(rate float64) float64 {
		r := fitted(t, digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 3, Stopping: train.StoppingConfig{AllowNonFinite: true}}, train.RunOptions{Solver: optim.NewAdamW(rate)})
		return r.Best.ValLoss
	}
	best := math.Inf(1)
	for _, rate := range []float64{1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3} {
		best = min(best, loss(rate))
	}
	if found := loss(rate); found > 1.2*best {
		t.Errorf("with the rate %v the loss is %v, want at most 1.2 times the best of a grid, %v", rate, found, best)
	}
}

// FindRate doesn't change the caller's solver. It changes the rates of groups by the same factor.
func TestFindRateSolver(t *testing.T) {
	find := func(rate, group float64) float64 {
		solver := optim.NewAdamW(rate)
		solver.Groups = []optim.Group{{Match: func(_ string, rank int) bool { return rank == 2 }, LearningRate: group}}
		_, found, err := train.FindRate(t.Context(), digits(t, 1), train.Config{BatchSize: 16}, train.RunOptions{Solver: solver}, 1e-5, 10, 20)
		if err != nil || solver.Steps != 0 || solver.Schedule != nil || solver.LearningRate != rate {
			t.Errorf("FindRate returns %v, and the solver is %+v, want it unchanged", err, solver)
		}
		return found
	}
	if one, scaled := find(0.01, 0.1), find(0.1, 1); math.Abs(one/scaled-1) > 1e-3 {
		t.Errorf("FindRate finds %v and %v, want the same, as the groups have ten times the solver's rate in both", one, scaled)
	}
}

// combined returns digits with a loss that is combined with the mean of a number of each example.
func combined(t *testing.T, combine func(a, b *G.Node) (*G.Node, error), number func(example int) float32) train.Problem {
	p := digitsWith(t, 1, 0)
	p.Loss = added(p.Loss, func(_ *layers.Build, inputs G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
		return G.Must(combine(loss, inputs[2])), nil
	})
	return withInput(p, func(examples []int) float32 {
		var sum float32
		for _, e := range examples {
			sum += number(e)
		}
		return sum / float32(len(examples))
	})
}

// FindRate compares losses of the same batches, so losses that differ between batches don't matter.
func TestFindRateBatches(t *testing.T) {
	find := func(noise float64) float64 {
		p := combined(t, G.Add, func(e int) float32 { return float32(noise * rand.New(rand.NewPCG(8, uint64(e))).NormFloat64()) })
		_, rate, err := train.FindRate(t.Context(), p, train.Config{BatchSize: 16}, train.RunOptions{}, 1e-5, 10, 20)
		if err != nil {
			t.Error(err)
		}
		return rate
	}
	if plain, noisy := find(0), find(40); math.Abs(noisy/plain-1) > 0.2 {
		t.Errorf("with noise in the loss of each batch FindRate finds %v, want %v as without noise", noisy, plain)
	}
}

func TestFindRateErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	used := optim.NewAdamW(1)
	used.Steps = 1
	const steps = 20
	plain := digitsWith(t, 1, 0)
	noise := combined(t, G.HadamardProd, func(e int) float32 { return float32(rand.New(rand.NewPCG(8, uint64(e))).NormFloat64()) })
	constant := combined(t, G.HadamardProd, func(e int) float32 { return float32(max(0, 1-e/(steps*16))) }) // in the second and the third order
	for name, test := range map[string]struct {
		ctx       context.Context
		problem   train.Problem
		options   train.RunOptions
		low, high float64
		steps     int
		want      string
		noRate    bool
	}{
		"cancelled":     {ctx, plain, train.RunOptions{}, 1e-6, 1, steps, "context canceled", false},
		"falling rates": {t.Context(), plain, train.RunOptions{}, 1, 1e-6, steps, "rates must rise", false},
		"narrow":        {t.Context(), plain, train.RunOptions{}, 1e-3, 1e-2, steps, "by a factor of 100 or more", false},
		"few steps":     {t.Context(), plain, train.RunOptions{}, 1e-6, 1, 2, "at least 10 steps", false},
		"solver":        {t.Context(), plain, train.RunOptions{Solver: G.NewVanillaSolver()}, 1e-6, 1, steps, "needs an *optim.Solver", false},
		"used solver":   {t.Context(), plain, train.RunOptions{Solver: used}, 1e-6, 1, steps, "that has taken no step", false},
		"stopped":       {t.Context(), plain, train.RunOptions{OnStep: func(int, int, float64) bool { return true }}, 1e-6, 1, steps, "OnStep asked", true},
		"high rates":    {t.Context(), plain, train.RunOptions{}, 10, 1e4, steps, "falls at no rate from 10 to", true},
		"low rates":     {t.Context(), plain, train.RunOptions{}, 1e-6, 1e-4, steps, "the highest rate", true},
		"noise":         {t.Context(), noise, train.RunOptions{}, 1e-5, 10, steps, "the loss falls by", true},
		"one order":     {t.Context(), constant, train.RunOptions{}, 1e-5, 10, steps, "depends on the order", true},
	} {
		_, rate, err := train.FindRate(test.ctx, test.problem, train.Config{BatchSize: 16}, test.options, test.low, test.high, test.steps)
		wantError(t, name, err, test.want)
		if rate != 0 || test.noRate != errors.Is(err, train.ErrNoRate) || name == "cancelled" != errors.Is(err, context.Canceled) {
			t.Errorf("%s: got the rate %v and %v, want 0, and an error that wraps ErrNoRate: %t", name, rate, err, test.noRate)
		}
	}
}
