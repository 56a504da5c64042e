package train_test

import (
	"cmp"
	"errors"
	"math"
	"path/filepath"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

func TestExtremes(t *testing.T) {
	testseed.Proof(t)
	// fit calls set to change the problem and the setup. Then it trains, and returns the losses and the parameters.
	fit := func(set func(p *train.Problem, c *setup)) ([]float64, error) {
		p := digits(t, 1)
		p.Train.Len, p.Validation.Len, p.ValidationSize = 32, 20, 10
		c := setup{train.Config{BatchSize: 16, MaxEpochs: 2, Stopping: train.StoppingConfig{Patience: 2}}, train.RunOptions{}}
		set(&p, &c)
		r, err := train.Fit(t.Context(), p, c.Config, c.RunOptions)
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
	stopping := train.StoppingConfig{Patience: 2, MinDelta: 0.1, RelativeDelta: true, Baseline: new(0.5), StoppingThreshold: new(1e-3), DivergenceThreshold: new(1e3)}
	type rates struct {
		Low, High float64
		Steps     int
	}
	results := []string{"Check", "NonFiniteError", "Progress", "RateLoss", "Result"}
	extremes.Run(t, results,
		extremes.Of(stopping, func(c train.StoppingConfig) ([]float64, error) {
			return fit(func(_ *train.Problem, f *setup) { f.Stopping = c })
		}),
		extremes.Of(train.EarlyStopping{StoppingConfig: stopping, Checks: 3, Best: 2, BestCheck: 2, Improved: true}, func(c train.EarlyStopping) ([]float64, error) {
			if _, stop := c.Observe(1); stop {
				return nil, errors.New(c.Because())
			}
			counts := math.Sqrt(float64(min(c.Checks, c.BestCheck, c.Waited, c.Checks-c.BestCheck))) // NaN if one is below 0
			return []float64{c.Best, counts}, nil
		}),
		extremes.Of(train.Config{
			BatchSize: 16, MicroBatches: 2, MaxEpochs: 2, CheckEvery: 3, Stopping: stopping,
			Optimizer: optim.Config{LearningRate: 0.01, Average: 0.9, Plateau: optim.PlateauConfig{Checks: 1}},
		}, func(c train.Config) ([]float64, error) {
			return fit(func(_ *train.Problem, f *setup) { f.Config, f.MaxSteps = c, 4 })
		}),
		extremes.Of(train.RunOptions{MaxSteps: 4}, func(c train.RunOptions) ([]float64, error) {
			return fit(func(_ *train.Problem, f *setup) {
				f.RunOptions, f.Checkpoint = c, filepath.Join(t.TempDir(), "c")
			})
		}),
		extremes.Of(digits(t, 1), func(c train.Problem) ([]float64, error) {
			return fit(func(p *train.Problem, _ *setup) {
				c.Params, c.Loss = p.Params, p.Loss
				*p = c
			})
		}),
		extremes.Of(drawn(32, 1), func(c train.Dataset) ([]float64, error) {
			return fit(func(p *train.Problem, _ *setup) { p.Train = c })
		}),
		extremes.Of(struct{ Count float32 }{16}, func(c struct{ Count float32 }) ([]float64, error) {
			return fit(func(p *train.Problem, _ *setup) { *p = counted(*p, func([]int) float32 { return c.Count }) })
		}),
		extremes.Of(rates{1e-3, 1, 10}, func(c rates) ([]float64, error) {
			p := digits(t, 1)
			curve, rate, err := train.FindRate(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{}, c.Low, c.High, c.Steps)
			results := []float64{rate}
			for _, x := range curve {
				results = append(results, x.Rate, x.Loss)
			}
			return results, err
		}),
	)
}

// Fit checks all settings before the first step.
func TestNumbersAreCheckedBeforeTheFirstStep(t *testing.T) {
	for want, c := range map[string]setup{
		"batch_size must be from 1":            {Config: train.Config{BatchSize: -1}},
		"batch_size must be a multiple of":     {Config: train.Config{MicroBatches: 5}},
		"micro_batches must be from 0":         {Config: train.Config{MicroBatches: -1}},
		"precision: there is no precision 2":   {Config: train.Config{Precision: 2}},
		"max_epochs must be from 0":            {Config: train.Config{MaxEpochs: -1}},
		"check_every must be from 0":           {Config: train.Config{CheckEvery: -1}},
		"stopping.patience must be from 0":     {Config: train.Config{Stopping: train.StoppingConfig{Patience: -1}}},
		"optimizer.learning_rate must be":      {Config: train.Config{Optimizer: optim.Config{ClipNorm: 1}}},
		"optimizer.plateau.factor must be":     {Config: train.Config{Optimizer: optim.Config{LearningRate: 1, Plateau: optim.PlateauConfig{Checks: 1, Factor: 2}}}},
		"optimizer.average must be":            {Config: train.Config{Optimizer: optim.Config{LearningRate: 1, Average: 1}}},
		"average must be at least 0 and below": {Config: train.Config{Optimizer: optim.Config{Average: 1}}, RunOptions: train.RunOptions{Solver: G.NewVanillaSolver()}},
		"step 0":                               {RunOptions: train.RunOptions{Solver: &optim.Solver{Schedule: optim.WarmUp(5).Then(5, optim.Cosine(4, 2))}}},
	} {
		c.BatchSize, c.MaxEpochs = cmp.Or(c.BatchSize, 16), cmp.Or(c.MaxEpochs, 1)
		c.OnStep = func(int, int, float64) bool {
			t.Errorf("%s: got a step before the error", want)
			return true
		}
		wantError(t, "Fit", failure(train.Fit(t.Context(), digits(t, 1), c.Config, c.RunOptions)), want)
	}
}
