package optim

import (
	"cmp"
	"fmt"
	"math"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/kinds"
)

// A Rule says how a parameter steps by its gradient: SGD, Adam, AdamW, Lion, Muon, or a type of your own. The constants
// of this package's rules have usual values, which 0 stands for.
//
// A Solver calls the methods at every step: a rule that is to allocate nothing returns the same slice from Memory each
// time.
type Rule interface {
	// Memory returns the names of the tensors that the rule keeps for each parameter, nil for none. They begin as
	// zeros. Checkpoints use the names, so they are different and begin with the rule's: "adamw.first".
	Memory() []string

	// Check returns an error if a constant of the rule is impossible, or if the rule can't step tensors of this rank.
	Check(rank int) error

	// Update steps one parameter. It is called for several parameters at the same time, so it must not write to memory
	// that it shares. What can fail belongs to Check: a panic reaches the caller of Solver.Step, with the step half
	// done.
	Update(s Step)
}

// A Step is what a Rule needs to step one parameter. All its tensors have the parameter's shape and dtype, float32 or
// float64, and lie row by row without gaps.
type Step struct {
	Weight *tensor.Dense // what Update changes
	Grad   *tensor.Dense // clipped and finite; Update may use its memory, and the Solver sets it to zero afterwards
	Memory []Memory      // in the order of Rule.Memory

	Rate  float64 // learning rate of this step, with the Schedule
	Decay float64 // weight decay; 0 for a parameter that doesn't decay
	Count int     // steps taken, this one included: 1 in the first
}

// A fused rule multiplies the gradient by scale on its way, and sets it to zero: a pass over memory less for either.
type fused interface{ update(s Step, scale float64) }

// fusedRule returns r as a fused rule if it is one. A user's own rule that embeds one isn't: it may have its own
// Update.
func fusedRule(r Rule) (fused, bool) {
	switch r.(type) {
	case AdamW, Adam, SGD, Lion, Muon:
		f, ok := r.(fused)
		return f, ok
	}
	return nil, false
}

// rules are the rules that have a name, the default first.
var rules = kinds.Types[Rule]{What: "solvers", Table: kinds.Table[kinds.Type[Rule]]{
	kinds.TypeOf[AdamW, Rule]("adamw", "Adam with decoupled weight decay"),
	kinds.TypeOf[Adam, Rule]("adam", "running mean of the gradient over the root of its square's"),
	kinds.TypeOf[SGD, Rule]("sgd", "gradient descent, with momentum if it is set"),
	kinds.TypeOf[Lion, Rule]("lion", "the sign of a running mean; needs a lower learning rate"),
	kinds.TypeOf[Muon, Rule]("muon", "orthogonal steps for the matrices of blocks, AdamW for the rest"),
}}

// The names of what rules remember, made once, so that a step allocates none.
var (
	sgdMemory   = []string{"sgd.velocity"}
	adamMemory  = []string{"adam.first", "adam.second"}
	adamwMemory = []string{"adamw.first", "adamw.second"}
	lionMemory  = []string{"lion.mean"}
	muonMemory  = []string{"muon.mean"}
)

func init() { kinds.Choices["solver"] = rules.Choice() }

// SGD is gradient descent, with momentum (Sutskever et al., 2013) in PyTorch's form: the velocity is the decaying sum
// of the gradients, and weight decay times the weight is part of a gradient.
type SGD struct {
	Momentum float64 `json:"momentum,omitzero"` // below 1; 0 is none
	Nesterov bool    `json:"nesterov,omitzero"` // step by the velocity to come
}

// Memory returns "sgd.velocity" if there is momentum.
func (r SGD) Memory() []string {
	if r.Momentum == 0 {
		return nil
	}
	return sgdMemory
}

// Check checks the constants.
func (r SGD) Check(int) error {
	if r.Nesterov && r.Momentum == 0 {
		return fmt.Errorf("the Nesterov of SGD needs a Momentum, as 0.9")
	}
	return checkDecays("SGD", r.Momentum)
}

// Update steps a parameter.
func (r SGD) Update(s Step) { r.update(s, 1) }

func (r SGD) update(s Step, scale float64) {
	step := kernel.SGDStep{Rate: s.Rate, Momentum: r.Momentum, Decay: s.Decay, GradScale: scale, Nesterov: r.Nesterov}
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

// Adam steps by the running mean of the gradient over the root of that of its square (Kingma and Ba, 2015). Weight
// decay times the weight is part of a gradient.
type Adam struct {
	Beta1 float64 `json:"beta1,omitzero"` // decay of the running mean of the gradient: 0.9
	Beta2 float64 `json:"beta2,omitzero"` // decay of the running mean of its square: 0.999
	Eps   float64 `json:"eps,omitzero"`   // added to the root: 1e-8
}

// Memory returns the names of the running means.
func (r Adam) Memory() []string { return adamMemory }

// Check checks the constants.
func (r Adam) Check(int) error {
	if !(r.Eps >= 0) || math.IsInf(r.Eps, 1) {
		return fmt.Errorf("the Eps of Adam and AdamW must be a finite number of 0 or more, got %v", r.Eps)
	}
	return checkDecays("Adam and AdamW", r.Beta1, r.Beta2)
}

// Update steps a parameter.
func (r Adam) Update(s Step) { r.update(s, 1) }

func (r Adam) update(s Step, scale float64) {
	if s.Weight.Dtype() == tensor.Float32 {
		kernel.Adam(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), s.Memory[1].Value.Float32s(), r.step(s, scale))
	} else {
		kernel.Adam(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), s.Memory[1].Value.Float64s(), r.step(s, scale))
	}
}

func (r Adam) step(s Step, scale float64) kernel.AdamStep {
	beta1, beta2, t := cmp.Or(r.Beta1, 0.9), cmp.Or(r.Beta2, 0.999), float64(s.Count)
	return kernel.AdamStep{
		Rate: s.Rate, Beta1: beta1, Beta2: beta2, Eps: cmp.Or(r.Eps, 1e-8), Decay: s.Decay, GradScale: scale,
		Correct1: 1 / (1 - math.Pow(beta1, t)), Correct2: 1 / (1 - math.Pow(beta2, t)),
	}
}

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, 2017): a step first takes the learning rate times
// the decay off each weight, as a share.
type AdamW Adam

// Memory returns the names of the running means.
func (r AdamW) Memory() []string { return adamwMemory }

// Check checks the constants.
func (r AdamW) Check(rank int) error { return Adam(r).Check(rank) }

// Update steps a parameter.
func (r AdamW) Update(s Step) { r.update(s, 1) }

func (r AdamW) update(s Step, scale float64) {
	if s.Weight.Dtype() == tensor.Float32 {
		kernel.AdamW(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), s.Memory[1].Value.Float32s(), Adam(r).step(s, scale))
	} else {
		kernel.AdamW(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), s.Memory[1].Value.Float64s(), Adam(r).step(s, scale))
	}
}

// Lion steps every weight by the learning rate, up or down as the sign of a running mean says (Chen et al., 2023). Its
// learning rate is a third to a tenth of AdamW's, its weight decay, decoupled as there, so much larger.
type Lion struct {
	Beta1 float64 `json:"beta1,omitzero"` // share of the running mean in what the sign is taken of, beside the gradient: 0.9
	Beta2 float64 `json:"beta2,omitzero"` // decay of the running mean: 0.99
}

// Memory returns the names of the running means.
func (r Lion) Memory() []string { return lionMemory }

// Check checks the constants.
func (r Lion) Check(int) error { return checkDecays("Lion", r.Beta1, r.Beta2) }

// Update steps a parameter.
func (r Lion) Update(s Step) { r.update(s, 1) }

func (r Lion) update(s Step, scale float64) {
	step := kernel.LionStep{Rate: s.Rate, Beta1: cmp.Or(r.Beta1, 0.9), Beta2: cmp.Or(r.Beta2, 0.99), Decay: s.Decay, GradScale: scale}
	if s.Weight.Dtype() == tensor.Float32 {
		kernel.Lion(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), step)
	} else {
		kernel.Lion(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), step)
	}
}

// Muon steps a matrix by its running mean made nearly orthogonal, so that all directions of it move alike (Jordan et
// al., 2024, https://kellerjordan.github.io/posts/muon/). It is for the matrices inside a network, of shape (in, out):
// the step is multiplied by max(1, out/in)^½; OutIn is for those of shape (out, in). Embeddings, heads, biases and
// gains are better off with AdamW, in a Group or as the Solver's Rule with a Group for the matrices. Weight decay is
// decoupled as AdamW's.
type Muon struct {
	Momentum   float64 `json:"momentum,omitzero"`   // decay of the running mean: 0.95
	Iterations int     `json:"iterations,omitzero"` // of Newton and Schulz, which make it orthogonal: 5; at most 100
	OutIn      bool    `json:"-"`                   // matrices are of shape (out, in), as those of package layers are; a Config sets it

	// In a Config, a Muon steps the matrices of blocks and an AdamW the rest: these are the learning rate of the
	// matrices, and the constants of the AdamW. A Solver refuses them, as its Groups say more.
	LearningRate float64 `json:"learning_rate,omitzero"` // 0.02
	Beta1        float64 `json:"beta1,omitzero"`         // 0.9
	Beta2        float64 `json:"beta2,omitzero"`         // 0.999
}

// Memory returns the names of the running means.
func (r Muon) Memory() []string { return muonMemory }

// Check checks the constants, and that the rank is 2.
func (r Muon) Check(rank int) error {
	if rank != 2 {
		return fmt.Errorf("a rule of Muon steps matrices, got a tensor of rank %d: give it another rule with a Group", rank)
	}
	if r.Iterations < 0 || r.Iterations > 100 {
		return fmt.Errorf("the Iterations of Muon must be from 1 to 100, or 0 for 5, got %d", r.Iterations)
	}
	if r.LearningRate != 0 || r.Beta1 != 0 || r.Beta2 != 0 {
		return fmt.Errorf("the LearningRate, Beta1 and Beta2 of Muon are for a Config, got %v, %v and %v: a Solver has Groups with rates and rules", r.LearningRate, r.Beta1, r.Beta2)
	}
	return checkDecays("Muon", r.Momentum)
}

// Update steps a parameter.
func (r Muon) Update(s Step) { r.update(s, 1) }

func (r Muon) update(s Step, scale float64) {
	step := kernel.MuonStep{Rate: s.Rate, Momentum: cmp.Or(r.Momentum, 0.95), Decay: s.Decay, GradScale: scale, Iterations: cmp.Or(r.Iterations, 5), OutIn: r.OutIn}
	in, out := s.Weight.Shape()[0], s.Weight.Shape()[1]
	if s.Weight.Dtype() == tensor.Float32 {
		kernel.Muon(0, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s(), in, out, step)
	} else {
		kernel.Muon(0, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s(), in, out, step)
	}
}

// checkDecays checks what sums and means decay by.
func checkDecays(of string, decays ...float64) error {
	for _, d := range decays {
		if !(d >= 0 && d < 1) {
			return fmt.Errorf("the decays of %s must be from 0 to below 1, got %v", of, d)
		}
	}
	return nil
}
