package optim_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/optim"
)

// configs returns a Config for each solver in the table, once with constants of 0 and once with every field set, and
// one for each schedule. The keys say what the Config tries.
func configs(t *testing.T) map[string]optim.Config {
	t.Helper()
	found := map[string]optim.Config{}
	add := func(name string, rule any, schedule string) {
		c := optim.Config{
			Solver: rule.(optim.Rule), LearningRate: 0.01, WeightDecay: 0.1, ClipNorm: 0.5, ClipValue: 0.05,
			Schedule: optim.ScheduleConfig{Kind: schedule, WarmUp: 3, Decay: 9, Floor: 0.1},
		}
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		found[name] = c
	}
	solvers := optim.Choices()["solver"]
	for name := range solvers.All {
		rule := must.Get(solvers.Parse(name))(t)
		add(name, rule, "constant")
		set := reflect.New(reflect.TypeOf(rule)).Elem()
		for f, value := range set.Fields() {
			switch {
			case f.Tag.Get("json") == "-":
			case value.Kind() == reflect.Float64:
				value.SetFloat(0.5)
			case value.Kind() == reflect.Int:
				value.SetInt(3)
			case value.Kind() == reflect.Bool:
				value.SetBool(true)
			default:
				t.Errorf("solver %s has a field of type %v: set it here, too", name, value.Type())
			}
		}
		add(solvers.Text(set.Interface()), set.Interface(), "constant")
	}
	for name := range optim.Choices()["schedule"].All {
		add("schedule "+name, optim.AdamW{}, name)
	}
	return found
}

// everySolver returns functions that make a solver: for each of configs, and for rules of one's own.
func everySolver(t *testing.T) map[string]func() *optim.Solver {
	solvers := map[string]func() *optim.Solver{
		"own": func() *optim.Solver { return newSolverOf(AdaGrad{1e-8}) },
		"own in a group": func() *optim.Solver {
			s := newSolverOf(optim.Lion{})
			s.Groups = []optim.Group{
				{Match: func(_ string, rank int) bool { return rank == 2 }, Rule: AdaGrad{1e-8}, WeightDecay: 0.2},
			}
			return s
		},
	}
	for name, c := range configs(t) {
		solvers[name] = func() *optim.Solver {
			s, _, _, err := c.New()
			must.Do(t, err)
			return s
		}
	}
	return solvers
}

// layersOf returns parameters of several sizes, with names such as blocks.1 and rest.3.
func layersOf(dtype tensor.Dtype) []*parameter {
	var params []*parameter
	for i, shape := range [][]int{{40, 30}, {30}, {30, 70}, {70}, {7, 6}, {70, 30}} {
		value := tensor.New(tensor.WithShape(shape...), tensor.Of(dtype))
		name := fmt.Sprint("blocks.", i)
		if i%3 == 0 {
			name = fmt.Sprint("rest.", i)
		}
		params = append(params, &parameter{name, dense(dtype, line(-0.5, 0.7, value.DataSize()), shape...), nil})
	}
	return params
}

// step steps all parameters with one call.
func step(t *testing.T, s *optim.Solver, params []*parameter, number int) {
	t.Helper()
	differentiate(params, number)
	must.Do(t, s.Step(valueGrads(params)))
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
	for name, newSolver := range everySolver(t) {
		for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			t.Run(fmt.Sprint(name, " ", dtype), func(t *testing.T) {
				whole, shared := layersOf(dtype), layersOf(dtype)
				one, several := newSolver(), []*optim.Solver{newSolver(), newSolver(), newSolver()}
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
						sums := must.Get(several[k].SumSquares(valueGrads(views[k]), part))(t)
						for j, i := range part {
							squares[i] = sums[j]
						}
					}
					for k, part := range parts {
						must.Do(t, several[k].StepPart(valueGrads(views[k]), part, squares))
						if several[k].Norm != one.Norm || several[k].Rate != one.Rate || several[k].Steps != one.Steps {
							t.Errorf("solver %d has norm %v, rate %v and %d steps, want %v, %v and %d", k, several[k].Norm, several[k].Rate, several[k].Steps, one.Norm, one.Rate, one.Steps)
						}
					}
					same(t, fmt.Sprintf("step %d", number), shared, whole)
				}
				if one.Norm <= one.ClipNorm {
					t.Error("the gradients are too small to be clipped")
				}
				// A solver has memory for its own part only, and can't add memory after the first step.
				model := valueGrads(whole)
				must.Get(several[1].State(model, 1))(t)
				if state, err := one.State(model, 1); err != nil || len(state) != len(one.Rule.Memory()) {
					t.Errorf("the state of parameter 1 is %v, error %v; want the memory of %T", state, err, one.Rule)
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
	for name, newSolver := range everySolver(t) {
		t.Run(name, func(t *testing.T) {
			whole, cut := layersOf(tensor.Float32), layersOf(tensor.Float32)
			one, first, second := newSolver(), newSolver(), newSolver()
			for number := range 3 {
				step(t, one, whole, number)
				step(t, first, cut, number)
			}
			before := valueGrads(cut)
			for i, p := range cut { // the new solver steps other tensors, as after a restart
				cut[i] = &parameter{p.name, p.value.Clone().(*tensor.Dense), nil}
			}
			names := map[string]bool{}
			for i := range cut {
				from := must.Get(first.State(before, i))(t)
				copied, err := second.State(valueGrads(cut), i) // before the second solver's first step
				must.Do(t, err)
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
				if g.Rule == nil {
					g.Rule = optim.AdamW{}
				}
				for _, name := range g.Rule.Memory() {
					want[name] = true
				}
			}
			if !maps.Equal(names, want) {
				t.Errorf("memory names %v, want %v", names, want)
			}
		})
	}
}

// overwritten is a parameter whose gradient the next step overwrites.
type overwritten struct{ *parameter }

func (overwritten) Overwritten() bool { return true }

// TestOverwrittenGradients compares every solver's steps with its steps for gradients that needn't be set to zero. It
// checks that every other gradient is set to zero.
func TestOverwrittenGradients(t *testing.T) {
	for name, newSolver := range everySolver(t) {
		t.Run(name, func(t *testing.T) {
			one, other := newSolver(), newSolver()
			params, kept := layersOf(tensor.Float32), layersOf(tensor.Float32)
			var model []G.ValueGrad
			for _, p := range kept {
				model = append(model, overwritten{p})
			}
			for number := range 3 {
				step(t, one, params, number)
				differentiate(kept, number)
				must.Do(t, other.Step(model))
				same(t, fmt.Sprint("step ", number), kept, params)
			}
			for i, p := range params {
				near(t, fmt.Sprint("gradient ", i), p.grad, make([]float64, p.grad.DataSize()), 0)
			}
		})
	}
}

// TestEverySolverClips compares a solver that clips with one whose gradients were clipped before. Both must set the
// gradients to zero.
func TestEverySolverClips(t *testing.T) {
	for name, newSolver := range everySolver(t) {
		t.Run(name, func(t *testing.T) {
			one, other := newSolver(), newSolver()
			other.ClipNorm, other.ClipValue = 0, 0
			params, clipped := layersOf(tensor.Float64), layersOf(tensor.Float64)
			for number := range 5 {
				step(t, one, params, number)
				differentiate(clipped, number)
				for _, p := range clipped {
					g := p.grad.Float64s()
					for i := range g {
						g[i] *= one.ClipNorm / one.Norm
						if one.ClipValue > 0 {
							g[i] = max(-one.ClipValue, min(one.ClipValue, g[i]))
						}
					}
				}
				must.Do(t, other.Step(valueGrads(clipped)))
				for i, p := range params {
					near(t, fmt.Sprintf("parameter %d after step %d", i, number), p.value, numbers(clipped[i].value), 1e-12)
					near(t, "its gradient", p.grad, make([]float64, p.grad.DataSize()), 0)
				}
			}
		})
	}
}

// TestEverySolverDescends takes 200 steps towards the minimum of Σ(w−1)², with the constants of 0.
func TestEverySolverDescends(t *testing.T) {
	for name := range optim.Choices()["solver"].All {
		c := configs(t)[name]
		c.WeightDecay, c.ClipNorm, c.ClipValue = 0, 0, 0
		s, _, _, err := c.New()
		must.Do(t, err)
		params := layersOf(tensor.Float32)
		loss := func() (sum float64) {
			for _, p := range params {
				for _, w := range numbers(p.value) {
					sum += (w - 1) * (w - 1)
				}
			}
			return sum
		}
		before := loss()
		for range 200 {
			for _, p := range params {
				g := numbers(p.value)
				for i := range g {
					g[i] = 2 * (g[i] - 1)
				}
				p.grad = dense(tensor.Float32, g, p.value.Shape()...)
			}
			must.Do(t, s.Step(valueGrads(params)))
		}
		if after := loss(); !(after < 0.9*before) {
			t.Errorf("%s: 200 steps change the loss from %v to %v, want less than nine tenths", name, before, after)
		}
	}
}

// TestEveryScheduleHasNoState checks that the factor of a step doesn't depend on the steps before, because a resumed
// run begins in the middle.
func TestEveryScheduleHasNoState(t *testing.T) {
	for name, newSolver := range everySolver(t) {
		forward, backward := newSolver().Schedule, newSolver().Schedule
		var want []float64
		for number := range 30 {
			want = append(want, forward(number))
		}
		for number := 29; number >= 0; number-- {
			if got := backward(number); got != want[number] {
				t.Errorf("%s: step %d has the factor %v after step %d, and %v after step %d", name, number, got, number+1, want[number], number-1)
			}
		}
	}
}
