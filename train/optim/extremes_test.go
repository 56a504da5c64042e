package optim_test

import (
	"math"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/optim"
)

// stepped takes three steps with s in each dtype, and returns the resulting weights and learning rates.
func stepped(s optim.Solver, match func(string, int) bool) (results []float64, err error) {
	for dtype := range tolerances {
		s := s
		params := newModel(dtype)
		params[0].name = "blocks.matrix"
		for i := range s.Groups {
			if match != nil {
				s.Groups[i].Match = match
			}
		}
		for number := range 3 {
			differentiate(params, number)
			if err := s.Step(valueGrads(params)); err != nil {
				return nil, err
			}
			results = append(results, s.Rate, float64(s.Steps))
		}
		for _, p := range params {
			results = append(results, numbers(p.value)...)
		}
	}
	return results, nil
}

// scheduled takes steps with a schedule and returns its factors for small and extreme steps. The first step fails if
// the schedule returns NaN.
func scheduled(s optim.Schedule) (results []float64, err error) {
	if _, err := stepped(optim.Solver{LearningRate: 0.1, Schedule: s}, nil); err != nil {
		return nil, err
	}
	for _, step := range []int{math.MinInt, -1, 0, 1, 2, 9, 10, 11, 99, 100, min(1<<40, math.MaxInt), math.MaxInt} {
		results = append(results, s(step))
	}
	return results, nil
}

func TestExtremes(t *testing.T) {
	testseed.Slow(t)
	configured := func(c optim.Config) ([]float64, error) {
		solver, plateau, average, err := c.New()
		if err != nil {
			return nil, err
		}
		results, err := scheduled(solver.Schedule)
		if err != nil {
			return nil, err
		}
		weights, err := stepped(*solver, nil)
		results = append(results, weights...)
		if plateau != nil {
			plateau.Observe(1)
			results = append(results, plateau.Schedule(0))
		}
		if average != nil {
			results = append(results, average.Decay)
		}
		return results, err
	}
	cases := []extremes.Case{
		extremes.Of(optim.Group{LearningRate: 0.1}, func(c optim.Group) ([]float64, error) {
			return stepped(optim.Solver{LearningRate: 0.1, Groups: []optim.Group{c}}, named("blocks.matrix"))
		}),
		extremes.Of(optim.Solver{LearningRate: 0.1, Groups: []optim.Group{{}}}, func(c optim.Solver) ([]float64, error) {
			return stepped(c, named("blocks.matrix"))
		}),
		extremes.Of(optim.Average{Decay: 0.9}, func(c optim.Average) ([]float64, error) {
			params := newModel(tensor.Float32)
			for range 3 {
				if err := c.Update(valueGrads(params)); err != nil {
					return nil, err
				}
				params[0].value.Memset(float32(9))
			}
			return numbers(c.Values[0]), nil
		}),
		extremes.Of(optim.Plateau{}, func(c optim.Plateau) ([]float64, error) {
			var results []float64
			for _, metric := range []float64{3, 2, 2, 2, 2} {
				r, err := scheduled(c.Schedule)
				if err != nil {
					return nil, err
				}
				results = append(results, r...)
				c.Observe(metric)
			}
			return results, nil
		}),
		extremes.Of(struct{ Factor float64 }{2}, func(c struct{ Factor float64 }) ([]float64, error) {
			return scheduled(optim.WarmUp(3).Then(3, constant(c.Factor)))
		}),
		extremes.Of(struct{ Steps int }{10}, func(c struct{ Steps int }) ([]float64, error) {
			return scheduled(optim.WarmUp(c.Steps).Then(c.Steps, optim.InverseSquareRoot(c.Steps)).Every(c.Steps).Times(constant(0.5)))
		}),
	}
	for _, c := range configs(t) {
		c.Plateau, c.Average = optim.PlateauConfig{Checks: 1}, 0.5
		cases = append(cases, extremes.Of(c.Solver, func(r optim.Rule) ([]float64, error) {
			c := c
			c.Solver = r
			return configured(c)
		}), extremes.Of(c, configured))
	}
	type args struct {
		Steps, Count int
		Low, High    float64
	}
	for _, schedule := range []func(c args) optim.Schedule{
		func(c args) optim.Schedule { return optim.Linear(c.Steps, c.Low, c.High) },
		func(c args) optim.Schedule { return optim.WarmUp(c.Count).Then(c.Count, optim.Cosine(c.Steps, c.Low)) },
		func(c args) optim.Schedule { return optim.CosineRestarts(c.Steps, c.Count, c.Low) },
		func(c args) optim.Schedule { return optim.Staircase(c.Steps, c.Low) },
		func(c args) optim.Schedule { return optim.OneCycle(c.Steps, c.Count, c.Low, c.High) },
	} {
		cases = append(cases, extremes.Of(args{10, 3, 0.1, 0.2}, func(c args) ([]float64, error) { return scheduled(schedule(c)) }))
	}
	extremes.Run(t, []string{"Step"}, cases...)
}
