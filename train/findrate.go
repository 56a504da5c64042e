package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train/optim"
)

// A RateLoss is a learning rate with the training loss after a few steps at that rate.
type RateLoss struct{ Rate, Loss float64 }

// ErrNoRate means that FindRate found no learning rate: the losses don't fall, have no minimum, or are noise.
var ErrNoRate = errors.New("no learning rate stands out")

// FindRate searches for a learning rate. It makes short trainings of the given number of steps, all from the same
// initial parameters, at two rates per decade from low to high. The rate of a training is constant after a warm-up of a
// fifth of the steps. Its loss is the mean over the second half of the steps, but at most the loss at the lowest rate.
// Trainings at different rates see the same batches, so their losses differ by the rate and not by the data.
//
// The rate with the lowest loss and its four neighbours are tried with two more orders of the data. A parabola over the
// logarithm of the rate is fitted to the mean losses of these five rates. FindRate returns the rate where it is lowest,
// and the mean loss of every rate tried. A training ends early if a loss is far above those at the lowest rate. After
// two such trainings, no higher rate is tried.
//
// The error wraps ErrNoRate if the lowest or the highest rate is the best, if the losses of the same batches at the
// lowest and the best rate differ by less than three standard errors, or if the lowest points of the three orders'
// parabolas are more than a factor of 10 apart. FindRate then returns the losses too. The same arguments always give
// the same result.
//
// If options.Solver is set, it must be new; FindRate doesn't change it. The rates of its groups change by the same
// factor. FindRate ignores schedules, OnCheck and Log, and makes no checkpoints or averages. It calls OnStep with the
// number of the training in place of the epoch; if OnStep asks to stop, the error wraps ErrNoRate. FindRate restores
// the parameters before it returns.
func FindRate(ctx context.Context, p Problem, c Config, options RunOptions, low, high float64, steps int) (curve []RateLoss, rate float64, err error) {
	if !(low >= 1e-30 && 100*low <= high && high <= 1e30) || steps < 10 || steps >= mostCount {
		return nil, 0, fmt.Errorf("train: rates must rise from low to high by a factor of 100 or more, with 1e-30 ≤ low and high ≤ 1e30, in at least 10 steps, got low %v, high %v and %d steps", low, high, steps)
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
	p.Validation = Dataset{}
	c.MaxEpochs, c.CheckEvery, c.Stopping, c.Optimizer = 0, steps+1, StoppingConfig{}, optim.Config{}
	options.MaxSteps, options.Checkpoint, options.CheckpointSteps, options.CheckpointTime, options.Resume = steps, "", 0, 0, false
	options.OnCheck, options.Log = nil, nil
	s := &search{Problem: p, Config: c, RunOptions: options, solver: *solver, before: before, ceiling: math.Inf(1)}
	for x := low; x < 1.01*high; x *= math.Sqrt(10) {
		s.rates = append(s.rates, min(x, high))
	}
	if err = s.run(ctx); err == nil {
		rate, err = s.lowest()
	}
	if err != nil {
		err = fmt.Errorf("train: %w", err)
	}
	return s.curve(), rate, err
}

const (
	orders   = 3 // orders of the data
	fitted   = 5 // neighbouring rates that are tried with all orders
	mostFail = 2 // trainings that diverge before FindRate tries no higher rate
)

// A search is the state of FindRate.
type search struct {
	Problem
	Config
	RunOptions
	solver optim.Solver // new; each training has a copy
	before []*tensor.Dense

	rates   []float64
	halves  [orders]map[int][]float64 // losses of the second half of each training, by the index of its rate; nil if it diverged
	start   int                       // index of the first fitted rate
	ceiling float64                   // a training diverges at a loss above this
	number  int                       // trainings made
}

// run makes the trainings: with the first order of the data at all rates, then with the others at the lowest rate and
// the fitted rates.
func (s *search) run(ctx context.Context) error {
	failed := 0
	for order := range orders {
		s.halves[order] = map[int][]float64{}
		for i, rate := range s.rates {
			if order == 0 && i >= fitted && failed == mostFail || order > 0 && i > 0 && (i < s.start || i >= s.start+fitted) {
				continue
			}
			losses, err := s.try(ctx, rate, order)
			if err != nil {
				return err
			}
			if losses == nil {
				failed++
			} else if order == 0 && i == 0 {
				highest := slices.Max(losses)
				s.ceiling = highest + 3*math.Abs(highest)
			}
			s.halves[order][i] = losses[len(losses)/2:]
		}
		if order == 0 {
			if err := s.choose(); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose chooses the fitted rates. It returns an error if the best rate is the lowest or the highest.
func (s *search) choose() error {
	tried, best := len(s.halves[0]), 0
	for i := range tried {
		if s.loss(0, i) < s.loss(0, best) {
			best = i
		}
	}
	switch best {
	case 0:
		return fmt.Errorf("%w: the loss falls at no rate from %.3g to %.3g", ErrNoRate, s.rates[0], s.rates[tried-1])
	case len(s.rates) - 1:
		return fmt.Errorf("%w: the loss falls most at %.3g, the highest rate: try higher rates", ErrNoRate, s.rates[best])
	}
	s.start = min(max(best-fitted/2, 0), tried-fitted)
	return nil
}

// loss returns the loss of a training. It is at most the loss at the lowest rate, also if the training diverged.
func (s *search) loss(order, rate int) float64 {
	loss := math.Inf(1)
	for _, i := range []int{0, rate} {
		if half := s.halves[order][i]; half != nil {
			loss = min(loss, mean(half))
		}
	}
	return loss
}

// try trains at a rate, and returns the losses of all steps. It returns nil if the training diverged.
func (s *search) try(ctx context.Context, rate float64, order int) (losses []float64, err error) {
	if err := s.Params.Restore(s.before); err != nil {
		return nil, err
	}
	p, options, solver := s.Problem, s.RunOptions, s.solver
	if shift := order * s.MaxSteps * s.BatchSize; p.Train.Order == Fresh {
		p.Train.Batch = func(examples []int) ([]*tensor.Dense, error) {
			shifted := slices.Clone(examples)
			for i := range shifted {
				shifted[i] += shift
			}
			return s.Train.Batch(shifted)
		}
	}
	warmUp := optim.WarmUp(s.MaxSteps / 5)
	solver.Schedule = func(step int) float64 { return rate / s.solver.LearningRate * warmUp(step) }
	options.Solver, options.Seed = &solver, s.Seed+uint64(order)<<32
	diverged, asked := false, false
	options.OnStep = func(_, _ int, loss float64) bool {
		losses = append(losses, loss)
		diverged = loss > s.ceiling
		asked = s.OnStep != nil && s.OnStep(s.number, len(losses)-1, loss)
		return asked || diverged
	}
	_, err = Fit(ctx, p, s.Config, options)
	s.OnMemory = nil // called only once
	s.number++
	switch {
	case errors.As(err, new(*NonFiniteError)), err == nil && diverged:
		return nil, nil
	case err == nil && asked:
		return nil, fmt.Errorf("%w: OnStep asked to stop", ErrNoRate)
	}
	return losses, err
}

// lowest returns the rate at which the parabola is lowest.
func (s *search) lowest() (float64, error) {
	var sum [fitted]float64
	lowest, highest := math.Inf(1), math.Inf(-1)
	for order := range orders {
		var losses [fitted]float64
		for i := range losses {
			losses[i] = s.loss(order, s.start+i)
			sum[i] += losses[i]
		}
		x := vertex(losses)
		lowest, highest = min(lowest, x), max(highest, x)
	}
	var falls []float64 // from the lowest rate to the best one, of the same batch
	best := s.start + slices.Index(sum[:], slices.Min(sum[:]))
	for _, half := range s.halves {
		for i := range min(len(half[0]), len(half[best])) { // none if one of them diverged
			falls = append(falls, half[0][i]-half[best][i])
		}
	}
	switch fall, noise := mean(falls), standardError(falls); {
	case !(fall > 3*noise):
		return 0, fmt.Errorf("%w: the loss falls by %.2g ± %.2g: try more steps, larger batches or other data", ErrNoRate, fall, noise)
	case !(highest-lowest <= 2):
		return 0, fmt.Errorf("%w: it depends on the order of the data: try more steps, larger batches or other data", ErrNoRate)
	}
	return s.rates[s.start+fitted/2] * math.Pow(10, vertex(sum)/2), nil
}

// vertex fits a parabola to the values at −2, −1, 0, 1 and 2. It returns where the parabola is lowest in this range, or
// NaN if it has no minimum.
func vertex(y [fitted]float64) float64 {
	slope := (2*(y[4]-y[0]) + y[3] - y[1]) / 10
	curvature := (2*(y[0]+y[4]) - y[1] - 2*y[2] - y[3]) / 7
	if !(curvature > 0) {
		return math.NaN()
	}
	return min(max(-slope/curvature, -2), 2)
}

// curve returns the mean loss of each rate that was tried.
func (s *search) curve() (curve []RateLoss) {
	for i := range len(s.halves[0]) {
		var losses []float64
		for order, half := range s.halves {
			if _, tried := half[i]; tried {
				losses = append(losses, s.loss(order, i))
			}
		}
		curve = append(curve, RateLoss{s.rates[i], mean(losses)})
	}
	return curve
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}

// standardError returns the standard error of the mean of values.
func standardError(values []float64) float64 {
	m, sum, n := mean(values), 0.0, float64(len(values))
	for _, x := range values {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / n / (n - 1))
}
