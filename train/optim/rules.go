package optim

import (
	"cmp"
	"fmt"
	"math"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// A Rule says how a parameter steps by its gradient: SGD, Adam, AdamW, Lion or Muon. Their constants have usual values,
// which 0 stands for.
type Rule interface {
	memory() memoryNames  // of the tensors that the rule keeps of a parameter
	check(rank int) error // of its constants, and of a parameter's rank
	update(u update)      // steps one parameter
}

// memoryNames are the names of up to two tensors; those that there aren't are empty.
type memoryNames [2]string

// update is one step of a parameter.
type update struct {
	param
	rate  float64
	scale float64 // what the gradient is multiplied by first
	steps int     // this one included
}

// SGD is gradient descent, with momentum (Sutskever et al., 2013) in PyTorch's form: the velocity is the decaying sum
// of the gradients, and weight decay times the weight is part of a gradient.
type SGD struct {
	Momentum float64 // below 1; 0 is none
	Nesterov bool    // step by the velocity to come
}

func (r SGD) memory() memoryNames {
	if r.Momentum == 0 {
		return memoryNames{}
	}
	return memoryNames{"sgd.velocity"}
}

func (r SGD) check(int) error {
	if r.Nesterov && r.Momentum == 0 {
		return fmt.Errorf("the Nesterov of SGD needs a Momentum, as 0.9")
	}
	return checkDecays("SGD", r.Momentum)
}

func (r SGD) update(u update) {
	step := kernel.SGDStep{Rate: u.rate, Momentum: r.Momentum, Decay: u.decay, GradScale: u.scale, Nesterov: r.Nesterov}
	switch {
	case u.weight.Dtype() == tensor.Float64 && r.Momentum == 0:
		kernel.SGD(0, u.weight.Float64s(), u.grad.Float64s(), nil, step)
	case u.weight.Dtype() == tensor.Float64:
		kernel.SGD(0, u.weight.Float64s(), u.grad.Float64s(), u.memory[0].Value.Float64s(), step)
	case r.Momentum == 0:
		kernel.SGD(0, u.weight.Float32s(), u.grad.Float32s(), nil, step)
	default:
		kernel.SGD(0, u.weight.Float32s(), u.grad.Float32s(), u.memory[0].Value.Float32s(), step)
	}
}

// Adam steps by the running mean of the gradient over the root of that of its square (Kingma and Ba, 2015). Weight
// decay times the weight is part of a gradient.
type Adam struct {
	Beta1, Beta2 float64 // decay of the running means of the gradient and of its square: 0.9 and 0.999
	Eps          float64 // added to the root: 1e-8
}

func (r Adam) memory() memoryNames { return memoryNames{"adam.first", "adam.second"} }

func (r Adam) check(int) error {
	if !(r.Eps >= 0) || math.IsInf(r.Eps, 1) {
		return fmt.Errorf("the Eps of Adam and AdamW must be a finite number of 0 or more, got %v", r.Eps)
	}
	return checkDecays("Adam and AdamW", r.Beta1, r.Beta2)
}

func (r Adam) update(u update) {
	if u.weight.Dtype() == tensor.Float32 {
		kernel.Adam(0, u.weight.Float32s(), u.grad.Float32s(), u.memory[0].Value.Float32s(), u.memory[1].Value.Float32s(), r.step(u))
	} else {
		kernel.Adam(0, u.weight.Float64s(), u.grad.Float64s(), u.memory[0].Value.Float64s(), u.memory[1].Value.Float64s(), r.step(u))
	}
}

func (r Adam) step(u update) kernel.AdamStep {
	beta1, beta2, t := cmp.Or(r.Beta1, 0.9), cmp.Or(r.Beta2, 0.999), float64(u.steps)
	return kernel.AdamStep{
		Rate: u.rate, Beta1: beta1, Beta2: beta2, Eps: cmp.Or(r.Eps, 1e-8), Decay: u.decay, GradScale: u.scale,
		Correct1: 1 / (1 - math.Pow(beta1, t)), Correct2: 1 / (1 - math.Pow(beta2, t)),
	}
}

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, 2017): a step first takes the learning rate times
// the decay off each weight, as a share.
type AdamW Adam

func (r AdamW) memory() memoryNames { return memoryNames{"adamw.first", "adamw.second"} }

func (r AdamW) check(rank int) error { return Adam(r).check(rank) }

func (r AdamW) update(u update) {
	if u.weight.Dtype() == tensor.Float32 {
		kernel.AdamW(0, u.weight.Float32s(), u.grad.Float32s(), u.memory[0].Value.Float32s(), u.memory[1].Value.Float32s(), Adam(r).step(u))
	} else {
		kernel.AdamW(0, u.weight.Float64s(), u.grad.Float64s(), u.memory[0].Value.Float64s(), u.memory[1].Value.Float64s(), Adam(r).step(u))
	}
}

// Lion steps every weight by the learning rate, up or down as the sign of a running mean says (Chen et al., 2023). Its
// learning rate is a third to a tenth of AdamW's, its weight decay, decoupled as there, so much larger.
type Lion struct {
	Beta1 float64 // share of the running mean in what the sign is taken of, beside the gradient: 0.9
	Beta2 float64 // decay of the running mean: 0.99
}

func (r Lion) memory() memoryNames { return memoryNames{"lion.mean"} }

func (r Lion) check(int) error { return checkDecays("Lion", r.Beta1, r.Beta2) }

func (r Lion) update(u update) {
	step := kernel.LionStep{Rate: u.rate, Beta1: cmp.Or(r.Beta1, 0.9), Beta2: cmp.Or(r.Beta2, 0.99), Decay: u.decay, GradScale: u.scale}
	if u.weight.Dtype() == tensor.Float32 {
		kernel.Lion(0, u.weight.Float32s(), u.grad.Float32s(), u.memory[0].Value.Float32s(), step)
	} else {
		kernel.Lion(0, u.weight.Float64s(), u.grad.Float64s(), u.memory[0].Value.Float64s(), step)
	}
}

// Muon steps a matrix by its running mean made nearly orthogonal, so that all directions of it move alike (Jordan et
// al., 2024, https://kellerjordan.github.io/posts/muon/). It is for the matrices inside a network, of shape (in, out):
// the step is multiplied by max(1, out/in)^½; OutIn is for those of shape (out, in). Embeddings, heads, biases and
// gains are better off with AdamW, in a Group or as the Solver's Rule with a Group for the matrices. Weight decay is
// decoupled as AdamW's.
type Muon struct {
	Momentum   float64 // decay of the running mean: 0.95
	Iterations int     // of Newton and Schulz, which make it orthogonal: 5; at most 100
	OutIn      bool    // matrices are of shape (out, in), as those of package layers are
}

func (r Muon) memory() memoryNames { return memoryNames{"muon.mean"} }

func (r Muon) check(rank int) error {
	if rank != 2 {
		return fmt.Errorf("a rule of Muon steps matrices, got a tensor of rank %d: give it another rule with a Group", rank)
	}
	if r.Iterations < 0 || r.Iterations > 100 {
		return fmt.Errorf("the Iterations of Muon must be from 1 to 100, or 0 for 5, got %d", r.Iterations)
	}
	return checkDecays("Muon", r.Momentum)
}

func (r Muon) update(u update) {
	step := kernel.MuonStep{Rate: u.rate, Momentum: cmp.Or(r.Momentum, 0.95), Decay: u.decay, GradScale: u.scale, Iterations: cmp.Or(r.Iterations, 5), OutIn: r.OutIn}
	in, out := u.weight.Shape()[0], u.weight.Shape()[1]
	if u.weight.Dtype() == tensor.Float32 {
		kernel.Muon(0, u.weight.Float32s(), u.grad.Float32s(), u.memory[0].Value.Float32s(), in, out, step)
	} else {
		kernel.Muon(0, u.weight.Float64s(), u.grad.Float64s(), u.memory[0].Value.Float64s(), in, out, step)
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
