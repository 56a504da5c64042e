package optim_test

import (
	"fmt"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/optim"
)

// plainSGD is SGD with momentum as a user would write it. It doesn't change the gradient.
type plainSGD struct{ momentum float64 }

func (plainSGD) Memory() []string { return []string{"plain.velocity"} }
func (plainSGD) Check(int) error  { return nil }

func (r plainSGD) Update(s optim.Step) {
	w, v := s.Weight.Float64s(), s.Memory[0].Value.Float64s()
	for i, g := range s.Grad.Float64s() {
		v[i] = r.momentum*v[i] + g + s.Decay*w[i]
		w[i] -= s.Rate * v[i]
	}
}

// frugal embeds a rule of the package and has its own Update.
type frugal struct{ optim.AdamW }

func (r frugal) Update(s optim.Step) {
	s.Rate /= 2
	r.AdamW.Update(s)
}

// uncomparable can't be compared by ==.
type uncomparable struct {
	optim.Rule
	_ []int
}

// TestOwnRule compares rules that a user wrote with the same rules of this package, with clipping, decay, groups and a
// schedule.
func TestOwnRule(t *testing.T) {
	half := func(rule optim.Rule) *optim.Solver { return &optim.Solver{Rule: rule, LearningRate: 0.005} }
	sgd := optim.SGD{Momentum: 0.9}
	for name, c := range map[string]struct{ own, want *optim.Solver }{
		"solver's": {newSolverOf(plainSGD{0.9}), newSolverOf(sgd)},
		"group's": {
			&optim.Solver{LearningRate: 0.01, Groups: []optim.Group{{Match: named("rest.3"), Rule: plainSGD{0.9}, LearningRate: 0.1, WeightDecay: 0.2}}},
			&optim.Solver{LearningRate: 0.01, Groups: []optim.Group{{Match: named("rest.3"), Rule: sgd, LearningRate: 0.1, WeightDecay: 0.2}}},
		},
		"embeds one":   {&optim.Solver{Rule: frugal{}, LearningRate: 0.01}, half(optim.AdamW{})},
		"uncomparable": {half(uncomparable{Rule: optim.AdamW{}}), half(optim.AdamW{})},
		"a pointer":    {half(&frugal{}), &optim.Solver{LearningRate: 0.0025}},
	} {
		for _, clip := range []float64{0, 1e-3} {
			own, want := *c.own, *c.want
			own.ClipValue, want.ClipValue = clip, clip
			params, others := layersOf(tensor.Float64), layersOf(tensor.Float64)
			for number := range 5 {
				step(t, &own, params, number)
				step(t, &want, others, number)
				for i, p := range params {
					near(t, fmt.Sprintf("%s: gradient %d after step %d", name, i, number), p.grad, make([]float64, p.grad.DataSize()), 0)
					near(t, fmt.Sprintf("%s: parameter %d after step %d", name, i, number), p.value, numbers(others[i].value), 1e-14)
				}
			}
		}
	}
}

func newSolverOf(rule optim.Rule) *optim.Solver {
	return &optim.Solver{Rule: rule, LearningRate: 0.01, WeightDecay: 0.1, ClipNorm: 0.5, Schedule: optim.WarmUp(3)}
}

// badMemory is a rule whose Memory returns the field names, to test wrong names.
type badMemory struct {
	plainSGD
	names []string
}

func (r badMemory) Memory() []string { return r.names }

func TestOwnRuleErrors(t *testing.T) {
	for _, names := range [][]string{{""}, {"a", "b", "a"}} {
		params := newModel(tensor.Float64)
		differentiate(params, 0)
		err := newSolverOf(badMemory{names: names}).Step(valueGrads(params))
		must.Fail(t, err, "parameter 0 (matrix): the Memory of a rule must return different names")
	}
	// A panic of a rule reaches the caller, whichever goroutine runs the rule.
	params := layersOf(tensor.Float64)
	differentiate(params, 0)
	defer func() {
		if recover() == nil {
			t.Error("a rule's panic was lost")
		}
	}()
	newSolverOf(badMemory{}).Step(valueGrads(params)) // plainSGD panics, because it needs a memory and badMemory has none
}

// TestRulesAllocate checks that a step with a user's own rule allocates no more than a step with AdamW.
func TestRulesAllocate(t *testing.T) {
	allocations := func(rule optim.Rule) float64 {
		s, params := newSolverOf(rule), newModel(tensor.Float32)
		differentiate(params, 0)
		model := valueGrads(params)
		return testing.AllocsPerRun(20, func() {
			must.Do(t, s.Step(model))
		})
	}
	if own, want := allocations(AdaGrad{1e-8}), allocations(optim.AdamW{}); own > want {
		t.Errorf("a step allocates %v times with a user's own rule, %v times with AdamW", own, want)
	}
}

func TestParseRule(t *testing.T) {
	table := optim.Choices()["solver"]
	for text, want := range map[string]optim.Rule{
		"adamw": optim.AdamW{}, "adamw,beta2=0.98": optim.AdamW{Beta2: 0.98}, "adam,eps=0.000001": optim.Adam{Eps: 1e-6},
		"sgd,momentum=0.9,nesterov=true": optim.SGD{Momentum: 0.9, Nesterov: true}, "lion,beta1=0.5": optim.Lion{Beta1: 0.5},
		"muon,learning_rate=0.05,beta2=0.95": optim.Muon{LearningRate: 0.05, Beta2: 0.95},
	} {
		if got, err := table.Parse(text); err != nil || got != want || table.Text(got) != text {
			t.Errorf("%s: got %+v, %v, want %+v; again %s", text, got, err, want, table.Text(got))
		}
	}
	for text, want := range map[string]string{
		"newton":             `there are no solvers of kind "newton": use adamw, adam, sgd`,
		"adamw,momentum=0.9": `solvers of kind adamw: it has no field "momentum": use beta1, beta2, eps`,
		"muon,out_in=true":   `it has no field "out_in"`,
		"sgd,momentum=high":  `momentum can't be "high"`,
	} {
		must.Refuse(table.Parse(text))(t, want)
	}
}
