package train

import (
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, 2017), as a gorgonia.Solver for any Gorgonia
// program. A step sets the gradients to zero, as Gorgonia's own solvers do.
//
// Fields are read on every step and may change between steps. Its memory of a parameter goes by the parameter's place
// in the slice that Step is given, so that must not change.
type AdamW struct {
	LearningRate float64
	Beta1, Beta2 float64 // decay of the running means of the gradient and of its square
	Eps          float64
	WeightDecay  float64 // of tensors of rank 2 and more: biases and gains don't decay
	ClipNorm     float64 // scale gradients down so that their joint Euclidean norm is at most this; 0 doesn't

	// Schedule multiplies the learning rate of each step, counted from 0. nil is 1 throughout.
	Schedule func(step int) float64

	state   adamState
	stepped []weightGradient // by the step under way; kept for its memory
}

// adamState is what AdamW remembers between steps.
type adamState struct {
	steps  int
	first  []*tensor.Dense // for each parameter, the running mean of its gradient
	second []*tensor.Dense // and of its gradient's square
}

// NewAdamW returns an AdamW with the usual constants: β₁ 0.9, β₂ 0.999, ε 1e-8, weight decay 0.01, no clipping.
func NewAdamW(learningRate float64) *AdamW {
	return &AdamW{LearningRate: learningRate, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01}
}

// Step updates every value by its gradient and sets the gradient to zero. Values and gradients must be float32 or
// float64 tensors, a pair of one shape. A gradient that isn't finite is an error, and changes nothing.
func (a *AdamW) Step(model []G.ValueGrad) error {
	if err := a.gather(model); err != nil {
		return err
	}
	defer clear(a.stepped)
	scale, err := a.clip(model)
	if err != nil {
		return err
	}
	rate := a.LearningRate
	if a.Schedule != nil {
		rate *= a.Schedule(a.state.steps)
	}
	a.state.steps++
	t := float64(a.state.steps)
	step := kernel.AdamStep{
		Rate:      rate,
		Beta1:     a.Beta1,
		Beta2:     a.Beta2,
		Eps:       a.Eps,
		GradScale: scale,
		Correct1:  1 / (1 - math.Pow(a.Beta1, t)),
		Correct2:  1 / (1 - math.Pow(a.Beta2, t)),
	}
	for i, p := range a.stepped {
		w, g := p.weight, p.grad
		step.Decay = 0
		if w.Dims() > 1 {
			step.Decay = a.WeightDecay
		}
		first, second := a.state.first[i], a.state.second[i]
		if w.Dtype() == tensor.Float32 {
			kernel.AdamW(0, w.Float32s(), g.Float32s(), first.Float32s(), second.Float32s(), step)
		} else {
			kernel.AdamW(0, w.Float64s(), g.Float64s(), first.Float64s(), second.Float64s(), step)
		}
	}
	return nil
}

// weightGradient is a parameter's value and gradient, of one dtype and shape.
type weightGradient struct{ weight, grad *tensor.Dense }

// gather asks the model for its values and gradients, and checks them against the state, which the first step makes.
func (a *AdamW) gather(model []G.ValueGrad) error {
	a.stepped = a.stepped[:0]
	for _, p := range model {
		pair, err := weightGrad(p)
		if err != nil {
			return err
		}
		a.stepped = append(a.stepped, pair)
	}
	if a.state.first == nil {
		for _, p := range a.stepped {
			a.state.first = append(a.state.first, tensor.New(tensor.WithShape(p.weight.Shape()...), tensor.Of(p.weight.Dtype())))
			a.state.second = append(a.state.second, tensor.New(tensor.WithShape(p.weight.Shape()...), tensor.Of(p.weight.Dtype())))
		}
	}
	if len(model) != len(a.state.first) {
		return fmt.Errorf("adamw: this solver has stepped %d parameters, got %d: make one solver for each model", len(a.state.first), len(model))
	}
	for i, p := range a.stepped {
		if m, w := a.state.first[i], p.weight; m.Dtype() != w.Dtype() || !slices.Equal(m.Shape(), w.Shape()) {
			return fmt.Errorf("adamw: parameter %d was %v of %v, got %v of %v: keep the parameters in one order", i, m.Shape(), m.Dtype(), w.Shape(), w.Dtype())
		}
	}
	return nil
}

// clip returns what to multiply the gradients by.
func (a *AdamW) clip(model []G.ValueGrad) (float64, error) {
	var sum float64
	for i, p := range a.stepped {
		var sq float64
		if p.grad.Dtype() == tensor.Float32 {
			sq = kernel.SumSquares(p.grad.Float32s())
		} else {
			sq = kernel.SumSquares(p.grad.Float64s())
		}
		if math.IsNaN(sq) || math.IsInf(sq, 0) {
			return 0, fmt.Errorf("adamw: the gradient of parameter %d%s isn't finite: try a lower learning rate or ClipNorm", i, nameOf(model[i]))
		}
		sum += sq
	}
	if norm := math.Sqrt(sum); a.ClipNorm > 0 && norm > a.ClipNorm {
		return a.ClipNorm / norm, nil
	}
	return 1, nil
}

func nameOf(p G.ValueGrad) string {
	if n, ok := p.(interface{ Name() string }); ok {
		return fmt.Sprintf(" (%s)", n.Name())
	}
	return ""
}

// weightGrad asks a parameter for its value and gradient.
func weightGrad(p G.ValueGrad) (weightGradient, error) {
	grad, err := p.Grad()
	if err != nil {
		return weightGradient{}, fmt.Errorf("adamw: no gradient%s: take gorgonia.Grad, make the VM with gorgonia.BindDualValues, and run it: %w", nameOf(p), err)
	}
	w, ok := p.Value().(*tensor.Dense)
	g, ok2 := grad.(*tensor.Dense)
	if !ok || !ok2 || w.Dims() == 0 || w.Dtype() != g.Dtype() || !slices.Equal(w.Shape(), g.Shape()) || (w.Dtype() != tensor.Float32 && w.Dtype() != tensor.Float64) {
		return weightGradient{}, fmt.Errorf("adamw: value and gradient%s must be float32 or float64 tensors of one shape, got %v of %v and %v of %v", nameOf(p), p.Value().Dtype(), p.Value().Shape(), grad.Dtype(), grad.Shape())
	}
	return weightGradient{w, g}, nil
}

// WarmUp rises linearly from 1/steps to 1 over the first steps, and stays there.
func WarmUp(steps int) func(int) float64 {
	return func(step int) float64 {
		if step >= steps {
			return 1
		}
		return float64(step+1) / float64(steps)
	}
}

// WarmUpCosine rises as WarmUp does, then falls along half a cosine to floor, which it reaches at total steps and keeps
// (Loshchilov and Hutter, 2016).
func WarmUpCosine(steps, total int, floor float64) func(int) float64 {
	up := WarmUp(steps)
	return func(step int) float64 {
		switch {
		case step < steps:
			return up(step)
		case step >= total:
			return floor
		}
		at := float64(step-steps) / float64(total-steps)
		return floor + (1-floor)*(1+math.Cos(math.Pi*at))/2
	}
}
