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

// The rate that FindRate names trains well, and a hundredth and a hundred times it don't.
func TestFindRate(t *testing.T) {
	p := digits(t, 1)
	before := values(p.Params)
	curve, rate, err := train.FindRate(t.Context(), p, train.Config{BatchSize: 16}, train.Call{}, 1e-6, 100, 200)
	if err != nil {
		t.Fatal(err)
	}
	if !same(before, values(p.Params)) {
		t.Error("it changed the parameters")
	}
	if len(curve) < 100 || len(curve) > 200 || curve[0].Rate != 1e-6 || curve[len(curve)-1].Rate <= rate {
		t.Errorf("the curve has %d points, from %v to %v", len(curve), curve[0], curve[len(curve)-1])
	}
	loss := func(rate float64) float64 {
		r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MaxEpochs: 3, Stopping: train.Stopping{AllowNonFinite: true}}, train.Call{Solver: optim.NewAdamW(rate)})
		if err != nil {
			t.Fatal(err)
		}
		return r.Best.ValLoss
	}
	if at, below, above := loss(rate), loss(rate/100), loss(100*rate); at > 0.7*below || at > 0.7*above {
		t.Errorf("with the rate %v the loss is %v, with a hundredth %v and with a hundred times that %v", rate, at, below, above)
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
		"no fall":       {t.Context(), nil, 1e-30, 1e-29, 50, "does the loss fall"},
	} {
		p := digitsWith(t, 1, 0)
		if name == "no fall" { // one batch, again and again
			of := p.Train.Batch
			p.Train.Batch = func(examples []int) (train.Batch, error) {
				first := make([]int, len(examples))
				for i := range first {
					first[i] = i
				}
				return of(first)
			}
		}
		_, _, err := train.FindRate(test.ctx, p, train.Config{BatchSize: 16}, train.Call{Solver: test.solver}, test.low, test.high, test.steps)
		if err == nil || !strings.Contains(err.Error(), test.want) || name == "cancelled" != errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want … %s …", name, err, test.want)
		}
	}
}
