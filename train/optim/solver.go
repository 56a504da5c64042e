package optim

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// A Solver steps parameters by their gradients, as a gorgonia.Solver for any Gorgonia program. A step sets the
// gradients to zero, as Gorgonia's own solvers do.
//
// Fields are read on every step, and numbers may change between steps: rates, decays and limits from 0 to 1e30. Its
// memory of a parameter goes by the parameter's place in the slice that Step is given, so that must not change.
type Solver struct {
	Rule         Rule // how a parameter steps; AdamW{} if nil
	LearningRate float64

	// WeightDecay is of tensors of rank 2 and more: biases and gains don't decay. What it means, the Rule says.
	WeightDecay float64

	// Groups are parameters with settings of their own. A parameter belongs to the first that matches it, or else to
	// none.
	Groups []Group

	// ClipNorm scales gradients down so that their joint Euclidean norm is at most this. ClipValue then limits every
	// number of a gradient to ±ClipValue. 0 turns either off.
	ClipNorm, ClipValue float64

	// Schedule multiplies all learning rates of a step, counted from 0. nil is 1 throughout.
	Schedule Schedule

	Steps int // taken so far

	places     []place // what it knows of each parameter
	norm, rate float64

	manners []manner // of the step under way, as params; kept for their memory
	params  []param
}

// A Group is some of the parameters, with settings of their own.
type Group struct {
	// Match reports whether a parameter of a name and a rank is meant. The name is that of its node, or empty for what
	// has none. A Group that no parameter belongs to is an error.
	Match func(name string, rank int) bool

	Rule         Rule    // the Solver's if nil
	LearningRate float64 // the Solver's if 0
	WeightDecay  float64 // of all its parameters, whatever their rank; the Solver's doesn't hold for them

	// Frozen leaves its parameters as they are, and their gradients don't count for ClipNorm. Those of package layers
	// are better frozen by Params.Freeze, which also saves taking their gradients.
	Frozen bool
}

// NewAdamW returns a Solver with the rule AdamW, its usual constants, and a weight decay of 0.01.
func NewAdamW(learningRate float64) *Solver {
	return &Solver{Rule: AdamW{}, LearningRate: learningRate, WeightDecay: 0.01}
}

// Step updates every value by its gradient and sets the gradient to zero. Values and gradients must be float32 or
// float64 tensors, row-major without gaps, a pair of one shape. A gradient that isn't finite is an error. An error
// changes nothing.
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

// SumSquares and StepPart share a Step out among several Solvers, as of several processes: each steps a part of the
// parameters, with memory for that part alone, and together they step all, with the bits of one. A part lists places in
// the model, each once. SumSquares returns the sum of the squares of each gradient of the part, 0 for a frozen
// parameter. It reads no other gradients.
func (s *Solver) SumSquares(model []G.ValueGrad, part []int) ([]float64, error) {
	params, err := s.gather(model, part)
	if err != nil {
		return nil, err
	}
	defer clear(params)
	return sumSquares(params), nil
}

// StepPart steps a part of the model, as Step does the whole. It takes what SumSquares returned for each parameter of
// the model, in the model's order: from them follow the norm to clip by, and the error where a gradient isn't finite.
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

// Norm returns the joint norm of the last step's gradients, before clipping.
func (s *Solver) Norm() float64 { return s.norm }

// Rate returns the learning rate of the last step: that of parameters in no Group.
func (s *Solver) Rate() float64 { return s.rate }

// sumSquares returns the sums of the squares of the gradients.
func sumSquares(params []param) []float64 {
	sums := make([]float64, len(params))
	kernel.Spread(0, len(params), work(params), func(i int) {
		switch p := params[i]; {
		case p.frozen:
		case p.grad.Dtype() == tensor.Float32:
			sums[i] = kernel.SumSquares(p.grad.Float32s())
		default:
			sums[i] = kernel.SumSquares(p.grad.Float64s())
		}
	})
	return sums
}

// work returns how many numbers the parameters have.
func work(params []param) (n int) {
	for _, p := range params {
		n += p.weight.DataSize()
	}
	return n
}

// step updates some of the model's parameters, given the sums of squares of all gradients.
func (s *Solver) step(model []G.ValueGrad, params []param, squares []float64) error {
	var sum float64
	for i, sq := range squares { // whole tensors in order: the same bits however they were shared out
		if math.IsNaN(sq) || math.IsInf(sq, 0) {
			return fmt.Errorf("optim: the gradient of parameter %s isn't finite: try a lower learning rate or ClipNorm", label(model, i))
		}
		sum += sq
	}
	multiple := 1.0
	if s.Schedule != nil {
		multiple = s.Schedule(s.Steps)
	}
	if !inRange(multiple) {
		return fmt.Errorf("optim: a Schedule must return numbers from 0 to %v, got %v for step %d: look at the numbers that it is made of", largest, multiple, s.Steps)
	}
	norm, scale := math.Sqrt(sum), 1.0
	if s.ClipNorm > 0 && norm > s.ClipNorm {
		scale = s.ClipNorm / norm
	}
	s.norm, s.rate = norm, s.LearningRate*multiple
	s.Steps++
	kernel.Spread(0, len(params), 4*work(params), func(i int) {
		p := params[i]
		if p.frozen {
			p.grad.Zero()
			return
		}
		scale := scale
		rule, ok := fusedRule(p.rule)
		if s.ClipValue > 0 || !ok && scale != 1 {
			scaleClamp(p.grad, scale, cmp.Or(s.ClipValue, math.Inf(1)))
			scale = 1
		}
		step := Step{p.weight, p.grad, p.memory, p.rate * multiple, p.decay, s.Steps}
		if ok {
			rule.update(step, scale)
		} else {
			p.rule.Update(step)
			p.grad.Zero()
		}
	})
	return nil
}

func scaleClamp(t *tensor.Dense, scale, most float64) {
	if t.Dtype() == tensor.Float32 {
		kernel.ScaleClamp(0, t.Float32s(), scale, most)
	} else {
		kernel.ScaleClamp(0, t.Float64s(), scale, most)
	}
}
