package optim

import (
	"cmp"
	"fmt"
	"math"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/kernel"
)

// A Rule computes a parameter's step from its gradient: SGD, Adam, AdamW, Lion, Muon, or a type of your own. In this
// package's rules, a constant of 0 means the usual value.
//
// A Solver calls all methods at every step. To avoid allocations, return the same slice from Memory each time.
type Rule interface {
	// Memory returns the names of the tensors that the rule keeps for each parameter, or nil. The tensors begin as
	// zeros. Checkpoints use the names, so make them different, and begin each with the rule's name: "adamw.first".
	Memory() []string

	// Check returns an error if a constant of the rule is out of range, or if the rule can't step tensors of this rank.
	Check(rank int) error

	// Update steps one parameter. The Solver calls it for several parameters concurrently, so it must not write to
	// shared memory. Check must find everything that can fail: a panic in Update reaches the caller of Solver.Step and
	// leaves the step half done.
	Update(s Step)
}

// A Step is the argument of Rule.Update. All its tensors have the parameter's shape and dtype, float32 or float64, and
// are row-major without gaps.
type Step struct {
	Weight *tensor.Dense // Update changes it
	Grad   *tensor.Dense // clipped and finite; Update may overwrite it
	Memory []Memory      // in the order of Rule.Memory

	Rate  float64 // learning rate of this step, with the Schedule
	Decay float64 // weight decay; 0 if the parameter doesn't decay
	Count int     // steps taken, including this one: 1 in the first

	scale float64 // factor of the gradient, for a fused rule; 0 means 1
}

// A Memory is a tensor that a Solver keeps for a parameter, with the parameter's dtype and shape.
type Memory struct {
	Name  string // such as "adamw.first"
	Value *tensor.Dense
}

// largest is the upper bound for rates, factors and limits; it fits float32.
const largest = 1e30

func inRange(x float64) bool { return x >= 0 && x <= largest }

// fused reports whether r is a rule of this package. Such a rule multiplies the gradient by Step.scale, which saves a
// pass over memory. A user's rule that embeds such a rule isn't fused, because it may have its own Update.
func fused(r Rule) bool {
	switch r.(type) {
	case AdamW, Adam, SGD, Lion, Muon:
		return true
	}
	return false
}

// rules lists this package's rules, the default first.
var rules = choices.Types[Rule]{What: "solvers", Table: choices.Table[choices.Type[Rule]]{
	choices.TypeOf[AdamW, Rule]("adamw", "Adam with decoupled weight decay"),
	choices.TypeOf[Adam, Rule]("adam", "mean gradient divided by the root of the mean square"),
	choices.TypeOf[SGD, Rule]("sgd", "gradient descent, with momentum if it is set"),
	choices.TypeOf[Lion, Rule]("lion", "the sign of a running mean; needs a lower learning rate"),
	choices.TypeOf[Muon, Rule]("muon", "orthogonal steps for the matrices in blocks, AdamW for the rest"),
}}

// The names that Memory returns, made once so that steps don't allocate.
var (
	sgdMemory   = []string{"sgd.velocity"}
	adamMemory  = []string{"adam.first", "adam.second"}
	adamwMemory = []string{"adamw.first", "adamw.second"}
	lionMemory  = []string{"lion.mean"}
	muonMemory  = []string{"muon.mean"}
)

// SGD is gradient descent, optionally with momentum (Sutskever et al., 2013) in PyTorch's form: the velocity is the
// decaying sum of the gradients. It adds weight decay times the weight to the gradient.
type SGD struct {
	Momentum float64 `json:"momentum,omitzero"` // below 1; 0: none
	Nesterov bool    `json:"nesterov,omitzero"` // look ahead by the velocity; needs a Momentum
}

// Memory returns "sgd.velocity", or nil if Momentum is 0.
func (r SGD) Memory() []string {
	if r.Momentum == 0 {
		return nil
	}
	return sgdMemory
}

// Check checks the constants.
func (r SGD) Check(int) error {
	if r.Nesterov && r.Momentum == 0 {
		return fmt.Errorf("option Nesterov needs a momentum above 0, for example 0.9")
	}
	return checkDecays("SGD", r.Momentum)
}

// Update steps a parameter.
func (r SGD) Update(s Step) {
	step := kernel.SGDStep{Rate: s.Rate, Momentum: r.Momentum, Decay: s.Decay, GradScale: cmp.Or(s.scale, 1), Nesterov: r.Nesterov}
	switch {
	case s.Weight.Dtype() == tensor.Float64 && r.Momentum == 0:
		kernel.SGD(0, s.Weight.Float64s(), s.Grad.Float64s(), nil, step)
	case s.Weight.Dtype() == tensor.Float64:
		kernel.SGD(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), step)
	case r.Momentum == 0:
		kernel.SGD(0, s.Weight.Float32s(), s.Grad.Float32s(), nil, step)
	default:
		kernel.SGD(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), step)
	}
}

// Adam steps by the running mean of the gradient, divided by the root of the running mean of its square (Kingma and Ba,
// 2015). It adds weight decay times the weight to the gradient.
type Adam struct {
	Beta1 float64 `json:"beta1,omitzero"` // decay of the gradient's running mean; 0 means 0.9
	Beta2 float64 `json:"beta2,omitzero"` // decay of the squared gradient's running mean; 0 means 0.999
	Eps   float64 `json:"eps,omitzero"`   // added to the root; from 1e-30 to 1e30; 0 means 1e-8
}

// Memory returns the names of the running means.
func (r Adam) Memory() []string { return adamMemory }

// Check checks the constants.
func (r Adam) Check(int) error {
	if r.Eps != 0 && !(r.Eps >= 1e-30 && r.Eps <= largest) { // a smaller one could round to 0 in float32, and 0/0 is NaN
		return fmt.Errorf("the Eps of Adam and AdamW must be from 1e-30 to 1e30, or 0 for 1e-8, got %v", r.Eps)
	}
	return checkDecays("Adam and AdamW", r.Beta1, r.Beta2)
}

// Update steps a parameter.
func (r Adam) Update(s Step) {
	if s.Weight.Dtype() == tensor.Float32 {
		kernel.Adam(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), s.Memory[1].Value.Float32s(), r.step(s))
	} else {
		kernel.Adam(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), s.Memory[1].Value.Float64s(), r.step(s))
	}
}

func (r Adam) step(s Step) kernel.AdamStep {
	beta1, beta2, t := cmp.Or(r.Beta1, 0.9), cmp.Or(r.Beta2, 0.999), float64(s.Count)
	return kernel.AdamStep{
		Rate: s.Rate, Beta1: beta1, Beta2: beta2, Eps: cmp.Or(r.Eps, 1e-8), Decay: s.Decay, GradScale: cmp.Or(s.scale, 1),
		Correct1: 1 / (1 - math.Pow(beta1, t)), Correct2: 1 / (1 - math.Pow(beta2, t)),
	}
}

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, 2017): a step first multiplies each weight by 1 −
// learning rate · decay.
type AdamW Adam

// Memory returns the names of the running means.
func (r AdamW) Memory() []string { return adamwMemory }

// Check checks the constants.
func (r AdamW) Check(rank int) error { return Adam(r).Check(rank) }

// Update steps a parameter.
func (r AdamW) Update(s Step) {
	if s.Weight.Dtype() == tensor.Float32 {
		kernel.AdamW(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), s.Memory[1].Value.Float32s(), Adam(r).step(s))
	} else {
		kernel.AdamW(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), s.Memory[1].Value.Float64s(), Adam(r).step(s))
	}
}

// Lion steps every weight by plus or minus the learning rate; a running mean decides the sign (Chen et al., 2023). Use
// a third to a tenth of AdamW's learning rate, and a weight decay 3 to 10 times larger. Weight decay is decoupled.
type Lion struct {
	Beta1 float64 `json:"beta1,omitzero"` // the step has the sign of −(Beta1 · mean + (1 − Beta1) · gradient); 0 means 0.9
	Beta2 float64 `json:"beta2,omitzero"` // decay of the running mean; 0 means 0.99
}

// Memory returns the names of the running means.
func (r Lion) Memory() []string { return lionMemory }

// Check checks the constants.
func (r Lion) Check(int) error { return checkDecays("Lion", r.Beta1, r.Beta2) }

// Update steps a parameter.
func (r Lion) Update(s Step) {
	step := kernel.LionStep{Rate: s.Rate, Beta1: cmp.Or(r.Beta1, 0.9), Beta2: cmp.Or(r.Beta2, 0.99), Decay: s.Decay, GradScale: cmp.Or(s.scale, 1)}
	if s.Weight.Dtype() == tensor.Float32 {
		kernel.Lion(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), step)
	} else {
		kernel.Lion(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), step)
	}
}

// Muon makes the running mean of a matrix's gradient nearly orthogonal and steps by it, so that all directions get
// steps of similar size (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/). It multiplies the step by
// max(1, out/in)^½. Use it for the matrices inside a network, and AdamW for embeddings, heads, biases and gains: AdamW
// as the Solver's Rule, Muon in a Group. Weight decay is decoupled.
type Muon struct {
	Momentum   float64 `json:"momentum,omitzero"`   // decay of the running mean; 0 means 0.95
	Iterations int     `json:"iterations,omitzero"` // Newton-Schulz iterations, at most 100; 0 means 5
	OutIn      bool    `json:"-"`                   // matrices have shape (out, in), as in package layers, and not (in, out); a Config sets it

	// These fields are only for a Config, where Muon steps the matrices in blocks and AdamW steps all other parameters:
	// the learning rate for the matrices, and AdamW's constants. A Solver returns an error if one of these fields is
	// set.
	LearningRate float64 `json:"learning_rate,omitzero"` // 0 means 0.02
	Beta1        float64 `json:"beta1,omitzero"`         // 0 means 0.9
	Beta2        float64 `json:"beta2,omitzero"`         // 0 means 0.999
}

// Memory returns the names of the running means.
func (r Muon) Memory() []string { return muonMemory }

// Check checks the constants, and that the rank is 2.
func (r Muon) Check(rank int) error {
	if rank != 2 {
		return fmt.Errorf("Muon steps matrices only, got a tensor of rank %d: give the tensor another rule in a Group", rank)
	}
	if r.Iterations < 0 || r.Iterations > 100 {
		return fmt.Errorf("the Iterations of Muon must be from 1 to 100, or 0 for 5, got %d", r.Iterations)
	}
	if r.LearningRate != 0 || r.Beta1 != 0 || r.Beta2 != 0 {
		return fmt.Errorf("fields LearningRate, Beta1 and Beta2 of Muon work only in a Config, got %v, %v and %v: in a Solver, set rates and rules in Groups", r.LearningRate, r.Beta1, r.Beta2)
	}
	return checkDecays("Muon", r.Momentum)
}

// Update steps a parameter.
func (r Muon) Update(s Step) {
	step := kernel.MuonStep{Rate: s.Rate, Momentum: cmp.Or(r.Momentum, 0.95), Decay: s.Decay, GradScale: cmp.Or(s.scale, 1), Iterations: cmp.Or(r.Iterations, 5), OutIn: r.OutIn}
	rows, out := s.Weight.Shape()[0], s.Weight.Shape()[1]
	if s.Weight.Dtype() == tensor.Float32 {
		kernel.Muon(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), rows, out, step)
	} else {
		kernel.Muon(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), rows, out, step)
	}
}

// checkDecays returns an error unless all decays are from 0 to below 1.
func checkDecays(rule string, decays ...float64) error {
	for _, d := range decays {
		if !(d >= 0 && d < 1) {
			return fmt.Errorf("the decays of %s must be at least 0 and below 1, got %v", rule, d)
		}
	}
	return nil
}
