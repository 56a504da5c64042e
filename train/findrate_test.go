package train_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// Training with the rate from FindRate gives a lower loss than with a hundredth or a hundred times that rate.
func TestFindRate(t *testing.T) {
	p := digits(t, 1)
	before := values(p.Params)
	curve, rate, err := train.FindRate(t.Context(), p, train.Config{BatchSize: 16}, train.RunOptions{}, 1e-6, 100, 200)
	if err != nil {
		t.Fatal(err)
	}
	if !same(before, values(p.Params)) {
		t.Error("FindRate changed the parameters")
	}
	if len(curve) < 100 || len(curve) > 200 || curve[0].Rate != 1e-6 || curve[len(curve)-1].Rate <= rate {
		t.Errorf("the curve has %d points from %v to %v, want 100 to 200 points from 1e-6 to above the rate", len(curve), curve[0], curve[len(curve)-1])
	}
	loss := func(rate float64) float64 {
		r := fitted(t, digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 3, Stopping: train.StoppingConfig{AllowNonFinite: true}}, train.RunOptions{Solver: optim.NewAdamW(rate)})
		return r.Best.ValLoss
	}
	if found, below, above := loss(rate), loss(rate/100), loss(100*rate); found > 0.7*below || found > 0.7*above {
		t.Errorf("with the rate %v the loss is %v, want at most 0.7 times the losses with a hundredth of it, %v, and with a hundred times it, %v", rate, found, below, above)
	}
}

func TestFindRateErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	used := optim.NewAdamW(1)
	used.Steps = 1
	for name, test := range map[string]struct {
		ctx       context.Context
		solver    G.Solver
		low, high float64
		steps     int
		want      string
	}{
		"cancelled":     {ctx, nil, 1e-6, 1, 50, "context canceled"},
		"falling rates": {t.Context(), nil, 1, 1e-6, 50, "rates must rise"},
		"few steps":     {t.Context(), nil, 1e-6, 1, 2, "at least 10 steps"},
		"solver":        {t.Context(), G.NewVanillaSolver(), 1e-6, 1, 50, "needs an *optim.Solver"},
		"used solver":   {t.Context(), used, 1e-6, 1, 50, "that has taken no step"},
		"no fall":       {t.Context(), nil, 1e-30, 1e-29, 50, "the loss falls at no learning rate"},
	} {
		p := digitsWith(t, 1, 0)
		if name == "no fall" { // the same batch in every step
			batch := p.Train.Batch
			p.Train.Batch = func(examples []int) (train.Batch, error) {
				first := make([]int, len(examples))
				for i := range first {
					first[i] = i
				}
				return batch(first)
			}
		}
		_, _, err := train.FindRate(test.ctx, p, train.Config{BatchSize: 16}, train.RunOptions{Solver: test.solver}, test.low, test.high, test.steps)
		if err == nil || !strings.Contains(err.Error(), test.want) || name == "cancelled" != errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want an error that contains %q", name, err, test.want)
		}
	}
}
