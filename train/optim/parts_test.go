package optim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/train/optim"
)

// everyRule returns a new solver for each rule.
var everyRule = map[string]func() *optim.Solver{
	"SGD":          func() *optim.Solver { return &optim.Solver{Rule: optim.SGD{}} },
	"SGD momentum": func() *optim.Solver { return &optim.Solver{Rule: optim.SGD{Momentum: 0.9, Nesterov: true}} },
	"Adam":         func() *optim.Solver { return &optim.Solver{Rule: optim.Adam{}} },
	"AdamW":        func() *optim.Solver { return &optim.Solver{} },
	"own":          func() *optim.Solver { return &optim.Solver{Rule: AdaGrad{1e-8}} },
	"Lion":         func() *optim.Solver { return &optim.Solver{Rule: optim.Lion{}} },
	"own in a group": func() *optim.Solver {
		return &optim.Solver{Groups: []optim.Group{{Match: func(_ string, rank int) bool { return rank == 2 }, Rule: AdaGrad{1e-8}, WeightDecay: 0.2}}}
	},
	"Muon": func() *optim.Solver {
		return &optim.Solver{Rule: optim.Lion{}, Groups: []optim.Group{
			{Match: func(name string, rank int) bool { return rank == 2 && name != "0" }, Rule: optim.Muon{}, LearningRate: 0.03},
			{Match: func(name string, _ int) bool { return name == "3" }, Frozen: true},
		}}
	},
}

func newSolver(rule string) *optim.Solver {
	s := everyRule[rule]()
	s.LearningRate, s.WeightDecay, s.ClipNorm, s.Schedule = 0.01, 0.1, 0.5, optim.WarmUp(3)
	return s
}

// layersOf returns parameters of several sizes, named "0", "1" and so on.
func layersOf(dtype tensor.Dtype) []*parameter {
	var params []*parameter
	for i, shape := range [][]int{{40, 30}, {30}, {30, 70}, {70}, {7, 6}, {70, 30}} {
		value := tensor.New(tensor.WithShape(shape...), tensor.Of(dtype))
		params = append(params, &parameter{fmt.Sprint(i), dense(dtype, line(-0.5, 0.7, value.DataSize()), shape...), nil})
	}
	return params
}

// step steps all parameters with one call.
func step(t *testing.T, s *optim.Solver, params []*parameter, number int) {
	t.Helper()
	differentiate(params, number)
	if err := s.Step(valueGrads(params)); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want []*parameter) {
	t.Helper()
	for i := range want {
		if !slices.Equal(numbers(got[i].value), numbers(want[i].value)) {
			t.Fatalf("%s: parameter %d differs", what, i)
		}
	}
}

// TestPartsStepAsTheWhole checks that three solvers, each with the gradients of only its own part of the model, step
// like one solver.
func TestPartsStepAsTheWhole(t *testing.T) {
	parts := [][]int{{3, 0}, {5, 1, 2, 4}, {}}
	for rule := range everyRule {
		for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			t.Run(fmt.Sprint(rule, " ", dtype), func(t *testing.T) {
				whole, shared := layersOf(dtype), layersOf(dtype)
				one, several := newSolver(rule), []*optim.Solver{newSolver(rule), newSolver(rule), newSolver(rule)}
				for number := range 5 {
					step(t, one, whole, number)
					differentiate(shared, number)
					squares := make([]float64, len(shared))
					views := make([][]*parameter, len(parts))
					for k, part := range parts {
						for i, p := range shared {
							view := &parameter{p.name, p.value, nil}
							if slices.Contains(part, i) {
								view.grad = p.grad
							}
							views[k] = append(views[k], view)
						}
						sums, err := several[k].SumSquares(valueGrads(views[k]), part)
						if err != nil {
							t.Fatal(err)
						}
						for j, i := range part {
							squares[i] = sums[j]
						}
					}
					for k, part := range parts {
						if err := several[k].StepPart(valueGrads(views[k]), part, squares); err != nil {
							t.Fatal(err)
						}
						if several[k].Norm() != one.Norm() || several[k].Rate() != one.Rate() || several[k].Steps != one.Steps {
							t.Errorf("solver %d has norm %v, rate %v and %d steps, want %v, %v and %d", k, several[k].Norm(), several[k].Rate(), several[k].Steps, one.Norm(), one.Rate(), one.Steps)
						}
					}
					same(t, fmt.Sprintf("step %d", number), shared, whole)
				}
				if one.Norm() <= one.ClipNorm {
					t.Error("the gradients are too small to be clipped")
				}
				// A solver has memory for its own part only, and can't add memory after the first step.
				model := valueGrads(whole)
				if _, err := several[1].State(model, 1); err != nil {
					t.Error(err)
				}
				if state, err := one.State(model, 1); err != nil || len(state) == 0 && rule != "SGD" {
					t.Errorf("the state of parameter 1 is %v, error %v; want a state without error", state, err)
				} else if _, err := several[0].State(model, 1); len(state) > 0 && (err == nil || !strings.Contains(err.Error(), "has no memory for its rule")) {
					t.Errorf("State of a parameter in another part: got %v, want an error", err)
				}
			})
		}
	}
}

// TestStateGoesOn copies the state after three steps to a new solver. The new solver takes three more steps, and must
// give the same weights as a solver that takes all six.
func TestStateGoesOn(t *testing.T) {
	for rule := range everyRule {
		t.Run(rule, func(t *testing.T) {
			whole, cut := layersOf(tensor.Float32), layersOf(tensor.Float32)
			one, first, second := newSolver(rule), newSolver(rule), newSolver(rule)
			for number := range 3 {
				step(t, one, whole, number)
				step(t, first, cut, number)
			}
			names := map[string]bool{}
			for i := range cut {
				from, err := first.State(valueGrads(cut), i)
				if err != nil {
					t.Fatal(err)
				}
				copied, err := second.State(valueGrads(cut), i) // before the second solver's first step
				if err != nil {
					t.Fatal(err)
				}
				for k, m := range from {
					if copied[k].Name != m.Name {
						t.Fatalf("memory %q, want %q", copied[k].Name, m.Name)
					}
					names[m.Name] = true
					copy(copied[k].Value.Float32s(), m.Value.Float32s())
				}
			}
			second.Steps = first.Steps
			for number := 3; number < 6; number++ {
				step(t, one, whole, number)
				step(t, second, cut, number)
			}
			same(t, "resumed", cut, whole)
			want := map[string]bool{}
			for _, g := range append(second.Groups, optim.Group{Rule: second.Rule}) {
				if g.Rule == nil && !g.Frozen {
					g.Rule = optim.AdamW{}
				}
				if g.Rule != nil {
					for _, name := range g.Rule.Memory() {
						want[name] = true
					}
				}
			}
			if !maps.Equal(names, want) {
				t.Errorf("memory names %v, want %v", names, want)
			}
		})
	}
}
