package train_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/train"
)

// valueGrad is a value and a gradient without a graph.
type valueGrad struct{ value, grad *tensor.Dense }

func (v valueGrad) Value() G.Value         { return v.value }
func (v valueGrad) Grad() (G.Value, error) { return v.grad, nil }

func dense(dtype tensor.Dtype, values []float64, shape ...int) *tensor.Dense {
	if dtype == tensor.Float64 {
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(append([]float64(nil), values...)))
	}
	small := make([]float32, len(values))
	for i, v := range values {
		small[i] = float32(v)
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(small))
}

// near fails the test unless a tensor holds these values, to a relative error of tol.
func near(t *testing.T, what string, got *tensor.Dense, want []float64, tol float64) {
	t.Helper()
	for i, w := range want {
		v, err := got.At(indices(got.Shape(), i)...)
		if err != nil {
			t.Fatal(err)
		}
		x, ok := v.(float64)
		if !ok {
			x = float64(v.(float32))
		}
		if math.Abs(x-w) > tol*math.Max(1, math.Abs(w)) {
			t.Errorf("%s[%d] = %v, PyTorch has %v", what, i, x, w)
		}
	}
}

func indices(shape []int, i int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d], i = i%shape[d], i/shape[d]
	}
	return out
}

func TestAdamWAgreesWithPyTorch(t *testing.T) {
	content, err := os.ReadFile("testdata/adamw.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		LR, Beta1, Beta2, Eps, Decay, Clip float64
		Matrix, Vector                     []float64
		Steps                              []struct {
			MatrixGrad []float64 `json:"matrix_grad"`
			VectorGrad []float64 `json:"vector_grad"`
			Matrix     []float64
			Vector     []float64
		}
	}
	if err := json.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-12, tensor.Float32: 1e-5} {
		for _, c := range cases {
			matrix, vector := dense(dtype, c.Matrix, 2, 3), dense(dtype, c.Vector, 4)
			steps := 0
			counting := func(int) float64 { steps++; return 1 }
			solver := &train.AdamW{LearningRate: c.LR, Schedule: counting, Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, WeightDecay: c.Decay, ClipNorm: c.Clip}
			for _, s := range c.Steps {
				mg, vg := dense(dtype, s.MatrixGrad, 2, 3), dense(dtype, s.VectorGrad, 4)
				if err := solver.Step([]G.ValueGrad{valueGrad{matrix, mg}, valueGrad{vector, vg}}); err != nil {
					t.Fatal(err)
				}
				near(t, "matrix", matrix, s.Matrix, tol)
				near(t, "vector", vector, s.Vector, tol)
				near(t, "gradient after the step", mg, make([]float64, 6), 0)
			}
			if steps != len(c.Steps) {
				t.Errorf("%d steps counted, want %d", steps, len(c.Steps))
			}
		}
	}
}

func TestAdamWSchedule(t *testing.T) {
	w := dense(tensor.Float64, []float64{1, 1}, 2)
	solver := train.NewAdamW(1)
	solver.Schedule = func(step int) float64 { return float64(step % 2) } // every other step stands still
	for step := range 4 {
		before := w.Clone().(*tensor.Dense)
		if err := solver.Step([]G.ValueGrad{valueGrad{w, dense(tensor.Float64, []float64{1, -1}, 2)}}); err != nil {
			t.Fatal(err)
		}
		if moved := !before.Eq(w); moved != (step%2 == 1) {
			t.Errorf("step %d: moved %t", step, moved)
		}
	}
}

func TestAdamWErrors(t *testing.T) {
	w := func() *tensor.Dense { return dense(tensor.Float64, []float64{1, 2}, 2) }
	nan := dense(tensor.Float64, []float64{1, math.NaN()}, 2)
	inf := dense(tensor.Float32, []float64{1, math.Inf(1)}, 2)
	g := func() *tensor.Dense { return dense(tensor.Float64, []float64{1, 1}, 2) }
	for name, c := range map[string]struct {
		model []G.ValueGrad
		want  string
	}{
		"NaN gradient":      {[]G.ValueGrad{valueGrad{w(), g()}, valueGrad{w(), nan}}, "gradient of parameter 1 isn't finite"},
		"infinite gradient": {[]G.ValueGrad{valueGrad{dense(tensor.Float32, []float64{1, 2}, 2), inf}}, "isn't finite"},
		"other dtype":       {[]G.ValueGrad{valueGrad{w(), dense(tensor.Float32, []float64{1, 1}, 2)}}, "tensors of one shape"},
		"other size":        {[]G.ValueGrad{valueGrad{w(), dense(tensor.Float64, []float64{1, 1, 1}, 3)}}, "tensors of one shape"},
		"other shape":       {[]G.ValueGrad{valueGrad{dense(tensor.Float64, []float64{1, 2}, 2, 1), dense(tensor.Float64, []float64{1, 1}, 1, 2)}}, "got float64 of (2, 1) and float64 of (1, 2)"},
		"ints":              {[]G.ValueGrad{valueGrad{tensor.New(tensor.WithShape(2), tensor.Of(tensor.Int)), g()}}, "float32 or float64"},
		"no gradient":       {[]G.ValueGrad{failing{}}, "no gradient"},
	} {
		t.Run(name, func(t *testing.T) {
			err := train.NewAdamW(0.1).Step(c.model)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q in it", err, c.want)
			}
			if v, ok := c.model[0].(valueGrad); ok && v.value.Dtype() == tensor.Float64 {
				near(t, "a value after a failed step", v.value, []float64{1, 2}, 0)
			}
		})
	}
	solver := train.NewAdamW(0.1)
	if err := solver.Step([]G.ValueGrad{valueGrad{w(), g()}}); err != nil {
		t.Fatal(err)
	}
	if err := solver.Step([]G.ValueGrad{valueGrad{w(), g()}, valueGrad{w(), g()}}); err == nil || !strings.Contains(err.Error(), "one solver for each model") {
		t.Errorf("another number of parameters: %v", err)
	}
	if err := solver.Step([]G.ValueGrad{valueGrad{dense(tensor.Float64, []float64{1}, 1), dense(tensor.Float64, []float64{1}, 1)}}); err == nil || !strings.Contains(err.Error(), "in one order") {
		t.Errorf("another size: %v", err)
	}
	if err := solver.Step([]G.ValueGrad{valueGrad{dense(tensor.Float64, []float64{1, 2}, 2, 1), dense(tensor.Float64, []float64{1, 1}, 2, 1)}}); err == nil || !strings.Contains(err.Error(), "in one order") {
		t.Errorf("another shape of that size: %v", err)
	}
}

type failing struct{}

func (failing) Value() G.Value         { return nil }
func (failing) Grad() (G.Value, error) { return nil, errors.New("none") }

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		name     string
		schedule func(int) float64
		want     map[int]float64
	}{
		{"warm-up", train.WarmUp(4), map[int]float64{0: 0.25, 1: 0.5, 3: 1, 4: 1, 1000: 1}},
		{"no warm-up", train.WarmUp(0), map[int]float64{0: 1, 7: 1}},
		{"cosine", train.WarmUpCosine(10, 110, 0.1), map[int]float64{0: 0.1, 9: 1, 10: 1, 60: 0.55, 110: 0.1, 5000: 0.1}},
		{"cosine alone", train.WarmUpCosine(0, 100, 0), map[int]float64{0: 1, 50: 0.5, 100: 0}},
		{"nothing between", train.WarmUpCosine(5, 5, 0.2), map[int]float64{4: 1, 5: 0.2}},
	} {
		for step, want := range c.want {
			if got := c.schedule(step); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: step %d has %v, want %v", c.name, step, got, want)
			}
		}
	}
}
