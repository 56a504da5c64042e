package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train/optim"
)

// A RateLoss is a learning rate with the loss of training at it.
type RateLoss struct{ Rate, Loss float64 }

// FindRate looks for a learning rate (Smith, 2015): it trains for some steps, each at a rate that is higher by one
// factor than that of the step before, from low to high, or until the loss is four times the least. It returns the
// losses, smoothed, and the rate at which they fall most steeply, which is a good peak to train with.
//
// A Solver of the Call's must be new, and FindRate uses it up. The rates of its groups rise by the same factor. It
// ignores a schedule, and makes no check, no checkpoint and no average. Afterwards the parameters are as they were
// before. It is an error if the loss falls nowhere.
func FindRate(ctx context.Context, p Problem, c Config, call Call, low, high float64, steps int) (curve []RateLoss, rate float64, err error) {
	if !(low >= 1e-30 && low < high && high <= 1e30) || steps < 10 || steps >= mostCount {
		return nil, 0, fmt.Errorf("train: rates must rise, from 1e-30 or more to at most 1e30, in at least 10 steps, got %v, %v and %d", low, high, steps)
	}
	if call.Solver == nil {
		if call.Solver, _, _, err = c.Optimizer.New(); err != nil {
			return nil, 0, fmt.Errorf("train: %w", setting.Within("optimizer", err))
		}
	}
	solver, ok := call.Solver.(*optim.Solver)
	if !ok || solver.Steps > 0 || !(solver.LearningRate > 0) {
		return nil, 0, fmt.Errorf("train: FindRate needs an *optim.Solver that has taken no step, with a LearningRate above 0, got one of type %T", call.Solver)
	}
	before := p.Params.Snapshot()
	defer func() { err = errors.Join(err, p.Params.Restore(before)) }()
	rateOf := func(step int) float64 { return low * math.Pow(high/low, float64(step)/float64(steps-1)) }
	solver.Schedule = func(step int) float64 { return rateOf(step) / solver.LearningRate }
	p.Validation = Dataset{}
	c.MaxEpochs, c.CheckEvery, c.Stopping, c.Optimizer = 0, steps+1, Stopping{}, optim.Config{}
	call.MaxSteps, call.Checkpoint, call.CheckpointSteps, call.CheckpointTime, call.Resume = steps, "", 0, 0, false
	onStep := call.OnStep
	least, sum, weight := math.Inf(1), 0.0, 0.0
	call.OnStep = func(epoch, step int, loss float64) bool {
		sum, weight = 0.9*sum+0.1*loss, 0.9*weight+0.1
		curve = append(curve, RateLoss{rateOf(len(curve)), sum / weight})
		least = min(least, sum/weight)
		asked := onStep != nil && onStep(epoch, step, loss)
		return asked || sum/weight > 4*least
	}
	_, err = Fit(ctx, p, c, call)
	if err != nil && !errors.As(err, new(*NonFiniteError)) {
		return nil, 0, err
	}
	if rate = steepest(curve); rate == 0 {
		return curve, 0, fmt.Errorf("train: at no learning rate from %v to %v does the loss fall in %d steps: try more steps, or other data", low, high, len(curve))
	}
	return curve, rate, nil
}

// steepest returns the rate at which a curve falls most, over its logarithm and a fifth of the steps: 0 if nowhere.
// Only rates from a hundredth of that of the least loss up to that count: losses may fall before, as a head learns how
// often each class is, but that says little of what the rest can take.
func steepest(curve []RateLoss) (rate float64) {
	half := max(len(curve)/10, 1)
	last := 0
	for i, c := range curve {
		if c.Loss < curve[last].Loss {
			last = i
		}
	}
	most := 0.0
	for i := half; i+half <= last; i++ {
		if fall := curve[i-half].Loss - curve[i+half].Loss; fall > most && curve[i].Rate >= curve[last].Rate/100 {
			rate, most = curve[i].Rate, fall
		}
	}
	return rate
}
