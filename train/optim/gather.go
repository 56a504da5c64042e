package optim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
)

// State returns the tensors that the solver keeps for parameter i of the model. They are zero before the first step.
// They aren't copies: save their values, or restore saved values into them. To resume, call State and restore the
// values first, and set Steps afterwards, because a Solver with Steps above 0 makes no new tensors. State returns an
// error if a setting or the parameter's value is invalid, or if i is out of range.
func (s *Solver) State(model []G.ValueGrad, i int) ([]Memory, error) {
	manners, err := s.resolve(model, []int{i})
	if err != nil {
		return nil, err
	}
	w, err := weight(model, i)
	if err != nil {
		return nil, err
	}
	p := param{manner: manners[i], weight: w}
	err = s.know(model, i, &p)
	return p.memory, err
}

// gather returns a part of the model's parameters, with values, gradients, settings and memory, all checked.
func (s *Solver) gather(model []G.ValueGrad, part []int) ([]param, error) {
	manners, err := s.resolve(model, part)
	if err != nil {
		return nil, err
	}
	params := s.params[:0]
	for _, i := range part {
		w, g, err := weightGrad(model, i)
		if err != nil {
			return nil, err
		}
		o, ok := model[i].(interface{ Overwritten() bool })
		params = append(params, param{manner: manners[i], weight: w, grad: g, overwritten: ok && o.Overwritten()})
	}
	s.params = params
	if err := s.distinct(model, part); err != nil {
		return nil, err
	}
	for k, i := range part {
		if err := s.know(model, i, &params[k]); err != nil {
			return nil, err
		}
	}
	return params, nil
}

// resolve returns the settings of each of the model's parameters.
func (s *Solver) resolve(model []G.ValueGrad, part []int) ([]manner, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.places != nil && len(model) != len(s.places) {
		return nil, fmt.Errorf("optim: this Solver has stepped %d parameters, got %d: make one Solver for each model", len(s.places), len(model))
	}
	listed := make([]bool, len(model))
	for _, i := range part {
		if i < 0 || i >= len(model) || listed[i] {
			return nil, fmt.Errorf("optim: a part must list indexes of the model's %d parameters, each once, got %v", len(model), part)
		}
		listed[i] = true
	}
	manners := s.manners[:0]
	found := make([]bool, len(s.Groups))
	for i, p := range model {
		rank := 0
		if v, ok := p.Value().(*tensor.Dense); ok && v != nil {
			rank = v.Dims()
		}
		set := manner{rule: s.Rule, rate: s.LearningRate}
		if rank > 1 {
			set.decay = s.WeightDecay
		}
		name := nameOf(p)
		if group := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Match(name, rank) }); group >= 0 {
			g := s.Groups[group]
			found[group] = true
			set.decay, set.rate = g.WeightDecay, cmp.Or(g.LearningRate, set.rate)
			if g.Rule != nil {
				set.rule = g.Rule
			}
		}
		if set.rule == nil {
			set.rule = AdamW{}
		}
		if err := set.rule.Check(rank); err != nil {
			return nil, fmt.Errorf("optim: parameter %s: %w", label(model, i), err)
		}
		manners = append(manners, set)
	}
	s.manners = manners
	if group := slices.Index(found, false); group >= 0 {
		return nil, fmt.Errorf("optim: Groups[%d] matches no parameter: Match must accept names of the model's nodes, and a parameter belongs to the first Group that matches", group)
	}
	return manners, nil
}

// check checks the solver's numbers.
func (s *Solver) check() error {
	if s.Steps < 0 || s.Steps == math.MaxInt {
		return fmt.Errorf("optim: Steps must be at least 0 and below the largest int, got %d", s.Steps)
	}
	check := func(owner, name string, x float64) error {
		if inRange(x) {
			return nil
		}
		return fmt.Errorf("optim: %s%s must be from 0 to %v, got %v", owner, name, largest, x)
	}
	err := cmp.Or(check("", "LearningRate", s.LearningRate), check("", "WeightDecay", s.WeightDecay), check("", "ClipNorm", s.ClipNorm), check("", "ClipValue", s.ClipValue))
	for i, g := range s.Groups {
		owner := fmt.Sprintf("Groups[%d].", i)
		err = cmp.Or(err, check(owner, "LearningRate", g.LearningRate), check(owner, "WeightDecay", g.WeightDecay))
	}
	return err
}

// know checks that parameter i still has the same shape and dtype, and sets p.memory. It makes the memory before the
// first step.
func (s *Solver) know(model []G.ValueGrad, i int, p *param) error {
	if s.places == nil {
		s.places = make([]place, len(model))
	}
	known, w := &s.places[i], p.weight
	if known.shape == nil {
		known.shape, known.dtype = w.Shape().Clone(), w.Dtype()
	}
	if known.dtype != w.Dtype() || !slices.Equal(known.shape, w.Shape()) {
		return fmt.Errorf("optim: parameter %d was %v of %v, got %v of %v: keep the parameters in the same order", i, known.shape, known.dtype, w.Shape(), w.Dtype())
	}
	names := p.rule.Memory()
	if known.memory == nil && s.Steps == 0 {
		for k, name := range names {
			if name == "" || slices.Contains(names[:k], name) {
				return fmt.Errorf("optim: parameter %s: the Memory of a rule must return different names, none empty, got %q from %T", label(model, i), names, p.rule)
			}
			zeros := tensor.New(tensor.WithShape(w.Shape()...), tensor.Of(w.Dtype()))
			memory.Huge(zeros.Raw)
			known.memory = append(known.memory, Memory{name, zeros})
		}
	}
	if !slices.EqualFunc(known.memory, names, func(m Memory, name string) bool { return m.Name == name }) {
		return fmt.Errorf("optim: parameter %s has no memory for its rule %T after %d steps: make a new Solver to change its rule", label(model, i), p.rule, s.Steps)
	}
	p.memory = known.memory
	return nil
}

// distinct checks, before the first step, that no two parameters share a tensor, because parameters step concurrently.
func (s *Solver) distinct(model []G.ValueGrad, part []int) error {
	if s.Steps > 0 {
		return nil
	}
	owner := map[uintptr]int{}
	for k, p := range s.params {
		for _, t := range []*tensor.Dense{p.weight, p.grad} {
			if other, ok := owner[t.Uintptr()]; ok {
				return fmt.Errorf("optim: parameters %s and %s share a tensor: list each parameter once, with its own gradient", label(model, other), label(model, part[k]))
			}
			owner[t.Uintptr()] = part[k]
		}
	}
	return nil
}

// weight returns the value of parameter i, or an error if it can't be stepped.
func weight(model []G.ValueGrad, i int) (*tensor.Dense, error) {
	value := model[i].Value()
	w, ok := floats(value)
	if !ok {
		return nil, fmt.Errorf("optim: the value of parameter %s must be a float32 or float64 tensor, got %s", label(model, i), describe(value))
	}
	return w, nil
}

// weightGrad returns the value and the gradient of parameter i, or an error if they can't be stepped.
func weightGrad(model []G.ValueGrad, i int) (weight, grad *tensor.Dense, err error) {
	value := model[i].Value()
	gradient, err := model[i].Grad()
	if err != nil {
		return nil, nil, fmt.Errorf("optim: parameter %s has no gradient: call gorgonia.Grad, make the VM with gorgonia.BindDualValues, and run it: %w", label(model, i), err)
	}
	w, ok := floats(value)
	g, ok2 := floats(gradient)
	if !ok || !ok2 || w.Dtype() != g.Dtype() || !slices.Equal(w.Shape(), g.Shape()) {
		return nil, nil, fmt.Errorf("optim: value and gradient of parameter %s must be float32 or float64 tensors of the same shape and dtype, got %s and %s", label(model, i), describe(value), describe(gradient))
	}
	return w, g, nil
}

// floats returns a value as a tensor, and whether a solver can step it.
func floats(v G.Value) (t *tensor.Dense, ok bool) {
	t, ok = v.(*tensor.Dense)
	return t, ok && t != nil && t.Dims() > 0 && (t.Dtype() == tensor.Float32 || t.Dtype() == tensor.Float64) && inRows(t)
}

// inRows reports whether a tensor is row-major without gaps; a transposed one isn't.
func inRows(t *tensor.Dense) bool { return !t.RequiresIterator() && !t.DataOrder().IsColMajor() }

func describe(v G.Value) string {
	d, dense := v.(*tensor.Dense)
	if v == nil || dense && d == nil {
		return "nil"
	}
	text := fmt.Sprintf("%v of %v", v.Dtype(), v.Shape())
	if dense && !inRows(d) {
		text += " that isn't row-major without gaps"
	}
	return text
}

// nameOf returns the name of a parameter, or "" if it has none.
func nameOf(p G.ValueGrad) string {
	if n, ok := p.(interface{ Name() string }); ok {
		return n.Name()
	}
	return ""
}

// label returns parameter i's index and name, for an error.
func label(model []G.ValueGrad, i int) string {
	if name := nameOf(model[i]); name != "" {
		return fmt.Sprintf("%d (%s)", i, name)
	}
	return fmt.Sprint(i)
}
