package optim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/optim"
)

// parameter is a gorgonia.ValueGrad without a graph.
type parameter struct {
	name        string
	value, grad *tensor.Dense
}

func (p *parameter) Name() string           { return p.name }
func (p *parameter) Value() G.Value         { return p.value }
func (p *parameter) Grad() (G.Value, error) { return p.grad, nil }

// dense returns a tensor of values, rounded to the dtype.
func dense(dtype tensor.Dtype, values []float64, shape ...int) *tensor.Dense {
	if dtype == tensor.Float64 {
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(slices.Clone(values)))
	}
	small := make([]float32, len(values))
	for i, v := range values {
		small[i] = float32(v)
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(small))
}

// numbers returns a tensor's numbers as float64.
func numbers(t *tensor.Dense) []float64 {
	if t.Dtype() == tensor.Float64 {
		return slices.Clone(t.Float64s())
	}
	var wide []float64
	for _, v := range t.Float32s() {
		wide = append(wide, float64(v))
	}
	return wide
}

// near fails the test unless got holds want within tol: an absolute error for numbers up to 1, a relative one above.
func near(t *testing.T, what string, got *tensor.Dense, want []float64, tol float64) {
	t.Helper()
	for i, x := range numbers(got) {
		if w := want[i]; !(math.Abs(x-w) <= tol*math.Max(1, math.Abs(w))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, x, w)
		}
	}
}

// line returns n evenly spaced numbers from first to last, like torch.linspace.
func line(first, last float64, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = first + (last-first)*float64(i)/float64(n-1)
	}
	return x
}

// gradient returns the gradient that testdata/solvers.py uses.
func gradient(weight []float64, step int, phase float64) []float64 {
	g := make([]float64, len(weight))
	for i, w := range weight {
		g[i] = math.Sin(1.7*float64(i)+0.3*float64(step)+phase)*(1+float64(step)/50) + w/4
	}
	return g
}

// newModel returns the parameters of testdata/solvers.py: a matrix (2, 3) and a vector (4).
func newModel(dtype tensor.Dtype) []*parameter {
	return []*parameter{
		{"matrix", dense(dtype, line(-1, 1, 6), 2, 3), tensor.New(tensor.WithShape(2, 3), tensor.Of(dtype))},
		{"vector", dense(dtype, line(0.5, -0.7, 4), 4), tensor.New(tensor.WithShape(4), tensor.Of(dtype))},
	}
}

// valueGrads returns the parameters as an argument for a solver.
func valueGrads(params []*parameter) []G.ValueGrad {
	var model []G.ValueGrad
	for _, p := range params {
		model = append(model, p)
	}
	return model
}

// differentiate sets the gradients for a step.
func differentiate(params []*parameter, step int) {
	for i, p := range params {
		p.grad = dense(p.value.Dtype(), gradient(numbers(p.value), step, float64(i)), p.value.Shape()...)
	}
}

// tolerances are for the weights after 100 steps.
var tolerances = map[tensor.Dtype]float64{tensor.Float64: 1e-12, tensor.Float32: 2e-5}

func TestAgreesWithPyTorch(t *testing.T) {
	content := must.Get(os.ReadFile("testdata/solvers.json"))(t)
	var cases []struct {
		Rule                                   string
		LR, Decay, Momentum, Beta1, Beta2, Eps float64
		Nesterov                               bool
		ClipNorm                               float64 `json:"clip_norm"`
		ClipValue                              float64 `json:"clip_value"`
		Steps                                  []struct {
			Step           int
			Matrix, Vector []float64
		}
	}
	must.Do(t, json.Unmarshal(content, &cases))
	for dtype, tol := range tolerances {
		for _, c := range cases {
			rule := map[string]optim.Rule{
				"sgd":   optim.SGD{Momentum: c.Momentum, Nesterov: c.Nesterov},
				"adam":  optim.Adam{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps},
				"adamw": optim.AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps},
			}[c.Rule]
			solver := &optim.Solver{Rule: rule, LearningRate: c.LR, WeightDecay: c.Decay, ClipNorm: c.ClipNorm, ClipValue: c.ClipValue}
			params := newModel(dtype)
			compared := 0
			for number := range 100 {
				step(t, solver, params, number)
				for _, p := range params {
					near(t, "gradient after the step", p.grad, make([]float64, p.grad.DataSize()), 0)
				}
				for _, s := range c.Steps {
					if s.Step == number {
						near(t, c.Rule+", matrix", params[0].value, s.Matrix, tol)
						near(t, c.Rule+", vector", params[1].value, s.Vector, tol)
						compared++
					}
				}
			}
			if compared != 5 || solver.Steps != 100 {
				t.Errorf("%s: %d steps taken, %d compared, want 100 and 5", c.Rule, solver.Steps, compared)
			}
		}
	}
}

// TestLion compares 100 steps of Lion with algorithm 2 in Chen et al., 2023.
func TestLion(t *testing.T) {
	const rate, beta1, beta2, decay = 1e-2, 0.9, 0.99, 0.3
	w := [][]float64{line(-1, 1, 6), line(0.5, -0.7, 4)}
	m := [][]float64{make([]float64, 6), make([]float64, 4)}
	params := newModel(tensor.Float64)
	solver := &optim.Solver{Rule: optim.Lion{}, LearningRate: rate, WeightDecay: decay}
	for number := range 100 {
		for k, lambda := range []float64{decay, 0} {
			g := gradient(w[k], number, float64(k))
			for i := range g {
				update := beta1*m[k][i] + (1-beta1)*g[i]
				sign := 0.0
				if update != 0 {
					sign = math.Copysign(1, update)
				}
				w[k][i] -= rate * (sign + lambda*w[k][i])
				m[k][i] = beta2*m[k][i] + (1-beta2)*g[i]
			}
		}
		step(t, solver, params, number)
		near(t, "matrix", params[0].value, w[0], 1e-12)
		near(t, "vector", params[1].value, w[1], 1e-12)
	}
}

// TestMuon compares 100 steps of the solver with Jordan's published Muon. His matrices have shape (out, in). The
// solver's matrices have shape (in, out), or (out, in) with OutIn. AdamW steps the vector.
func TestMuon(t *testing.T) {
	const rate, momentum, decay = 0.02, 0.95, 0.1
	for i, shape := range [][2]int{{2, 3}, {3, 2}, {3, 3}, {1, 6}, {2, 3}, {3, 2}, {6, 1}} {
		outIn := i > 3
		rows, out := shape[0], shape[1]
		growth := float64(out) / float64(rows)
		if outIn {
			growth = float64(rows) / float64(out)
		}
		w := line(-1, 1, rows*out)
		mean := make([]float64, len(w))
		params := newModel(tensor.Float64)
		params[0].value = dense(tensor.Float64, w, rows, out)
		solver := &optim.Solver{LearningRate: 0.1, Groups: []optim.Group{{
			Match: func(_ string, rank int) bool { return rank == 2 },
			Rule:  optim.Muon{OutIn: outIn}, LearningRate: rate, WeightDecay: decay,
		}}}
		alone := &optim.Solver{Rule: optim.AdamW{}, LearningRate: 0.1}
		vector := newModel(tensor.Float64)[1:]
		for step := range 100 {
			differentiate(params, step)
			vector[0].grad = params[1].grad.Clone().(*tensor.Dense)
			must.Do(t, solver.Step(valueGrads(params)))
			must.Do(t, alone.Step(valueGrads(vector)))
			g := gradient(w, step, 0)
			update := make([]float64, len(g))
			for i := range g {
				mean[i] += (1 - momentum) * (g[i] - mean[i])
				update[i] = g[i] + momentum*(mean[i]-g[i])
			}
			update = transposed(newtonSchulz(transposed(update, rows, out), out, rows), out, rows)
			for i := range w {
				w[i] *= 1 - rate*decay
				w[i] -= rate * math.Sqrt(max(1, growth)) * update[i]
			}
			near(t, "matrix", params[0].value, w, 1e-9)
			near(t, "vector", params[1].value, numbers(vector[0].value), 0)
		}
	}
}

// newtonSchulz is Jordan's zeropower_via_newtonschulz5 for a (rows, cols) matrix.
func newtonSchulz(x []float64, rows, cols int) []float64 {
	if rows > cols {
		return transposed(newtonSchulz(transposed(x, rows, cols), cols, rows), cols, rows)
	}
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	for i := range x {
		x[i] /= math.Sqrt(sum) + 1e-7
	}
	for range 5 {
		a := product(x, transposed(x, rows, cols), rows, cols, rows)
		b := product(a, a, rows, rows, rows)
		for i := range b {
			b[i] = -4.7750*a[i] + 2.0315*b[i]
		}
		bx := product(b, x, rows, rows, cols)
		for i := range x {
			x[i] = 3.4445*x[i] + bx[i]
		}
	}
	return x
}

// product multiplies an (m, k) matrix by a (k, n) matrix.
func product(x, y []float64, m, k, n int) []float64 {
	z := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				z[i*n+j] += x[i*k+l] * y[l*n+j]
			}
		}
	}
	return z
}

func transposed(x []float64, rows, cols int) []float64 {
	y := make([]float64, len(x))
	for i := range rows {
		for j := range cols {
			y[j*rows+i] = x[i*cols+j]
		}
	}
	return y
}

func TestNormAndRate(t *testing.T) {
	params := newModel(tensor.Float64)[1:]
	params[0].grad = dense(tensor.Float64, []float64{3, 0, -4, 0}, 4)
	before := numbers(params[0].value)
	solver := &optim.Solver{Rule: optim.SGD{}, LearningRate: 0.5, ClipNorm: 1, Schedule: constant(0.5)}
	must.Do(t, solver.Step(valueGrads(params)))
	near(t, "clipped to a norm of 1", params[0].value, []float64{before[0] - 0.25*0.6, before[1], before[2] + 0.25*0.8, before[3]}, 1e-15)
	if solver.Norm != 5 || solver.Rate != 0.25 {
		t.Errorf("norm %v and rate %v, want 5 and 0.25", solver.Norm, solver.Rate)
	}
}

// TestClipsNormThenValue clips like PyTorch's clip_grad_norm_ followed by clip_grad_value_: (10, 0) becomes (1, 0),
// then (0.5, 0); (3, −4) becomes (0.6, −0.8), then (0.5, −0.5). The norm is the joint norm of both parameters, also if
// each of two solvers steps one parameter.
func TestClipsNormThenValue(t *testing.T) {
	for _, c := range []struct{ gradient, want []float64 }{
		{[]float64{10, 0}, []float64{-0.5, 0}},
		{[]float64{3, -4}, []float64{-0.5, 0.5}},
		{[]float64{30, -40}, []float64{-0.5, 0.5}},
		{[]float64{0.3, -0.7}, []float64{-0.3, 0.5}}, // the norm is below 1
		{[]float64{0.3, 0.4}, []float64{-0.3, -0.4}}, // neither limit is reached
	} {
		for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-15, tensor.Float32: 1e-7} {
			for name, solvers := range map[string][]*optim.Solver{
				"one solver":  {{}},
				"a group":     {{Groups: []optim.Group{{Match: named("b"), Rule: optim.SGD{}, LearningRate: 1}}}},
				"two solvers": {{}, {}},
			} {
				var params []*parameter
				for i, g := range c.gradient { // each number is a parameter
					params = append(params, &parameter{name: string("ab"[i]), value: dense(dtype, []float64{0}, 1), grad: dense(dtype, []float64{g}, 1)})
				}
				model := valueGrads(params)
				squares := []float64{c.gradient[0] * c.gradient[0], c.gradient[1] * c.gradient[1]}
				for i, s := range solvers {
					s.Rule, s.LearningRate, s.ClipNorm, s.ClipValue = optim.SGD{}, 1, 1, 0.5
					part := []int{0, 1}
					if len(solvers) > 1 {
						part = []int{i}
					}
					must.Do(t, s.StepPart(model, part, squares))
				}
				for i, p := range params {
					near(t, fmt.Sprintf("%v, %s, number %d of %v", dtype, name, i, c.gradient), p.value, c.want[i:i+1], tol)
				}
			}
		}
	}
}

func TestSchedulesEachStep(t *testing.T) {
	params := newModel(tensor.Float64)
	solver := optim.NewAdamW(1)
	solver.Schedule = func(step int) float64 { return float64(step % 2) } // every other step moves nothing
	for number := range 4 {
		before := numbers(params[0].value)
		step(t, solver, params, 0)
		if moved := !slices.Equal(before, numbers(params[0].value)); moved != (number%2 == 1) {
			t.Errorf("step %d: weights changed: %t, want %t", number, moved, !moved)
		}
	}
}
