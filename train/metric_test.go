package train_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// A metricGraph is a graph for testing metrics. Its inputs are numbered from 1.
type metricGraph struct {
	*testing.T
	*G.ExprGraph
	dt     tensor.Dtype
	inputs int
}

func newMetricGraph(t *testing.T, dt tensor.Dtype) *metricGraph {
	return &metricGraph{T: t, ExprGraph: G.NewGraph(), dt: dt}
}

func (g *metricGraph) in(v any, shape []int) *G.Node {
	g.inputs++
	d := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(v))
	return G.NewTensor(g.ExprGraph, d.Dtype(), d.Dims(), G.WithShape(shape...), G.WithName(fmt.Sprint("in", g.inputs)), G.WithValue(d))
}

// floats adds an input, or returns nil if v is nil.
func (g *metricGraph) floats(v []float64, shape ...int) *G.Node {
	if v == nil {
		return nil
	}
	if g.dt == tensor.Float64 {
		return g.in(slices.Clone(v), shape)
	}
	v32 := make([]float32, len(v))
	for i, x := range v {
		v32[i] = float32(x)
	}
	return g.in(v32, shape)
}

func (g *metricGraph) ints(v []int, shape ...int) *G.Node { return g.in(slices.Clone(v), shape) }

// run runs the graph once and returns the elements of all nodes.
func (g *metricGraph) run(nodes ...*G.Node) (values []float64, err error) {
	read := make([]G.Value, len(nodes))
	for i, n := range nodes {
		G.Read(n, &read[i])
	}
	vm := G.NewTapeMachine(g.ExprGraph)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return nil, err
	}
	for _, v := range read {
		switch x := v.Data().(type) {
		case float64:
			values = append(values, x)
		case float32:
			values = append(values, float64(x))
		case []float64:
			values = append(values, x...)
		case []float32:
			for _, y := range x {
				values = append(values, float64(y))
			}
		}
	}
	return values, nil
}

var metricDtypes = []tensor.Dtype{tensor.Float64, tensor.Float32}

func TestAccuracyAndExactMatch(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tc := range []struct {
		name    string
		logits  []float64 // for 2 classes
		targets []int
		shape   []int      // shape of the targets
		want    [4]float64 // sum and count of Accuracy, then of ExactMatch
	}{
		{"both rows right", []float64{1, 0, 0, 1}, []int{0, 1}, []int{2}, [4]float64{2, 2, 2, 2}},
		{"one of two", []float64{1, 0, 1, 0}, []int{0, 1}, []int{2}, [4]float64{1, 2, 1, 2}},
		{"a tie goes to the first class", []float64{3, 3, 3, 3}, []int{0, 1}, []int{2}, [4]float64{1, 2, 1, 2}},
		{"NaN is never right", []float64{nan, 0, nan, 0, 0, nan, nan, nan}, []int{0, 1, 0, 0}, []int{4}, [4]float64{0, 4, 0, 4}},
		{"infinities are numbers", []float64{inf, 0, -inf, 0, -inf, -inf, 0, -inf}, []int{0, 1, 0, 1}, []int{4}, [4]float64{3, 4, 3, 4}},
		{"a row with a mistake", []float64{1, 0, 1, 0, 1, 0, 1, 0}, []int{0, 0, 0, 1}, []int{2, 2}, [4]float64{3, 4, 1, 2}},
		{"a mistake that is ignored", []float64{1, 0, nan, nan, 1, 0, 1, 0}, []int{0, -1, 0, 0}, []int{2, 2}, [4]float64{3, 3, 2, 2}},
		{"an ignored row doesn't count", []float64{1, 0, 1, 0, nan, nan, nan, nan}, []int{0, 0, -1, -9}, []int{2, 2}, [4]float64{2, 2, 1, 1}},
		{"nothing counts", []float64{nan, nan}, []int{-1}, []int{1}, [4]float64{0, 0, 0, 0}},
		{"rows of several axes", []float64{1, 0, 1, 0, 1, 0, 0, 1}, []int{0, 0, 0, 0}, []int{1, 2, 2}, [4]float64{3, 4, 0, 1}},
		{"a first axis of rows", []float64{1, 0, 1, 0, 1, 0, 0, 1}, []int{0, 0, 0, 0}, []int{2, 2, 1}, [4]float64{3, 4, 1, 2}},
	} {
		for _, dt := range metricDtypes {
			g := newMetricGraph(t, dt)
			logits, targets := g.floats(tc.logits, append(slices.Clone(tc.shape), 2)...), g.ints(tc.targets, tc.shape...)
			b := &layers.Build{}
			accuracy, exact := must.Get(train.Accuracy(b, logits, targets))(g), must.Get(train.ExactMatch(b, logits, targets))(g)
			if got := [4]float64(must.Get(g.run(accuracy.Sum, accuracy.Count, exact.Sum, exact.Count))(t)); got != tc.want {
				t.Errorf("%s, %v: got %v, want %v", tc.name, dt, got, tc.want)
			}
			if accuracy.Name != "accuracy" || exact.Name != "exact_match" {
				t.Errorf("the names are %q and %q, want accuracy and exact_match", accuracy.Name, exact.Name)
			}
		}
	}
}

// TestAccuracyOfRandomShapes compares Accuracy and ExactMatch with plain loops, for random shapes. Ignored rows contain
// NaN.
func TestAccuracyOfRandomShapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		shape := make([]int, 1+rng.IntN(3))
		for i := range shape {
			shape[i] = 1 + rng.IntN(12)
		}
		vocab := 1 + rng.IntN(70)
		n := tensor.Shape(shape).TotalSize()
		logits, targets := make([]float64, n*vocab), make([]int, n)
		var right, counted, rowsRight, rowsCounted float64
		for lo := 0; lo < n; lo += n / shape[0] {
			every, any := true, false
			for i := lo; i < lo+n/shape[0]; i++ {
				row, best := logits[i*vocab:][:vocab], 0
				for j := range row {
					row[j] = float64(rng.IntN(9)) // some logits are equal
					if row[j] > row[best] {
						best = j
					}
				}
				switch rng.IntN(4) {
				case 0:
					targets[i] = -1 - rng.IntN(3)
					row[rng.IntN(vocab)] = math.NaN()
					continue
				case 1:
					targets[i] = rng.IntN(vocab)
				default:
					targets[i] = best
				}
				any = true
				counted++
				if targets[i] == best {
					right++
				} else {
					every = false
				}
			}
			if any {
				rowsCounted++
				if every {
					rowsRight++
				}
			}
		}
		for _, dt := range metricDtypes {
			g := newMetricGraph(t, dt)
			x, y := g.floats(logits, append(slices.Clone(shape), vocab)...), g.ints(targets, shape...)
			b := &layers.Build{Cores: 1 + rng.IntN(3)}
			a, e := must.Get(train.Accuracy(b, x, y))(g), must.Get(train.ExactMatch(b, x, y))(g)
			if got, want := must.Get(g.run(a.Sum, a.Count, e.Sum, e.Count))(t), []float64{right, counted, rowsRight, rowsCounted}; !slices.Equal(got, want) {
				t.Errorf("%v with %d classes, %v: got %v, want %v", shape, vocab, dt, got, want)
			}
		}
	}
}

// TestMetricsOfNumbers compares MeanAbsoluteError and BinaryAccuracy with plain loops, for several shapes of inputs and
// weights. Inputs with a weight of 0 are NaN.
func TestMetricsOfNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, tc := range []struct{ shape, weights []int }{
		{[]int{1}, nil}, {[]int{7}, []int{7}}, {[]int{3, 4, 5}, nil}, {[]int{3, 4, 5}, []int{3}}, {[]int{3, 4, 5}, []int{3, 4}},
		{[]int{2, 3}, []int{2, 3}}, {[]int{9000}, []int{9000}}, {[]int{3, 5000}, []int{3}},
	} {
		n := tensor.Shape(tc.shape).TotalSize()
		x, y, w := make([]float64, n), make([]float64, n), []float64{1}
		if tc.weights != nil {
			w = make([]float64, tensor.Shape(tc.weights).TotalSize())
			for i := range w {
				w[i] = float64(rng.IntN(4)) / 2
			}
		}
		var distance, right, count float64
		for i := range n {
			x[i], y[i] = float64(float32(rng.NormFloat64())), float64(rng.IntN(5))/4
			weight := w[i/(n/len(w))]
			if weight == 0 {
				x[i], y[i] = math.NaN(), math.NaN()
				continue
			}
			count += weight
			distance += weight * math.Abs(x[i]-y[i])
			if (x[i] > 0) == (y[i] > 0.5) {
				right += weight
			}
		}
		for _, dt := range metricDtypes {
			g := newMetricGraph(t, dt)
			xs, ys := g.floats(x, tc.shape...), g.floats(y, tc.shape...)
			var ws *G.Node
			if tc.weights != nil {
				ws = g.floats(w, tc.weights...)
			}
			b := &layers.Build{}
			absolute, binary := must.Get(train.MeanAbsoluteError(b, xs, ys, ws))(g), must.Get(train.BinaryAccuracy(b, xs, ys, ws))(g)
			got := must.Get(g.run(absolute.Sum, absolute.Count, binary.Sum, binary.Count))(t)
			if math.Abs(got[0]-distance) > 1e-12*distance || got[1] != count || got[2] != right || got[3] != count {
				t.Errorf("%v weighted by %v, %v: got %v, want %v, %v, %v", tc.shape, tc.weights, dt, got, distance, count, right)
			}
			if absolute.Name != "mean_absolute_error" || binary.Name != "accuracy" {
				t.Errorf("the names are %q and %q, want mean_absolute_error and accuracy", absolute.Name, binary.Name)
			}
		}
	}
}

// TestMetricsLeaveTheGradientAlone checks that the loss and its gradient have the same bits with and without metrics in
// the graph.
func TestMetricsLeaveTheGradientAlone(t *testing.T) {
	x := make([]float64, 2*3*4)
	for i := range x {
		x[i] = math.Sin(float64(5 * i))
	}
	for _, dt := range metricDtypes {
		run := func(metrics bool) []float64 {
			g := newMetricGraph(t, dt)
			b := &layers.Build{Training: true}
			logits, targets := g.floats(x, 2, 3, 4), g.ints([]int{0, 3, -1, 1, 1, 2}, 2, 3)
			add := func() {
				if metrics {
					must.Get(train.Accuracy(b, logits, targets))(g)
					must.Get(train.ExactMatch(b, logits, targets))(g)
					must.Get(train.MacroF1(b, logits, targets))(g)
					must.Get(train.MeanAbsoluteError(b, logits, g.floats(x, 2, 3, 4), nil))(g)
				}
			}
			add()
			loss := must.Get(layers.CrossEntropy(b, logits, targets, layers.CrossEntropyOptions{}))(t)
			add() // Accuracy and ExactMatch return the same nodes again
			grads := must.Get(G.Grad(loss.Mean, logits))(t)
			must.Do(t, layers.CheckGraph(g.ExprGraph))
			return must.Get(g.run(loss.Mean, grads[0]))(t)
		}
		if got, want := run(true), run(false); !slices.Equal(got, want) {
			t.Errorf("%v: with metrics, the loss and gradient are %v, want %v as without", dt, got, want)
		}
	}
}

// TestMetricsRunAgain changes the targets between runs, and checks that a run keeps nothing from the run before.
func TestMetricsRunAgain(t *testing.T) {
	g := newMetricGraph(t, tensor.Float64)
	b := &layers.Build{}
	x, y := g.floats([]float64{1, 0, 1, 0}, 2, 2), g.ints([]int{0, 0}, 2)
	first, second := must.Get(train.Accuracy(b, x, y))(g), must.Get(train.Accuracy(b, x, y))(g)
	if first.Sum != second.Sum || first.Count != second.Count {
		t.Error("two calls of Accuracy with the same inputs return different nodes")
	}
	var sum, count G.Value
	G.Read(first.Sum, &sum)
	G.Read(first.Count, &count)
	vm := G.NewTapeMachine(g.ExprGraph)
	defer vm.Close()
	for _, tc := range []struct {
		targets    []int
		sum, count float64
	}{{[]int{0, 0}, 2, 2}, {[]int{1, -1}, 0, 1}, {[]int{-1, -1}, 0, 0}, {[]int{0, 1}, 1, 2}} {
		must.Do(t, G.Let(y, tensor.New(tensor.WithBacking(tc.targets))))
		vm.Reset()
		must.Do(t, vm.RunAll())
		if sum.Data() != tc.sum || count.Data() != tc.count {
			t.Errorf("targets %v: got sum %v and count %v, want %v and %v", tc.targets, sum, count, tc.sum, tc.count)
		}
	}
}

// TestMetricErrors checks errors of adding a metric, and of running a graph with wrong values.
func TestMetricErrors(t *testing.T) {
	type input = func(g *metricGraph) *G.Node
	zeros := func(shape ...int) input {
		return func(g *metricGraph) *G.Node {
			return g.floats(make([]float64, tensor.Shape(shape).TotalSize()), shape...)
		}
	}
	floats := func(x ...float64) input { return func(g *metricGraph) *G.Node { return g.floats(x, len(x)) } }
	ints := func(x ...int) input { return func(g *metricGraph) *G.Node { return g.ints(x, len(x)) } }
	scalar := func(g *metricGraph) *G.Node { return G.NewScalar(g.ExprGraph, tensor.Float64) }
	foreign := func(*metricGraph) *G.Node { return ints(0, 0)(newMetricGraph(t, tensor.Float32)) }

	type add = func(b *layers.Build, x, y, weights *G.Node) (train.Metric, error)
	accuracy := func(b *layers.Build, x, y, _ *G.Node) (train.Metric, error) { return train.Accuracy(b, x, y) }
	macroF1 := func(b *layers.Build, x, y, _ *G.Node) (train.Metric, error) { return train.MacroF1(b, x, y) }
	class3 := func(b *layers.Build, x, y, _ *G.Node) (train.Metric, error) {
		_, err := train.ClassMetrics(b, x, y, 3)
		return train.Metric{}, err
	}
	elsewhere := func(b *layers.Build, x, y, _ *G.Node) (train.Metric, error) {
		must.Do(t, b.Env().Enter(G.NewGraph()))
		return train.Accuracy(b, x, y)
	}
	for _, tc := range []struct {
		name string
		add
		x, y, weights input // there are no weights if nil
		says          string
	}{
		{"a Build of another graph", elsewhere, zeros(2, 3), ints(0, 0), nil, "used for another graph"},
		{"one axis", accuracy, zeros(3), ints(0, 0), nil, "(…, V)"},
		{"another shape", accuracy, zeros(2, 3), ints(0, 0, 0), nil, "must be int of shape (2), got int of shape (3)"},
		{"float targets", accuracy, zeros(2, 3), zeros(2), nil, "must be int"},
		{"another graph", accuracy, zeros(2, 3), foreign, nil, "another graph"},
		{"targets of another shape", train.BinaryAccuracy, zeros(2, 3), zeros(3), nil, "binary accuracy: the targets must have shape (2, 3)"},
		{"weights of another shape", train.MeanAbsoluteError, zeros(2, 3), zeros(2, 3), zeros(3), "mean absolute error: the weights must have the shape"},
		{"target that isn't a class", accuracy, zeros(2, 3), ints(2, 3), nil, "target 3 at position 1 isn't one of 3 classes"},
		{"target above 1", train.BinaryAccuracy, zeros(2), floats(0, 2), nil, "target 1 is 2"},
		{"macro F1 of a scalar", macroF1, scalar, ints(0, 0), nil, "macro f1: the logits must have shape (…, V)"},
		{"macro F1 of a target that isn't a class", macroF1, zeros(2, 3), ints(2, 3), nil, "target 3 at position 1 isn't one of 3 classes"},
		{"metrics of a class that doesn't exist", class3, zeros(2, 3), ints(0, 1), nil, "average precision: the class must be from 0 to 2, got 3"},
		{"AUC of targets of another shape", train.AUC, zeros(2, 3), zeros(3), nil, "auc: the targets must have shape (2, 3)"},
		{"AUC of a target above 1", train.AUC, zeros(2), floats(0, 2), nil, "target 1 is 2"},
		{"a weight below 0", train.MeanAbsoluteError, zeros(2), zeros(2), floats(1, -1), "the weight of position 1 is -1"},
	} {
		g := newMetricGraph(t, tensor.Float64)
		var weights *G.Node
		if tc.weights != nil {
			weights = tc.weights(g)
		}
		m, err := tc.add(&layers.Build{}, tc.x(g), tc.y(g), weights)
		if err == nil {
			_, err = g.run(m.Sum)
		}
		wantError(t, tc.name, err, tc.says)
	}
}

// An accuracy has a sum and a count for each batch.
func ExampleAccuracy() {
	g := G.NewGraph()
	logits := G.NewMatrix(g, tensor.Float64, G.WithName("logits"), G.WithShape(3, 2),
		G.WithValue(tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{0.9, 0.1, 0.2, 0.8, 0.7, 0.3}))))
	targets := G.NewVector(g, tensor.Int, G.WithName("targets"), G.WithShape(3),
		G.WithValue(tensor.New(tensor.WithBacking([]int{0, 0, layers.Ignore}))))
	accuracy, err := train.Accuracy(&layers.Build{}, logits, targets)
	check(err)
	var right, counted G.Value
	G.Read(accuracy.Sum, &right)
	G.Read(accuracy.Count, &counted)
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	check(vm.RunAll())
	fmt.Println(accuracy.Name, right, "of", counted)
	// Output:
	// accuracy 1 of 2
}

// reference holds the values of scikit-learn.
type reference struct {
	F1 []struct {
		Classes int
		Logits  []float64
		Targets []int
		Want    float64
	}
	AUC []struct {
		Logits, Targets, Weights []float64
		Want, Weighted           float64
	}
	R2 []struct {
		Outputs, Targets, Weights []float64
		Want, Weighted            float64
	}
}

// value runs the graph once and returns the metric's value.
func (g *metricGraph) value(m train.Metric) float64 {
	g.Helper()
	if m.Value == nil {
		sums := must.Get(g.run(m.Sum, m.Count))(g)
		return sums[0] / sums[1]
	}
	return m.Value(must.Get(g.run(m.Sum))(g))
}

func TestMetricsLikeScikitLearn(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/metrics.json"))(t)
	var want reference
	must.Do(t, json.Unmarshal(text, &want))
	if len(want.F1) < 5 || len(want.AUC) < 5 || len(want.R2) < 5 {
		t.Fatalf("metrics.json has %d, %d and %d cases", len(want.F1), len(want.AUC), len(want.R2))
	}
	for _, dt := range metricDtypes {
		for i, c := range want.F1 {
			for j, target := range c.Targets {
				if target < 0 {
					c.Logits[j*c.Classes] = math.NaN()
				}
			}
			g := newMetricGraph(t, dt)
			m := must.Get(train.MacroF1(&layers.Build{}, g.floats(c.Logits, len(c.Targets), c.Classes), g.ints(c.Targets, len(c.Targets))))(g)
			if got := g.value(m); math.Abs(got-c.Want) > 1e-12 || m.Name != "macro_f1" {
				t.Errorf("case %d, %v: %s is %v, want macro_f1 %v", i, dt, m.Name, got, c.Want)
			}
		}
		for i, c := range want.AUC {
			n := len(c.Logits)
			g := newMetricGraph(t, dt)
			m := must.Get(train.AUC(&layers.Build{}, g.floats(c.Logits, n), g.floats(c.Targets, n), nil))(g)
			if got := g.value(m); math.Abs(got-c.Want) > 1e-3 || m.Name != "auc" {
				t.Errorf("case %d, %v: %s is %v, want auc %v", i, dt, m.Name, got, c.Want)
			}
			logits := slices.Clone(c.Logits)
			for j, w := range c.Weights {
				if w == 0 {
					logits[j] = math.NaN()
				}
			}
			g = newMetricGraph(t, dt)
			m = must.Get(train.AUC(&layers.Build{}, g.floats(logits, n), g.floats(c.Targets, n), g.floats(c.Weights, n)))(g)
			if got := g.value(m); math.Abs(got-c.Weighted) > 1e-3 {
				t.Errorf("case %d, %v, weighted: got %v, want %v", i, dt, got, c.Weighted)
			}
		}
		for i, c := range want.R2 {
			got, weighted := rSquared(t, dt, c.Outputs, c.Targets, nil), rSquared(t, dt, c.Outputs, c.Targets, c.Weights)
			if !(math.Abs(got-c.Want) < 1e-11 && math.Abs(weighted-c.Weighted) < 1e-11) {
				t.Errorf("case %d, %v: r2 is %v and weighted %v, want %v and %v", i, dt, got, weighted, c.Want, c.Weighted)
			}
		}
	}
}

// TestClassMetrics compares the metrics of a class with counts over all rows.
func TestClassMetrics(t *testing.T) {
	nan := math.NaN()
	rng := rand.New(rand.NewPCG(7, 8))
	const n, v, class = 300, 4, 2
	logits, targets := make([]float64, n*v), make([]int, n)
	var right, answers, total float64
	odds := make([]float64, n) // logarithms of the odds of the class
	for i := range n {
		targets[i] = rng.IntN(v+1) - 1
		row := logits[i*v:][:v]
		others := 0.0
		for c := range row {
			row[c] = math.Round(4*rng.NormFloat64()) / 4 // some are equal
			if c == targets[i] {
				row[c]++
			}
			if c != class {
				others += math.Exp(row[c])
			}
		}
		odds[i] = row[class] - math.Log(others)
		best := slices.Index(row, slices.Max(row))
		if targets[i] >= 0 && best == class {
			answers++
		}
		if targets[i] == class {
			total++
		}
		if targets[i] == class && best == class {
			right++
		}
	}
	average := 0.0
	for i := range n {
		if targets[i] != class {
			continue
		}
		above, rightAbove := 0.0, 0.0
		for j := range n {
			if targets[j] >= 0 && odds[j] >= odds[i] {
				above++
				if targets[j] == class {
					rightAbove++
				}
			}
		}
		average += rightAbove / above / total
	}
	for _, dt := range metricDtypes {
		g := newMetricGraph(t, dt)
		metrics := must.Get(train.ClassMetrics(&layers.Build{}, g.floats(logits, n, v), g.ints(targets, n), class))(t)
		for i, want := range []float64{right / answers, right / total, 2 * right / (answers + total), average} {
			m, tolerance := metrics[i], 1e-12
			if m.Name == "average_precision" {
				tolerance = 0.01 // for bins
			}
			if got := g.value(m); math.Abs(got-want) > tolerance || want < 0.2 || want > 0.9 {
				t.Errorf("%s is %v, want %v", m.Name, got, want)
			}
		}
	}
	for _, c := range []struct {
		name    string
		logits  []float64 // for 2 classes
		targets []int
		want    [4]float64
	}{
		{"all right", []float64{0, 9, 9, 0, 8, 0}, []int{1, 0, 0}, [4]float64{1, 1, 1, 1}},
		{"no answer of the class", []float64{3, 1, 9, 0}, []int{1, 0}, [4]float64{0, 0, 0, 1}},
		{"no target of the class", []float64{1, 3, 9, 0}, []int{0, 0}, [4]float64{0, 0, 0, 0}},
		{"nothing counts", []float64{1, 3}, []int{-1}, [4]float64{}},
		{"equal probabilities", []float64{1, 3, 1, 3}, []int{1, 0}, [4]float64{0.5, 1, 2. / 3, 0.5}},
		{"NaN", []float64{nan, 3, 1, 3}, []int{1, 0}, [4]float64{0, 0, 0, 0.5}},
		{"infinite", []float64{0, math.Inf(1), math.Inf(1), 0}, []int{1, 0}, [4]float64{1, 1, 1, 1}},
	} {
		g := newMetricGraph(t, tensor.Float32)
		for i, m := range must.Get(train.ClassMetrics(&layers.Build{}, g.floats(c.logits, len(c.targets), 2), g.ints(c.targets, len(c.targets)), 1))(t) {
			if got := g.value(m); math.Abs(got-c.want[i]) > 1e-15 {
				t.Errorf("%s: %s is %v, want %v", c.name, m.Name, got, c.want[i])
			}
		}
	}
}

// TestAUC compares AUC with all pairs of logits, of sizes from 1e-5 to 1e5.
func TestAUC(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		n := 200 + rng.IntN(200)
		x, y := make([]float64, n), make([]float64, n)
		for i := range n {
			y[i] = float64(rng.IntN(2))
			x[i] = (rng.NormFloat64() + y[i]/2) * math.Exp(23*(rng.Float64()-0.5))
		}
		won, pairs, close := 0.0, 0.0, 0.0
		for i := range n {
			for j := range n {
				if y[i] == 1 && y[j] == 0 {
					pairs++
					if x[i] > x[j] {
						won++
					}
					small, large := math.Abs(x[i]-x[j]), max(math.Abs(x[i]), math.Abs(x[j]))
					if small < large/128 || large < 0.001 || min(math.Abs(x[i]), math.Abs(x[j])) > 1000 && x[i]*x[j] > 0 {
						close++
					}
				}
			}
		}
		g := newMetricGraph(t, tensor.Float64)
		got := g.value(must.Get(train.AUC(&layers.Build{}, g.floats(x, n), g.floats(y, n), nil))(g))
		if off := math.Abs(got - won/pairs); off > close/pairs/2 || close/pairs > 0.1 {
			t.Errorf("%d logits: got %v, want %v within %v", n, got, won/pairs, close/pairs/2)
		}
	}
}

// rSquared returns the value of RSquared. Outputs whose weight is 0 become NaN.
func rSquared(t *testing.T, dt tensor.Dtype, outputs, targets, weights []float64) float64 {
	outputs = slices.Clone(outputs)
	for i, w := range weights {
		if w == 0 {
			outputs[i] = math.NaN()
		}
	}
	g, n := newMetricGraph(t, dt), len(targets)
	return g.value(must.Get(train.RSquared(&layers.Build{}, g.floats(outputs, n), g.floats(targets, n), g.floats(weights, n)))(g))
}

// TestMetricValues checks values at the edges of each metric.
func TestMetricValues(t *testing.T) {
	f1 := func(logits []float64, targets ...int) func(g *metricGraph) float64 { // for 3 classes
		return func(g *metricGraph) float64 {
			n := len(targets)
			return g.value(must.Get(train.MacroF1(&layers.Build{}, g.floats(logits, n, 3), g.ints(targets, n)))(g))
		}
	}
	auc := func(logits []float64, targets ...float64) func(g *metricGraph) float64 {
		return func(g *metricGraph) float64 {
			n := len(targets)
			return g.value(must.Get(train.AUC(&layers.Build{}, g.floats(logits, n), g.floats(targets, n), nil))(g))
		}
	}
	binary := func(logits, targets, weights []float64) func(g *metricGraph) float64 {
		return func(g *metricGraph) float64 {
			n := len(targets)
			return g.value(must.Get(train.BinaryAccuracy(&layers.Build{}, g.floats(logits, n), g.floats(targets, n), g.floats(weights, n)))(g))
		}
	}
	r2 := func(outputs, targets, weights []float64) func(g *metricGraph) float64 {
		return func(g *metricGraph) float64 { return rSquared(t, tensor.Float64, outputs, targets, weights) }
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name  string
		value func(g *metricGraph) float64
		want  float64
	}{
		{"macro F1: a class without answers and targets doesn't count", f1([]float64{1, 0, 0, 0, 1, 0}, 0, 1), 1},
		{"macro F1: a class without targets counts if it is an answer", f1([]float64{1, 0, 0, 0, 0, 1}, 0, 0), 1. / 3},
		{"macro F1: NaN is no answer", f1([]float64{1, 0, 0, nan, 1, 0}, 0, 1), 0.5},
		{"macro F1: a tie goes to the first class", f1([]float64{1, 1, 1}, 0), 1},
		{"macro F1: an ignored target", f1([]float64{1, 0, 0, nan, nan, nan}, 0, -1), 1},
		{"macro F1: nothing counts", f1([]float64{1, 0, 0}, -1), nan},
		{"binary accuracy: yes and no", binary([]float64{2, -1, 3, -4}, []float64{1, 0, 0, 1}, nil), 0.5},
		{"binary accuracy: a logit of 0 is a no", binary([]float64{0, 0, 0}, []float64{0, 1, 1}, nil), 1. / 3},
		{"binary accuracy: a target of 1/2 is a no", binary([]float64{1, -1, 1}, []float64{0.5, 0.5, 0.6}, nil), 2. / 3},
		{"binary accuracy: NaN is never right", binary([]float64{nan, nan}, []float64{0, 1}, nil), 0},
		{"binary accuracy: infinities", binary([]float64{inf, -inf, inf}, []float64{1, 0, 0}, nil), 2. / 3},
		{"binary accuracy: weights", binary([]float64{1, 1, -1}, []float64{1, 0, 0}, []float64{2, 3, 0.5}), 2.5 / 5.5},
		{"binary accuracy: a weight of 0 hides NaN", binary([]float64{1, nan, 1}, []float64{1, nan, 7}, []float64{2, 0, 0}), 1},
		{"AUC: all pairs in order", auc([]float64{-2, 0.01, 1, 1.01}, 0, 0, 1, 1), 1},
		{"AUC: all pairs wrong", auc([]float64{inf, 3, -3, -inf}, 0, 0, 1, 1), 0},
		{"AUC: equal logits", auc([]float64{2, 2, -1}, 1, 0, 0), 0.75},
		{"AUC: NaN loses", auc([]float64{nan, -inf, inf, nan}, 1, 0, 1, 0), 0.25},
		{"AUC: no target above 1/2", auc([]float64{1, 2}, 0, 0.5), nan},
		{"AUC: no other target", auc([]float64{1, 2}, 1, 0.6), nan},
		{"R²: all right", r2([]float64{1, 2, 4}, []float64{1, 2, 4}, nil), 1},
		{"R²: the mean", r2([]float64{2, 2, 2}, []float64{1, 2, 3}, nil), 0},
		{"R²: worse than the mean", r2([]float64{3, 2, 1}, []float64{1, 2, 3}, nil), -3},
		{"R²: a large mean", r2([]float64{1 << 50, 1<<50 + 1}, []float64{1 << 50, 1<<50 + 2}, nil), 0.5},
		{"R²: targets of very different sizes", r2([]float64{0, 1e90, 0}, []float64{1e-60, 1e90, -1e90}, nil), 0.5},
		{"R²: small targets", r2([]float64{1e-60, 1e-60}, []float64{1e-60, 3e-60}, nil), -1},
		{"R²: equal targets, wrong", r2([]float64{1, 2}, []float64{0.1, 0.1}, nil), 0},
		{"R²: equal targets, right", r2([]float64{0.1, 0.1}, []float64{0.1, 0.1}, nil), 1},
		{"R²: equal targets, weighted", r2([]float64{1, 2, 5}, []float64{0.1, 0.1, 7}, []float64{0.3, 0.7, 0}), 0},
		{"R²: one target", r2([]float64{1}, []float64{1}, nil), nan},
		{"R²: one target with a weight", r2([]float64{1, 2}, []float64{1, 2}, []float64{1, 0}), nan},
		{"R²: no target", r2([]float64{1, 2}, []float64{1, 2}, []float64{0, 0}), nan},
		{"R²: an output is NaN", r2([]float64{1, nan}, []float64{1, 2}, nil), nan},
		{"R²: a target is NaN", r2([]float64{1, 2}, []float64{1, nan}, nil), nan},
		{"R²: a target is infinite", r2([]float64{1, 2}, []float64{1, inf}, nil), nan},
		{"R²: an output is NaN, equal targets", r2([]float64{1, nan}, []float64{1, 1}, nil), nan},
	} {
		for _, dt := range metricDtypes {
			if got := c.value(newMetricGraph(t, dt)); math.Abs(got-c.want) > 1e-15 || (got != got) != (c.want != c.want) {
				t.Errorf("%s, %v: got %v, want %v", c.name, dt, got, c.want)
			}
		}
	}
}

// TestRSquaredParts checks that the value doesn't depend on how targets are divided into batches.
func TestRSquaredParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	n := 300
	outputs, targets := make([]float64, n), make([]float64, n)
	for i := range n {
		targets[i] = 1e9 + rng.NormFloat64()
		outputs[i] = targets[i] + 0.5
	}
	want := rSquared(t, tensor.Float64, outputs, targets, nil)
	if !(want > 0.6 && want < 0.9) { // 1 − 1/4, if the variance were 1
		t.Fatalf("r2 is %v, want about 0.75", want)
	}
	var m train.Metric
	var sums []float64
	for _, batch := range []int{1, 99, 200} {
		g := newMetricGraph(t, tensor.Float64)
		m = must.Get(train.RSquared(&layers.Build{}, g.floats(outputs[:batch], batch), g.floats(targets[:batch], batch), nil))(g)
		outputs, targets = outputs[batch:], targets[batch:]
		values := must.Get(g.run(m.Sum))(t)
		sums = append(sums, make([]float64, len(values)-len(sums))...)
		for i, x := range values {
			sums[i] += x
		}
	}
	if got := m.Value(sums); math.Abs(got-want) > 1e-12 {
		t.Errorf("three batches give %v, want %v", got, want)
	}
}
