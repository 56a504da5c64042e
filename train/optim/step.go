package optim

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Step updates every value by its gradient. Afterwards, the gradient is zero or, if it is Overwritten, undefined. A
// value and its gradient must be float32 or float64 tensors of one shape and dtype, row-major without gaps. Step
// returns an error, and changes nothing, if a pair breaks these rules, if a gradient isn't finite, or if a setting is
// out of range.
func (s *Solver) Step(model []G.ValueGrad) error {
	part := make([]int, len(model))
	for i := range part {
		part[i] = i
	}
	params, err := s.gather(model, part)
	if err != nil {
		return err
	}
	defer clear(params)
	return s.step(model, params, sumSquares(params))
}

// SumSquares and StepPart divide a Step among several Solvers, for example in several processes. Each Solver steps a
// part of the parameters and has memory for that part only; together they give the same bits as one Step. A part lists
// indexes of the model, each once. SumSquares returns the sum of squares of each gradient in the part. It
// doesn't read other gradients.
func (s *Solver) SumSquares(model []G.ValueGrad, part []int) ([]float64, error) {
	params, err := s.gather(model, part)
	if err != nil {
		return nil, err
	}
	defer clear(params)
	return sumSquares(params), nil
}

// StepPart steps a part of the model, like Step. The argument squares holds the result of SumSquares for every
// parameter of the model, in the model's order; StepPart computes the norm for clipping from squares, and returns an
// error if one of them isn't finite.
func (s *Solver) StepPart(model []G.ValueGrad, part []int, squares []float64) error {
	if len(squares) != len(model) {
		return fmt.Errorf("optim: StepPart needs a sum of squares for each of the model's %d parameters, got %d", len(model), len(squares))
	}
	params, err := s.gather(model, part)
	if err != nil {
		return err
	}
	defer clear(params)
	return s.step(model, params, squares)
}

// checkRates returns an error if the factor of the Schedule is out of range, or if a rate with this factor is. It
// checks the whole model, so that Solvers that step parts of it return the same error.
func (s *Solver) checkRates(model []G.ValueGrad, factor float64) error {
	if !inRange(factor) {
		return fmt.Errorf("optim: a Schedule must return numbers from 0 to %v, got %v for step %d: check the schedule's arguments", largest, factor, s.Steps)
	}
	for i, m := range s.manners {
		rate := m.rate * factor
		switch {
		case !inRange(rate):
			return fmt.Errorf("optim: parameter %s: the learning rate times the Schedule's factor must be from 0 to %v, got %v · %v for step %d", label(model, i), largest, m.rate, factor, s.Steps)
		case !inRange(rate * m.decay):
			return fmt.Errorf("optim: parameter %s: the learning rate, with the Schedule's factor, times the weight decay must be from 0 to %v, got %v · %v for step %d", label(model, i), largest, rate, m.decay, s.Steps)
		}
	}
	return nil
}

// sumSquares returns each gradient's sum of squares.
func sumSquares(params []param) []float64 {
	sums := make([]float64, len(params))
	kernel.Spread(0, len(params), work(params), func(i int) {
		if g := params[i].grad; g.Dtype() == tensor.Float32 {
			sums[i] = kernel.SumSquares(g.Float32s())
		} else {
			sums[i] = kernel.SumSquares(g.Float64s())
		}
	})
	return sums
}

// work returns the number of elements of all parameters.
func work(params []param) (n int) {
	for _, p := range params {
		n += p.weight.DataSize()
	}
	return n
}

// step updates params, a part of the model, given the sums of squares of all the model's gradients.
func (s *Solver) step(model []G.ValueGrad, params []param, squares []float64) error {
	var sum float64
	for i, sq := range squares { // in the model's order, so that parts give the same bits as a whole
		if math.IsNaN(sq) || math.IsInf(sq, 0) {
			return fmt.Errorf("optim: the gradient of parameter %s isn't finite: try a lower learning rate or ClipNorm", label(model, i))
		}
		sum += sq
	}
	multiple := 1.0
	if s.Schedule != nil {
		multiple = s.Schedule(s.Steps)
	}
	if err := s.checkRates(model, multiple); err != nil {
		return err
	}
	norm, scale := math.Sqrt(sum), 1.0
	if s.ClipNorm > 0 && norm > s.ClipNorm {
		scale = s.ClipNorm / norm
	}
	s.Norm, s.Rate = norm, s.LearningRate*multiple
	s.Steps++
	kernel.Spread(0, len(params), 4*work(params), func(i int) {
		p := params[i]
		if !p.overwritten {
			defer p.grad.Zero()
		}
		step := Step{p.weight, p.grad, p.memory, p.rate * multiple, p.decay, s.Steps, scale}
		if s.ClipValue > 0 || scale == 0 || scale != 1 && !fused(p.rule) { // a very small ClipNorm rounds the scale to 0
			scaleClamp(p.grad, scale, cmp.Or(s.ClipValue, math.Inf(1)))
			step.scale = 1
		}
		p.rule.Update(step)
	})
	return nil
}

func scaleClamp(t *tensor.Dense, scale, limit float64) {
	if t.Dtype() == tensor.Float32 {
		kernel.ScaleClamp(0, t.Float32s(), scale, limit)
	} else {
		kernel.ScaleClamp(0, t.Float64s(), scale, limit)
	}
}
