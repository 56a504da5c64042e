package train_test

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

func TestExtremes(t *testing.T) {
	testseed.Slow(t)
	// fit trains digits, with a problem and a configuration that set may change, and returns what came of it.
	fit := func(set func(p *train.Problem, c *train.Config)) ([]float64, error) {
		p := digits(t, 1)
		p.Train.Len, p.Validation.Len, p.BatchSize, p.ValidationSize = 32, 20, 16, 10
		c := train.Config{MaxEpochs: 2, Stopping: train.Stopping{Patience: 2}}
		set(&p, &c)
		r, err := train.Fit(t.Context(), p, c)
		if err != nil {
			return nil, err
		}
		results := []float64{r.Best.TrainLoss, r.Best.ValLoss, r.Best.LearningRate, r.Best.GradientNorm}
		for _, param := range p.Params.All() {
			for _, x := range param.Value.Float32s() {
				results = append(results, float64(x))
			}
		}
		return results, nil
	}
	stopping := train.Stopping{Patience: 2, MinDelta: 0.1, RelativeDelta: true, Baseline: new(0.5), StoppingThreshold: new(1e-3), DivergenceThreshold: new(1e3)}
	type rates struct {
		Low, High float64
		Steps     int
	}
	results := []string{"Check", "NonFiniteError", "Progress", "RateLoss", "Result"}
	extremes.Run(t, results,
		extremes.Of(stopping, func(c train.Stopping) ([]float64, error) {
			return fit(func(_ *train.Problem, f *train.Config) { f.Stopping = c })
		}),
		extremes.Of(train.EarlyStopping{Stopping: stopping, Checks: 3, Best: 2, BestCheck: 2, Improved: true}, func(c train.EarlyStopping) ([]float64, error) {
			if _, stop := c.Observe(1); stop {
				return nil, errors.New(c.Because())
			}
			counts := math.Sqrt(float64(min(c.Checks, c.BestCheck, c.Waited, c.Checks-c.BestCheck))) // NaN if one is below 0
			return []float64{c.Best, counts}, nil
		}),
		extremes.Of(train.Config{
			Stopping: stopping, MaxEpochs: 2, MaxSteps: 4, Average: &optim.Average{Decay: 0.9}, Plateau: &optim.Plateau{},
		}, func(c train.Config) ([]float64, error) {
			return fit(func(_ *train.Problem, f *train.Config) {
				average, plateau := *c.Average, *c.Plateau // Fit writes to both
				c.Average, c.Plateau = &average, &plateau
				solver := optim.NewAdamW(0.01)
				solver.Schedule = plateau.Schedule
				c.Solver, c.Checkpoint = solver, filepath.Join(t.TempDir(), "c")
				*f = c
			})
		}),
		extremes.Of(digits(t, 1), func(c train.Problem) ([]float64, error) {
			return fit(func(p *train.Problem, _ *train.Config) {
				c.Params, c.Loss = p.Params, p.Loss
				*p = c
			})
		}),
		extremes.Of(drawn(32, 1), func(c train.Dataset) ([]float64, error) {
			return fit(func(p *train.Problem, _ *train.Config) { p.Train = c })
		}),
		extremes.Of(train.Batch{Weight: 16}, func(c train.Batch) ([]float64, error) {
			return fit(func(p *train.Problem, _ *train.Config) {
				for _, d := range []*train.Dataset{&p.Train, &p.Validation} {
					*d = changed(*d, func(_ []int, b *train.Batch) { b.Weight = c.Weight })
				}
			})
		}),
		extremes.Of(rates{1e-4, 1, 10}, func(c rates) ([]float64, error) {
			p := digits(t, 1)
			curve, rate, err := train.FindRate(t.Context(), p, train.Config{MaxEpochs: 1}, c.Low, c.High, c.Steps)
			results := []float64{rate}
			for _, x := range curve {
				results = append(results, x.Rate, x.Loss)
			}
			return results, err
		}),
	)
}

// Numbers of what Fit is given are checked before the first step, not where they are needed first.
func TestNumbersAreCheckedBeforeTheFirstStep(t *testing.T) {
	for want, c := range map[string]train.Config{
		"Plateau's Factor":   {Plateau: &optim.Plateau{Factor: 2}},
		"Plateau's Patience": {Plateau: &optim.Plateau{Patience: -1}},
		"Plateau's Floor":    {Plateau: &optim.Plateau{Floor: 2}},
		"Average's Decay":    {Average: &optim.Average{Decay: 1}},
		"step 0":             {Solver: &optim.Solver{Schedule: optim.WarmUpCosine(5, 9, 2)}},
	} {
		c.MaxEpochs = 1
		c.OnStep = func(int, int, float64) bool {
			t.Errorf("%s: a step was taken", want)
			return true
		}
		if _, err := train.Fit(t.Context(), digits(t, 1), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
