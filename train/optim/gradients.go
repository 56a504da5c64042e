package optim

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
)

// Gradients pairs parameters with their gradient nodes, as gorgonia.Grad returned them, for a solver to step:
//
//	grads, err := gorgonia.Grad(cost, learnables...)
//	model := optim.Gradients(learnables, grads)
//	vm := gorgonia.NewTapeMachine(g) // BindDualValues isn't needed
//	…
//	err = solver.Step(model) // after each run
//
// It stands for gorgonia.BindDualValues with gorgonia.NodesToValueGrads, and saves the copy of every gradient that
// those add up: here each run's gradient stands for itself, so step after every run.
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
			// A solver zeroes what it is given: it gets a copy of what isn't this parameter's alone, and of constants.
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

func (p *paramGrad) Grad() (G.Value, error) {
	if p.grad == nil || p.grad.Value() == nil {
		return nil, fmt.Errorf("%s has no gradient: pass the nodes that gorgonia.Grad returned, and run the machine first", p.param.Name())
	}
	if of, is := p.param.Value().Shape(), p.grad.Value().Shape(); !slices.Equal(of, is) {
		return nil, fmt.Errorf("%s has shape %v, but its gradient shape %v: pass the learnables in the order in which gorgonia.Grad was given them", p.param.Name(), of, is)
	}
	if p.shared {
		return G.CloneValue(p.grad.Value())
	}
	return p.grad.Value(), nil
}
