package optim

import (
	"gorgonia.org/tensor"
)

// A Solver steps parameters by their gradients. It is a gorgonia.Solver for any Gorgonia program. Like Gorgonia's own
// solvers, it sets the gradients to zero after each step. It leaves out this pass over memory for a gorgonia.ValueGrad
// with the method Overwritten() bool if that returns true: then the next run overwrites the gradient. The elements that
// Gradients returns have this method.
//
// Every step reads the fields, so rates, decays and limits may change between steps. They must be from 0 to 1e30. So
// must a rate times the factor of the Schedule, and this product times the weight decay. A Solver identifies a
// parameter by its index in the slice that Step takes, so keep the order.
type Solver struct {
	Rule         Rule // how a parameter steps; nil means AdamW{}
	LearningRate float64

	// WeightDecay applies to tensors of rank 2 and more; biases and gains don't decay. The Rule says how it applies.
	WeightDecay float64

	// Groups have their own settings. A parameter belongs to the first Group that matches it, if any.
	Groups []Group

	// ClipNorm scales all gradients down so that their joint Euclidean norm is at most ClipNorm. ClipValue then limits
	// every gradient element to ±ClipValue. 0 turns either off.
	ClipNorm, ClipValue float64

	// Schedule returns the factor of all learning rates for a step, counted from 0. nil means a factor of 1.
	Schedule Schedule

	Steps int     // steps taken so far
	Norm  float64 // joint norm of the last step's gradients, before clipping
	Rate  float64 // learning rate of the last step, for parameters in no Group

	places []place // one per parameter

	manners []manner // manners and params belong to the current step; kept to reuse their memory
	params  []param
}

// A Group is a set of parameters with its own settings.
type Group struct {
	// Match reports whether a parameter with this name and rank belongs to the Group. The argument name is the name of
	// the parameter's node, or empty if it has no name. Steps return an error if a Group has no parameters.
	Match func(name string, rank int) bool

	Rule         Rule    // nil means the Solver's Rule
	LearningRate float64 // 0 means the Solver's LearningRate
	WeightDecay  float64 // for parameters of any rank, instead of the Solver's WeightDecay
}

// NewAdamW returns a Solver with the rule AdamW and a weight decay of 0.01.
func NewAdamW(learningRate float64) *Solver {
	return &Solver{Rule: AdamW{}, LearningRate: learningRate, WeightDecay: 0.01}
}

// param is a parameter with its settings, for one step.
type param struct {
	manner
	weight, grad *tensor.Dense // with the same dtype and shape
	overwritten  bool          // whether the gradient needn't be set to zero
	memory       []Memory
}

// manner says how a parameter is stepped.
type manner struct {
	rule        Rule
	rate, decay float64
}

// place is a solver's record of the parameter at an index of the model; zero before the solver has seen it.
type place struct {
	shape  tensor.Shape
	dtype  tensor.Dtype
	memory []Memory
}
