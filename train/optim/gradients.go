package optim

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
)

// Gradients pairs each parameter with its gradient node, for a solver's Step. Pass the nodes in the order in which
// gorgonia.Grad returned them:
//
//	grads, err := gorgonia.Grad(cost, learnables...)
//	model := optim.Gradients(learnables, grads)
//	vm := gorgonia.NewTapeMachine(g) // BindDualValues isn't needed
//	…
//	err = solver.Step(model) // after each run
//
// Gradients replaces gorgonia.BindDualValues and gorgonia.NodesToValueGrads, and avoids their copy of every gradient.
// With these two, the gradients of several runs add up. With Gradients, each run overwrites the gradients of the run
// before, so step after every run. So a Solver doesn't set them to zero.
func Gradients(learnables, grads G.Nodes) []G.ValueGrad {
	uses := map[*G.Node]int{}
	for _, g := range grads {
		uses[g]++
	}
	model := make([]G.ValueGrad, len(learnables))
	for i, n := range learnables {
		p := &paramGrad{param: n}
		if i < len(grads) {
			p.grad = grads[i]
			// A solver may overwrite gradients. So it gets a copy if several parameters share the gradient, or if the
			// gradient is a constant.
			p.shared = uses[p.grad] > 1 || p.grad.Graph().From(p.grad.ID()).Len() == 0
		}
		model[i] = p
	}
	return model
}

type paramGrad struct {
	param, grad *G.Node
	shared      bool
}

func (p *paramGrad) Name() string   { return p.param.Name() }
func (p *paramGrad) Value() G.Value { return p.param.Value() }

// Overwritten returns true: see Solver.
func (p *paramGrad) Overwritten() bool { return true }

func (p *paramGrad) Grad() (G.Value, error) {
	if p.grad == nil || p.grad.Value() == nil {
		return nil, fmt.Errorf("%s has no gradient: pass the nodes that gorgonia.Grad returned, and run the VM first", p.param.Name())
	}
	if shape, gradShape := p.param.Value().Shape(), p.grad.Value().Shape(); !slices.Equal(shape, gradShape) {
		return nil, fmt.Errorf("%s has shape %v, but its gradient has shape %v: pass the learnables in the same order as to gorgonia.Grad", p.param.Name(), shape, gradShape)
	}
	if p.shared {
		return G.CloneValue(p.grad.Value())
	}
	return p.grad.Value(), nil
}
