package optim_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/optim"
)

// readSchedules returns the learning rates of PyTorch's schedulers by name, and the metrics.
func readSchedules(t *testing.T) map[string][]float64 {
	t.Helper()
	content := must.Get(os.ReadFile("testdata/schedules.json"))(t)
	var rates map[string][]float64
	must.Do(t, json.Unmarshal(content, &rates))
	return rates
}

// constant is a schedule of one's own.
func constant(factor float64) optim.Schedule { return func(int) float64 { return factor } }

func TestSchedulesAgreeWithPyTorch(t *testing.T) {
	want := readSchedules(t)
	for name, s := range map[string]optim.Schedule{
		"linear":                optim.Linear(20, 0.25, 0.75),
		"cosine":                optim.Cosine(59, 0.1),
		"restarts":              optim.CosineRestarts(10, 1, 0.1),
		"growing restarts":      optim.CosineRestarts(8, 2, 0),
		"staircase":             optim.Staircase(15, 0.3),
		"one cycle":             optim.OneCycle(61, 20, 1./25, 1./25/1e4),
		"constant, then linear": constant(0.5).Then(12, optim.Linear(30, 0.9, 0.1)),
		"product":               optim.Staircase(10, 0.5).Times(optim.Linear(25, 0.2, 1)),
	} {
		if len(want[name]) != 60 {
			t.Fatalf("%s: %d rates from PyTorch, want 60", name, len(want[name]))
		}
		for step, w := range want[name] {
			if got := s(step); math.Abs(got-w) > 1e-12 {
				t.Errorf("%s: step %d: got %v, PyTorch %v", name, step, got, w)
			}
		}
	}
}

func TestSchedules(t *testing.T) {
	plain := optim.Schedule(func(step int) float64 { return float64(step) })
	for _, c := range []struct {
		name     string
		schedule optim.Schedule
		want     map[int]float64
	}{
		{"one after the other", plain.Then(4, plain), map[int]float64{0: 0, 3: 3, 4: 0, 9: 5}},
		{"a product", plain.Times(plain), map[int]float64{0: 0, 3: 9}},
		{"linear", optim.Linear(4, 0, 1), map[int]float64{0: 0, 1: 0.25, 4: 1, 9: 1}},
		{"cosine", optim.Cosine(9, 0), map[int]float64{0: 1, 9: 0}},
		{"warm-up", optim.WarmUp(4), map[int]float64{0: 0.25, 1: 0.5, 3: 1, 4: 1, 1000: 1}},
		{"no warm-up", optim.WarmUp(0), map[int]float64{0: 1, 7: 1}},
		{"cosine after a warm-up", optim.WarmUp(10).Then(10, optim.Cosine(100, 0.1)), map[int]float64{0: 0.1, 9: 1, 10: 1, 60: 0.55, 110: 0.1, 5000: 0.1}},
		{"cosine over no steps", optim.WarmUp(5).Then(5, optim.Cosine(0, 0.2)), map[int]float64{4: 1, 5: 0.2}},
		{"linear over no steps", optim.Linear(0, 1, 0.3), map[int]float64{0: 0.3, 9: 0.3}},
		{"inverse square root", optim.InverseSquareRoot(4), map[int]float64{0: 0.25, 3: 1, 15: 0.5, 399: 0.1}},
		{"inverse square root, at the largest step", optim.InverseSquareRoot(4), map[int]float64{math.MaxInt: 2 / math.Sqrt(float64(math.MaxInt))}},
		{"inverse square root, no rise", optim.InverseSquareRoot(0), map[int]float64{0: 1, 3: 0.5, 99: 0.1}},
		{"one cycle, after its end", optim.OneCycle(10, 3, 0.5, 0.1), map[int]float64{0: 0.5, 3: 1, 9: 0.1, 10: 0.1, 99: 0.1}},
		{"one cycle that only falls", optim.OneCycle(11, 0, 0.5, 0), map[int]float64{0: 1, 5: 0.5, 10: 0}},
		{"staircase with steps of 0", optim.Staircase(0, 0.5), map[int]float64{0: 1, 2: 0.25}},
		{"restarts over no steps", optim.CosineRestarts(0, 0, 0.5), map[int]float64{0: 1, 1: 1, 9: 1}},
		{"restarts at the largest step", optim.CosineRestarts(2, 2, 0.5), map[int]float64{2: 1, math.MaxInt: 1}},
		{"restarts that grow at once", optim.CosineRestarts(4, math.MaxInt, 0), map[int]float64{2: 0.5, 4: 1, 1000: 1}},
		{"in epochs of 10 steps", optim.Staircase(2, 0.5).Every(10), map[int]float64{0: 1, 19: 1, 20: 0.5, 40: 0.25}},
		{"every step", optim.Linear(4, 0, 1).Every(0), map[int]float64{0: 0, 1: 0.25, 4: 1}},
	} {
		for step, want := range c.want {
			if got := c.schedule(step); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: step %d has %v, want %v", c.name, step, got, want)
			}
		}
		for _, step := range []int{-1, -5, math.MinInt} {
			if got, want := c.schedule(step), c.schedule(0); got != want {
				t.Errorf("%s: step %d has %v, want %v as at step 0", c.name, step, got, want)
			}
		}
	}
}

// TestPlateauAgreesWithPyTorch compares the factors with PyTorch's. After every observation, it writes the plateau to
// JSON and reads it back.
func TestPlateauAgreesWithPyTorch(t *testing.T) {
	want := readSchedules(t)
	for name, c := range map[string]struct {
		plateau optim.Plateau
		metric  func(float64) float64
	}{
		"plateau":               {optim.Plateau{Factor: 0.5, Patience: 2, Floor: 0.01}, func(m float64) float64 { return m }},
		"plateau with cooldown": {optim.Plateau{Higher: true, Factor: 0.5, Patience: 1, Cooldown: 3, Threshold: 0.2}, func(m float64) float64 { return 10 - m }},
	} {
		p := &c.plateau
		for i, m := range want["metrics"] {
			if got := p.Schedule(i); math.Abs(got-want[name][i]) > 1e-12 {
				t.Errorf("%s: after %d metrics: got %v, PyTorch %v", name, i, got, want[name][i])
			}
			p.Observe(c.metric(m))
			saved := must.Get(json.Marshal(p))(t)
			p = new(optim.Plateau)
			must.Do(t, json.Unmarshal(saved, p))
		}
		if p.Reductions < 3 {
			t.Errorf("%s: got %d reductions, want 3 or more", name, p.Reductions)
		}
	}
}

func TestPlateauEdges(t *testing.T) {
	observe := func(p optim.Plateau, metrics ...float64) float64 {
		for _, m := range metrics {
			p.Observe(m)
		}
		return p.Schedule(0)
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name    string
		plateau optim.Plateau
		metrics []float64
		want    float64
	}{
		{"nothing observed", optim.Plateau{}, nil, 1},
		{"the first is the best", optim.Plateau{}, []float64{3}, 1},
		{"no patience", optim.Plateau{}, []float64{3, 3}, 0.1},
		{"NaN isn't better", optim.Plateau{Patience: 1}, []float64{nan, nan}, 0.1},
		{"−Inf isn't better", optim.Plateau{Patience: 1}, []float64{3, -inf, -inf}, 0.1},
		{"finite after NaN", optim.Plateau{Patience: 1}, []float64{nan, 3, 2, 1}, 1},
		{"below 0", optim.Plateau{}, []float64{-3, -3.0001}, 0.1}, // better, but by less than the threshold
		{"below 0, better", optim.Plateau{}, []float64{-3, -3.1}, 1},
		{"no threshold", optim.Plateau{Threshold: -1}, []float64{3, 2.999999}, 1},
		{"a floor", optim.Plateau{Floor: 0.05}, []float64{3, 3, 3, 3}, 0.05},
	} {
		if got := observe(c.plateau, c.metrics...); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
