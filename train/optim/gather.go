package optim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// param is a parameter that is stepped, with its settings.
type param struct {
	manner
	weight, grad *tensor.Dense // of one dtype and shape
	memory       []Memory
}

// manner says how a parameter is stepped.
type manner struct {
	rule        Rule
	rate, decay float64
	frozen      bool
}

// place is what a solver knows of the parameter at a place in the model; the zero place is one it hasn't met.
type place struct {
	shape  tensor.Shape
	dtype  tensor.Dtype
	memory []Memory
}

// A Memory is a tensor that a Solver keeps of a parameter, of the parameter's dtype and shape.
type Memory struct {
	Name  string // such as "adamw.first"
	Value *tensor.Dense
}

// State returns what the solver remembers of the parameter at place i of the model: its own tensors, to be saved or to
// be filled with what was saved, and zero before the first step. With them and Steps, a Solver of the same settings
// goes on as if it had never stopped. Fill them before setting Steps: a Solver that has taken steps makes no new
// memory.
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
	if err := s.know(model, i, &p); err != nil {
		return nil, err
	}
	return p.memory, nil
}

// gather asks some of the model's parameters for their values and gradients, checks everything that can be wrong with
// them, and adds settings and memory.
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
		params = append(params, param{manner: manners[i], weight: w, grad: g})
	}
	s.params = params
	if err := s.distinct(model, part); err != nil {
		return nil, err
	}
	for at, i := range part {
		if err := s.know(model, i, &params[at]); err != nil {
			return nil, err
		}
	}
	return params, nil
}

// resolve returns how each of the model's parameters is stepped.
func (s *Solver) resolve(model []G.ValueGrad, part []int) ([]manner, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.places != nil && len(model) != len(s.places) {
		return nil, fmt.Errorf("optim: this solver has stepped %d parameters, got %d: make one solver for each model", len(s.places), len(model))
	}
	listed := make([]bool, len(model))
	for _, i := range part {
		if i < 0 || i >= len(model) || listed[i] {
			return nil, fmt.Errorf("optim: a part must list places in a model of %d parameters, each once, got %v", len(model), part)
		}
		listed[i] = true
	}
	manners := s.manners[:0]
	found := make([]bool, len(s.Groups))
	frozen := 0
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
		if at := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Match(name, rank) }); at >= 0 {
			g := s.Groups[at]
			found[at] = true
			set.frozen, set.decay, set.rate = g.Frozen, g.WeightDecay, cmp.Or(g.LearningRate, set.rate)
			if g.Rule != nil {
				set.rule = g.Rule
			}
		}
		if set.rule == nil {
			set.rule = AdamW{}
		}
		if set.frozen {
			frozen++
		} else if err := set.rule.Check(rank); err != nil {
			return nil, fmt.Errorf("optim: parameter %s: %w", label(model, i), err)
		}
		manners = append(manners, set)
	}
	s.manners = manners
	if at := slices.Index(found, false); at >= 0 {
		return nil, fmt.Errorf("optim: no parameter belongs to Groups[%d]: Match has to look for the names that the model's nodes have, and an earlier group goes first", at)
	}
	if frozen == len(model) && frozen > 0 {
		return nil, fmt.Errorf("optim: all %d parameters are frozen: leave one to be learned", frozen)
	}
	return manners, nil
}

// largest is the most that a rate, a factor or a limit may be: float32 weights have room for it.
const largest = 1e30

func inRange(x float64) bool { return x >= 0 && x <= largest }

// check checks the solver's numbers.
func (s *Solver) check() error {
	if s.Steps < 0 || s.Steps == math.MaxInt {
		return fmt.Errorf("optim: Steps must be at least 0 and leave room for another one, got %d", s.Steps)
	}
	type number struct {
		name  string
		value float64
	}
	numbers := []number{{"LearningRate", s.LearningRate}, {"WeightDecay", s.WeightDecay}, {"ClipNorm", s.ClipNorm}, {"ClipValue", s.ClipValue}}
	for i, g := range s.Groups {
		numbers = append(numbers, number{fmt.Sprintf("Groups[%d].LearningRate", i), g.LearningRate}, number{fmt.Sprintf("Groups[%d].WeightDecay", i), g.WeightDecay})
	}
	for _, n := range numbers {
		if !inRange(n.value) {
			return fmt.Errorf("optim: %s must be from 0 to %v, got %v", n.name, largest, n.value)
		}
	}
	return nil
}

// know compares a parameter with what the solver knows of its place, and adds its memory, which begins with the first
// step.
func (s *Solver) know(model []G.ValueGrad, i int, p *param) error {
	if s.places == nil {
		s.places = make([]place, len(model))
	}
	at, w := &s.places[i], p.weight
	if at.shape == nil {
		at.shape, at.dtype = w.Shape().Clone(), w.Dtype()
	}
	if at.dtype != w.Dtype() || !slices.Equal(at.shape, w.Shape()) {
		return fmt.Errorf("optim: parameter %d was %v of %v, got %v of %v: keep the parameters in one order", i, at.shape, at.dtype, w.Shape(), w.Dtype())
	}
	if p.frozen {
		return nil
	}
	names := p.rule.Memory()
	if at.memory == nil && s.Steps == 0 {
		for k, name := range names {
			if name == "" || slices.Contains(names[:k], name) {
				return fmt.Errorf("optim: parameter %s: the Memory of a rule must have different names, none empty, got %q of %T", label(model, i), names, p.rule)
			}
			at.memory = append(at.memory, Memory{name, tensor.New(tensor.WithShape(w.Shape()...), tensor.Of(w.Dtype()))})
		}
	}
	if !slices.EqualFunc(at.memory, names, func(m Memory, name string) bool { return m.Name == name }) {
		return fmt.Errorf("optim: parameter %s has no memory as its rule %T has it, after %d steps: make a new Solver to thaw it or to change its rule", label(model, i), p.rule, s.Steps)
	}
	p.memory = at.memory
	return nil
}

// distinct checks before the first step that no two parameters share a tensor, as they are stepped side by side.
func (s *Solver) distinct(model []G.ValueGrad, part []int) error {
	if s.Steps > 0 {
		return nil
	}
	of := map[uintptr]int{}
	for at, p := range s.params {
		for _, t := range []*tensor.Dense{p.weight, p.grad} {
			if other, ok := of[t.Uintptr()]; ok {
				return fmt.Errorf("optim: parameters %s and %s share a tensor: list a parameter once, and give each a gradient of its own", label(model, other), label(model, part[at]))
			}
			of[t.Uintptr()] = part[at]
		}
	}
	return nil
}

// weight asks a parameter for its value.
func weight(model []G.ValueGrad, i int) (*tensor.Dense, error) {
	value := model[i].Value()
	w, ok := value.(*tensor.Dense)
	if !ok || !floats(w) {
		return nil, fmt.Errorf("optim: the value of parameter %s must be a float32 or float64 tensor, got %s", label(model, i), describe(value))
	}
	return w, nil
}

// weightGrad asks a parameter for its value and gradient.
func weightGrad(model []G.ValueGrad, i int) (weight, grad *tensor.Dense, err error) {
	value := model[i].Value()
	gradient, err := model[i].Grad()
	if err != nil {
		return nil, nil, fmt.Errorf("optim: no gradient of parameter %s: take gorgonia.Grad, make the VM with gorgonia.BindDualValues, and run it: %w", label(model, i), err)
	}
	w, ok := value.(*tensor.Dense)
	g, ok2 := gradient.(*tensor.Dense)
	if !ok || !ok2 || !floats(w) || !floats(g) || w.Dtype() != g.Dtype() || !slices.Equal(w.Shape(), g.Shape()) {
		return nil, nil, fmt.Errorf("optim: value and gradient of parameter %s must be float32 or float64 tensors of one shape, got %s and %s", label(model, i), describe(value), describe(gradient))
	}
	return w, g, nil
}

// floats reports whether a tensor is one that can be stepped.
func floats(t *tensor.Dense) bool {
	return t != nil && t.Dims() > 0 && (t.Dtype() == tensor.Float32 || t.Dtype() == tensor.Float64) && inRows(t)
}

// inRows reports whether a tensor's numbers are in memory row by row, one after the other: a transposed one's aren't.
func inRows(t *tensor.Dense) bool { return !t.RequiresIterator() && !t.DataOrder().IsColMajor() }

func describe(v G.Value) string {
	if d, is := v.(*tensor.Dense); v == nil || is && d == nil {
		return "nil"
	}
	order := ""
	if d, is := v.(*tensor.Dense); is && !inRows(d) {
		order = " that isn't row-major without gaps"
	}
	return fmt.Sprintf("%v of %v%s", v.Dtype(), v.Shape(), order)
}

// nameOf returns the name of a parameter, or nothing where it has none.
func nameOf(p G.ValueGrad) string {
	if n, ok := p.(interface{ Name() string }); ok {
		return n.Name()
	}
	return ""
}

// label names a parameter in an error.
func label(model []G.ValueGrad, i int) string {
	if name := nameOf(model[i]); name != "" {
		return fmt.Sprintf("%d (%s)", i, name)
	}
	return fmt.Sprint(i)
}
