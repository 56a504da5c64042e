package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train/optim"
)

// A RateLoss is a learning rate with the training loss at that rate.
type RateLoss struct{ Rate, Loss float64 }

// FindRate searches for a learning rate (Smith, 2015). It trains for the given number of steps, and the rate rises by
// the same factor at each step, from low to high. It ends early if the loss is four times the lowest loss so far. It
// returns the smoothed losses, and the rate at which they fall most steeply. That rate is a good peak rate for
// training.
//
// If call.Solver is set, it must be new. FindRate changes it, so make another one for training. The rates of its groups
// rise by the same factor. FindRate ignores schedules, and makes no checks, checkpoints or averages. It restores the
// parameters before it returns. It returns an error if the loss falls at no rate.
func FindRate(ctx context.Context, p Problem, c Config, options RunOptions, low, high float64, steps int) (curve []RateLoss, rate float64, err error) {
	if !(low >= 1e-30 && low < high && high <= 1e30) || steps < 10 || steps >= mostCount {
		return nil, 0, fmt.Errorf("train: rates must rise from low to high, with 1e-30 ≤ low and high ≤ 1e30, in at least 10 steps, got low %v, high %v and %d steps", low, high, steps)
	}
	if options.Solver == nil {
		if options.Solver, _, _, err = c.Optimizer.New(); err != nil {
			return nil, 0, fmt.Errorf("train: %w", setting.Within("optimizer", err))
		}
	}
	solver, ok := options.Solver.(*optim.Solver)
	if !ok || solver.Steps > 0 || !(solver.LearningRate > 0) {
		return nil, 0, fmt.Errorf("train: FindRate needs an *optim.Solver that has taken no step, with a LearningRate above 0, got a %T", options.Solver)
	}
	before := p.Params.Snapshot()
	defer func() { err = errors.Join(err, p.Params.Restore(before)) }()
	rateOf := func(step int) float64 { return low * math.Pow(high/low, float64(step)/float64(steps-1)) }
	solver.Schedule = func(step int) float64 { return rateOf(step) / solver.LearningRate }
	p.Validation = Dataset{}
	c.MaxEpochs, c.CheckEvery, c.Stopping, c.Optimizer = 0, steps+1, StoppingConfig{}, optim.Config{}
	options.MaxSteps, options.Checkpoint, options.CheckpointSteps, options.CheckpointTime, options.Resume = steps, "", 0, 0, false
	onStep := options.OnStep
	least, sum, weight := math.Inf(1), 0.0, 0.0
	options.OnStep = func(epoch, step int, loss float64) bool {
		sum, weight = 0.9*sum+0.1*loss, 0.9*weight+0.1
		curve = append(curve, RateLoss{rateOf(len(curve)), sum / weight})
		least = min(least, sum/weight)
		asked := onStep != nil && onStep(epoch, step, loss)
		return asked || sum/weight > 4*least
	}
	_, err = Fit(ctx, p, c, options)
	if err != nil && !errors.As(err, new(*NonFiniteError)) {
		return nil, 0, err
	}
	if rate = steepest(curve); rate == 0 {
		return curve, 0, fmt.Errorf("train: the loss falls at no learning rate from %v to %v in %d steps: try more steps, or other data", low, high, len(curve))
	}
	return curve, rate, nil
}

// steepest returns the rate at which the loss falls most within a fifth of the steps, or 0 if it falls nowhere. It
// considers only rates from r/100 to r, where r is the rate with the lowest loss. At lower rates the loss may fall
// while the output layer learns the frequencies of the classes, but the other layers need higher rates.
func steepest(curve []RateLoss) (rate float64) {
	half := max(len(curve)/10, 1)
	last := 0
	for i, c := range curve {
		if c.Loss < curve[last].Loss {
			last = i
		}
	}
	steepest := 0.0
	for i := half; i+half <= last; i++ {
		if fall := curve[i-half].Loss - curve[i+half].Loss; fall > steepest && curve[i].Rate >= curve[last].Rate/100 {
			rate, steepest = curve[i].Rate, fall
		}
	}
	return rate
}
