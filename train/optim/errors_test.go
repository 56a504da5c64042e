package optim_test

import (
	"errors"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/optim"
)

func named(want string) func(string, int) bool {
	return func(name string, _ int) bool { return name == want }
}

func TestGroups(t *testing.T) {
	params := append(newModel(tensor.Float64), newModel(tensor.Float64)[0])
	params[2].name = "rate"
	for _, p := range params {
		p.grad = dense(tensor.Float64, make([]float64, p.value.DataSize()), p.value.Shape()...)
		p.grad.Memset(1.0)
	}
	solver := &optim.Solver{Rule: optim.SGD{}, LearningRate: 0.1, WeightDecay: 0.5, Groups: []optim.Group{
		{Match: named("vector"), WeightDecay: 1},
		{Match: func(name string, _ int) bool { return name != "matrix" }, LearningRate: 0.2}, // the vector belongs to the first group
	}}
	want := make([][]float64, 3)
	for i, p := range params {
		rate, decay := [3]float64{0.1, 0.1, 0.2}[i], [3]float64{0.5, 1, 0}[i]
		for _, w := range numbers(p.value) {
			want[i] = append(want[i], w-rate*(1+decay*w))
		}
	}
	must.Do(t, solver.Step(valueGrads(params)))
	for i, p := range params {
		near(t, p.name, p.value, want[i], 1e-15)
		near(t, "gradient of "+p.name, p.grad, make([]float64, p.grad.DataSize()), 0)
	}
	if norm := math.Sqrt(6 + 4 + 6); solver.Norm != norm {
		t.Errorf("norm %v, want %v", solver.Norm, norm)
	}
}

// TestErrors checks that failed steps change nothing.
func TestErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	grad := func(values ...float64) func([]*parameter) {
		return func(p []*parameter) { p[1].grad = dense(tensor.Float64, values, len(values)) }
	}
	for name, c := range map[string]struct {
		solver optim.Solver
		change func(p []*parameter)
		want   string
	}{
		"NaN gradient":       {optim.Solver{}, grad(1, 2, nan, 4), "gradient of parameter 1 (vector) isn't finite"},
		"infinite gradient":  {optim.Solver{ClipValue: 1}, grad(1, 2, inf, 4), "isn't finite"},
		"other size":         {optim.Solver{}, grad(1, 2, 3), "parameter 1 (vector) must be float32 or float64 tensors of the same shape and dtype, got float64 of (4) and float64 of (3)"},
		"other dtype":        {optim.Solver{}, func(p []*parameter) { p[1].grad = dense(tensor.Float32, line(0, 1, 4), 4) }, "tensors of the same shape"},
		"other shape":        {optim.Solver{}, func(p []*parameter) { p[0].grad = dense(tensor.Float64, line(0, 1, 6), 3, 2) }, "got float64 of (2, 3) and float64 of (3, 2)"},
		"listed twice":       {optim.Solver{}, func(p []*parameter) { p[1].value, p[1].grad = p[0].value, p[0].grad.Clone().(*tensor.Dense) }, "parameters 0 (matrix) and 1 (vector) share a tensor"},
		"one gradient":       {optim.Solver{}, func(p []*parameter) { p[1].value, p[1].grad = p[0].value.Clone().(*tensor.Dense), p[0].grad }, "with its own gradient"},
		"transposed":         {optim.Solver{}, transpose, "got float64 of (2, 3) and float64 of (2, 3) that isn't row-major without gaps"},
		"part of a tensor":   {optim.Solver{}, func(p []*parameter) { p[1].value = column(p[1].value) }, "got float64 of (4) that isn't row-major without gaps and float64 of (4)"},
		"ints":               {optim.Solver{}, func(p []*parameter) { p[1].value = tensor.New(tensor.WithShape(4), tensor.Of(tensor.Int)) }, "float32 or float64"},
		"nil value":          {optim.Solver{}, func(p []*parameter) { p[1].grad = nil }, "and nil"},
		"rate below 0":       {optim.Solver{LearningRate: -1}, nil, "LearningRate must be from 0 to 1e+30, got -1"},
		"steps below 0":      {optim.Solver{Steps: -1}, nil, "Steps must be at least 0 and below the largest int, got -1"},
		"decay NaN":          {optim.Solver{WeightDecay: nan}, nil, "WeightDecay must be"},
		"clip below 0":       {optim.Solver{ClipNorm: -1}, nil, "ClipNorm must be"},
		"clip infinite":      {optim.Solver{ClipValue: inf}, nil, "ClipValue must be"},
		"schedule NaN":       {optim.Solver{Schedule: constant(nan)}, nil, "numbers from 0 to 1e+30, got NaN for step 0"},
		"plateau raises":     {optim.Solver{Schedule: (&optim.Plateau{Factor: 2}).Schedule}, nil, "got NaN for step 0"},
		"plateau NaN":        {optim.Solver{Schedule: (&optim.Plateau{Factor: nan}).Schedule}, nil, "got NaN for step 0"},
		"plateau's patience": {optim.Solver{Schedule: (&optim.Plateau{Patience: -1}).Schedule}, nil, "got NaN for step 0"},
		"plateau's floor":    {optim.Solver{Schedule: (&optim.Plateau{Floor: 2}).Schedule}, nil, "got NaN for step 0"},
		"floor after a rise": {optim.Solver{Schedule: optim.WarmUp(9).Then(9, optim.Cosine(11, 2))}, nil, "got NaN for step 0"},
		"cycle's end":        {optim.Solver{Schedule: optim.OneCycle(20, 9, 0, inf)}, nil, "got NaN for step 0"},
		"linear to below 0":  {optim.Solver{Schedule: optim.WarmUp(9).Then(9, optim.Linear(9, 1, -1)).Every(3)}, nil, "got NaN for step 0"},
		"later below 0":      {optim.Solver{Schedule: optim.WarmUp(9).Then(9, constant(-1))}, nil, "got -1 for step 0"},
		"stairs upwards":     {optim.Solver{Schedule: optim.Staircase(9, 2)}, nil, "got NaN for step 0"},
		"schedule below 0":   {optim.Solver{Schedule: constant(-1)}, nil, "got -1 for step 0"},
		"schedule infinite":  {optim.Solver{Schedule: constant(inf)}, nil, "numbers from 0 to 1e+30, got +Inf for step 0"},
		"rate and factor":    {optim.Solver{LearningRate: 1e10, Schedule: constant(1e30)}, nil, "parameter 0 (matrix): the learning rate times the Schedule's factor must be from 0 to 1e+30, got 1e+10 · 1e+30 for step 0"},
		"group and factor":   {optim.Solver{LearningRate: 1, Groups: []optim.Group{{Match: named("vector"), LearningRate: 2}}, Schedule: constant(1e30)}, nil, "parameter 1 (vector): the learning rate times the Schedule's factor must be from 0 to 1e+30, got 2 · 1e+30 for step 0"},
		"rate and decay":     {optim.Solver{LearningRate: 1e20, WeightDecay: 1e10, Schedule: constant(2)}, nil, "parameter 0 (matrix): the learning rate, with the Schedule's factor, times the weight decay must be from 0 to 1e+30, got 2e+20 · 1e+10 for step 0"},
		"cycle without peak": {optim.Solver{Schedule: optim.OneCycle(10, 9, 0, 0)}, nil, "got NaN for step 0"},
		"cycle of no steps":  {optim.Solver{Schedule: optim.OneCycle(math.MinInt, math.MaxInt, 0, 0)}, nil, "got NaN for step 0"},
		"no such group":      {optim.Solver{Groups: []optim.Group{{Match: named("matrix")}, {Match: named("matrx")}}}, nil, "Groups[1] matches no parameter"},
		"shadowed group":     {optim.Solver{Groups: []optim.Group{{Match: named("matrix")}, {Match: named("matrix")}}}, nil, "Groups[1] matches no parameter"},
		"group's rate":       {optim.Solver{Groups: []optim.Group{{Match: named("matrix"), LearningRate: -2}}}, nil, "Groups[0].LearningRate must be"},
		"group's decay":      {optim.Solver{Groups: []optim.Group{{Match: named("matrix"), WeightDecay: nan}}}, nil, "Groups[0].WeightDecay must be"},
		"Muon for a vector":  {optim.Solver{Rule: optim.Muon{}}, nil, "parameter 1 (vector): Muon steps matrices only, got a tensor of rank 1: give the tensor another rule in a Group"},
		"Muon's iterations":  {optim.Solver{Groups: []optim.Group{{Match: named("matrix"), Rule: optim.Muon{Iterations: -1}}}}, nil, "Iterations"},
		"momentum of 1":      {optim.Solver{Rule: optim.SGD{Momentum: 1}}, nil, "the decays of SGD must be at least 0 and below 1, got 1"},
		"Nesterov alone":     {optim.Solver{Rule: optim.SGD{Nesterov: true}}, nil, "option Nesterov needs a momentum"},
		"Adam's beta":        {optim.Solver{Rule: optim.Adam{Beta2: 2}}, nil, "the decays of Adam and AdamW"},
		"AdamW's epsilon":    {optim.Solver{Rule: optim.AdamW{Eps: -1}}, nil, "Eps"},
		"Adam's epsilon":     {optim.Solver{Rule: optim.Adam{Eps: 1e-50}}, nil, "must be from 1e-30 to 1e30, or 0 for 1e-8, got 1e-50"}, // 0 in float32
		"Lion's beta":        {optim.Solver{Rule: optim.Lion{Beta1: nan}}, nil, "the decays of Lion"},
	} {
		t.Run(name, func(t *testing.T) {
			params := newModel(tensor.Float64)
			differentiate(params, 0)
			if c.change != nil {
				c.change(params)
			}
			matrix, g := numbers(params[0].value), numbers(params[0].grad)
			must.Fail(t, c.solver.Step(valueGrads(params)), c.want)
			near(t, "a value after a failed step", params[0].value, matrix, 0)
			near(t, "a gradient after a failed step", params[0].grad, g, 0)
			if c.solver.Steps > 0 {
				t.Error("a failed step was counted")
			}
		})
	}
}

// transpose gives the first parameter a gradient of the same shape that is column-major in memory.
func transpose(params []*parameter) {
	rows, columns := params[0].grad.Shape()[0], params[0].grad.Shape()[1]
	params[0].grad = dense(tensor.Float64, line(0, 1, rows*columns), columns, rows)
	if err := params[0].grad.T(); err != nil {
		panic(err)
	}
}

// column returns a vector with gaps between its numbers. It has the same number of rows as like.
func column(like *tensor.Dense) *tensor.Dense {
	n := like.Shape()[0]
	whole := dense(tensor.Float64, line(0, 1, 2*n), n, 2)
	view, err := whole.Slice(nil, G.S(0))
	if err != nil {
		panic(err)
	}
	return view.(*tensor.Dense)
}

// TestNaNChangesNoMemory makes steps fail with a NaN gradient, and checks that the other steps give the same weights as
// without the failed steps.
func TestNaNChangesNoMemory(t *testing.T) {
	for name, newSolver := range everySolver(t) {
		one, other := newSolver(), newSolver()
		params, tried := layersOf(tensor.Float32), layersOf(tensor.Float32)
		for number := range 3 {
			differentiate(tried, number)
			tried[5].grad.Float32s()[7] = float32(math.NaN())
			must.Fail(t, other.Step(valueGrads(tried)), "isn't finite")
			step(t, one, params, number)
			step(t, other, tried, number)
			same(t, name, tried, params)
		}
	}
}

func TestModelsMustStay(t *testing.T) {
	solver := optim.NewAdamW(0.1)
	params := newModel(tensor.Float64)
	step(t, solver, params, 0)
	fail := func(want string, params []*parameter) {
		t.Helper()
		must.Fail(t, solver.Step(valueGrads(params)), want)
	}
	differentiate(params, 1)
	fail("one Solver for each model", params[:1])
	fail("keep the parameters in the same order", []*parameter{params[1], params[0]})
	other := newModel(tensor.Float64)
	other[0].value.Reshape(3, 2)
	differentiate(other, 1)
	fail("parameter 0 was (2, 3) of float64, got (3, 2) of float64", other)
	solver.Rule = optim.Lion{}
	fail("make a new Solver", params)
	solver.Rule = nil // AdamW
	step(t, solver, params, 1)
}

func TestPartErrors(t *testing.T) {
	params := newModel(tensor.Float64)
	differentiate(params, 0)
	model := valueGrads(params)
	for _, part := range [][]int{{2}, {-1}, {0, 1, 0}} {
		must.Refuse(optim.NewAdamW(1).SumSquares(model, part))(t, "each once")
		must.Fail(t, optim.NewAdamW(1).StepPart(model, part, []float64{1, 1}), "each once")
	}
	must.Fail(t, optim.NewAdamW(1).StepPart(model, []int{0}, []float64{1}), "each of the model's 2 parameters, got 1")
	must.Fail(t, optim.NewAdamW(1).StepPart(model, []int{0}, []float64{1, math.NaN()}), "parameter 1 (vector) isn't finite")
	must.Refuse(optim.NewAdamW(1).State(model, 2))(t, "indexes of the model's 2 parameters")
}

// failing is a parameter without a value or a gradient.
type failing struct{}

func (failing) Value() G.Value         { return nil }
func (failing) Grad() (G.Value, error) { return nil, errors.New("none") }

func TestNothingThere(t *testing.T) {
	must.Fail(t, optim.NewAdamW(1).Step([]G.ValueGrad{failing{}}), "parameter 0 has no gradient: ")
	must.Refuse(optim.NewAdamW(1).State([]G.ValueGrad{failing{}}, 0))(t, "got nil")
	must.Do(t, optim.NewAdamW(1).Step(nil))
}

// StepPart checks the rates of the whole model, so that all Solvers of the parts end at the same step.
func TestRatesOfOtherParts(t *testing.T) {
	params := newModel(tensor.Float64)
	differentiate(params, 0)
	s := &optim.Solver{Groups: []optim.Group{{Match: named("vector"), LearningRate: 1e10}}, Schedule: constant(1e30)}
	must.Fail(t, s.StepPart(valueGrads(params), []int{0}, []float64{1, 1}), "got 1e+10 · 1e+30 for step 0")
}
