package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// An elementwiseLoss is a loss whose outputs and targets have the same shape.
type elementwiseLoss func(b *layers.Build, outputs, targets, weights *G.Node) (layers.Loss, error)

// elementwiseLosses returns all elementwise losses. The argument delta is for HuberError.
func elementwiseLosses(delta float64) map[string]elementwiseLoss {
	return map[string]elementwiseLoss{
		"squared": layers.MeanSquaredError, "absolute": layers.MeanAbsoluteError, "binary": layers.BinaryCrossEntropy,
		"huber": func(b *layers.Build, outputs, targets, weights *G.Node) (layers.Loss, error) {
			return layers.HuberError(b, outputs, targets, weights, delta)
		},
	}
}

func TestGradientsOfElementwiseLosses(t *testing.T) {
	var cases []gradientCase
	for name, loss := range elementwiseLosses(0.3) {
		for _, shapes := range [][2][]int{
			{{5}, nil}, {{2, 3, 4}, nil}, {{1}, nil}, {{1, 1}, {1}}, {{5}, {5}}, {{2, 3, 4}, {2}}, {{2, 3, 4}, {2, 3}}, {{2, 1, 3, 2}, {2, 1, 3, 2}},
		} {
			build := func(c *bench) *G.Node {
				x := c.in("outputs", shapes[0]...)
				var targets, weights *G.Node
				if name == "binary" {
					targets = input(c.g, "targets", chances(5, shapes[0]...))
				} else {
					targets = c.in("targets", shapes[0]...)
				}
				if shapes[1] != nil {
					weights = input(c.g, "weights", anyWeights(6, shapes[1]...))
				}
				return c.node(mean(loss(c.b, x, targets, weights)))
			}
			cases = append(cases, gradientCase{fmt.Sprint(name, " of ", shapes[0], " weighted by ", shapes[1]), build})
			cases = append(cases, gradientCase{fmt.Sprint(name, " of ", shapes[0], " weighted by ", shapes[1], ", squared"), func(c *bench) *G.Node {
				return c.node(G.Square(build(c)))
			}})
		}
	}
	// Losses with the same inputs must not be merged into one node.
	cases = append(cases, gradientCase{"several losses", func(c *bench) *G.Node {
		x, y := c.in("outputs", 2, 3), c.in("targets", 2, 3)
		sum := c.node(mean(layers.MeanSquaredError(c.b, x, y, nil)))
		for _, loss := range []elementwiseLoss{layers.MeanAbsoluteError, elementwiseLosses(0.1)["huber"], elementwiseLosses(0.2)["huber"]} {
			sum = c.node(G.Add(sum, c.node(mean(loss(c.b, x, y, nil)))))
		}
		return sum
	}})
	checkGradients(t, cases)
}

// A weightedLoss is a loss over 4 positions with 3 numbers each. The tests below run for every such loss.
type weightedLoss func(b *layers.Build, g *G.ExprGraph, x, weights *G.Node) (*G.Node, error)

func weightedLosses() map[string]weightedLoss {
	losses := map[string]weightedLoss{}
	for _, o := range []layers.CrossEntropyOptions{{}, {LabelSmoothing: 0.1}, {ClassWeights: []float64{2, 1, 0.5}}} {
		losses[fmt.Sprintf("cross-entropy %v", o)] = func(b *layers.Build, g *G.ExprGraph, x, weights *G.Node) (*G.Node, error) {
			o.Weights = weights
			return mean(layers.CrossEntropy(b, x, input(g, "targets", dense([]int{2, 0, 1, 1}, 4)), o))
		}
	}
	for name, loss := range elementwiseLosses(0.5) {
		losses[name] = func(b *layers.Build, g *G.ExprGraph, x, weights *G.Node) (*G.Node, error) {
			return mean(loss(b, x, input(g, "targets", as(x.Dtype(), chances(9, 4, 3))), weights))
		}
	}
	return losses
}

// run returns the loss and its gradient with respect to x.
func (loss weightedLoss) run(t *testing.T, dt tensor.Dtype, x []float64, weights []float64) [][]float64 {
	t.Helper()
	g := G.NewGraph()
	xNode := input(g, "x", as(dt, dense(append([]float64(nil), x...), 4, 3)))
	var w *G.Node
	if weights != nil {
		w = input(g, "weights", as(dt, dense(weights, 4)))
	}
	l := must.Get(loss(&layers.Build{}, g, xNode, w))(t)
	return read(t, append(G.Nodes{l}, gradients(t, l, xNode)...)...)
}

var bothDtypes = []tensor.Dtype{tensor.Float64, tensor.Float32}

// TestLossesWithoutWeights checks that a loss without weights equals the loss with all weights 1, and with all weights
// 4.
func TestLossesWithoutWeights(t *testing.T) {
	x := random(1, 4, 3).Float64s()
	for name, loss := range weightedLosses() {
		want := loss.run(t, tensor.Float64, x, nil)
		for _, w := range []float64{1, 4} {
			for i, got := range loss.run(t, tensor.Float64, x, []float64{w, w, w, w}) {
				near(t, fmt.Sprintf("%s with weights of %v: value %d", name, w, i), got, want[i], 1e-15)
			}
		}
	}
}

// TestWeightZeroHides changes positions with weight 0 or an ignored target, also to NaN and infinity: no bit of the
// loss or of a gradient may change. The loss is the mean over the other positions.
func TestWeightZeroHides(t *testing.T) {
	weights := []float64{0.5, 0, 2, 0}
	losses := weightedLosses()
	for _, e := range []float64{0, 0.1, 1} {
		losses[fmt.Sprint("ignored targets, smoothed by ", e)] = func(b *layers.Build, g *G.ExprGraph, x, _ *G.Node) (*G.Node, error) {
			return mean(layers.CrossEntropy(b, x, input(g, "targets", dense([]int{2, layers.Ignore, 1, -100}, 4)), smoothed(e)))
		}
	}
	for name, loss := range losses {
		for _, dt := range bothDtypes {
			run := func(value float64) [][]float64 {
				x := random(1, 4, 3).Float64s()
				for i := range x {
					if weights[i/3] == 0 {
						x[i] = value
					}
				}
				return loss.run(t, dt, x, weights)
			}
			want := run(0)
			if d := want[1]; !allZero(d[3:6]) || !allZero(d[9:]) || allZero(d[:3]) || allZero(d[6:9]) {
				t.Errorf("%s of %v: the gradient is %v, want 0 exactly at positions 1 and 3", name, dt, d)
			}
			for _, value := range []float64{1, 1e30, math.NaN(), inf, -inf} {
				for i, got := range run(value) {
					sameBits(t, fmt.Sprintf("%s of %v with %v: value %d", name, dt, value, i), got, want[i])
				}
			}
		}
	}
}

// TestLossesOfWeightZero checks that losses and gradients are 0 if all weights are 0, even if all inputs are NaN.
func TestLossesOfWeightZero(t *testing.T) {
	x := make([]float64, 12)
	for i := range x {
		x[i] = math.NaN()
	}
	for name, loss := range weightedLosses() {
		for _, dt := range bothDtypes {
			for i, got := range loss.run(t, dt, x, make([]float64, 4)) {
				if !allZero(got) {
					t.Errorf("%s of %v: value %d is %v, want 0", name, dt, i, got)
				}
			}
		}
	}
}

// TestWeightsOfEachRun runs one graph with several sets of weights: a run doesn't depend on earlier runs.
func TestWeightsOfEachRun(t *testing.T) {
	x := random(1, 4, 3).Float64s()
	for name, loss := range weightedLosses() {
		g := G.NewGraph()
		xNode, w := input(g, "x", dense(x, 4, 3)), input(g, "weights", dense(make([]float64, 4), 4))
		l := must.Get(loss(&layers.Build{}, g, xNode, w))(t)
		again := runner(t, l, gradients(t, l, xNode)[0])
		for _, weights := range [][]float64{{1, 0, 2, 0}, {0, 3, 0, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}} {
			must.Do(t, G.Let(w, dense(weights, 4)))
			want := loss.run(t, tensor.Float64, x, weights)
			for i, got := range must.Get(again())(t) {
				sameBits(t, fmt.Sprintf("%s weighted by %v: value %d", name, weights, i), got, want[i])
			}
		}
	}
}

// TestUnusedLossesHaveNoGradient multiplies losses that are NaN by 0: the gradient is 0.
func TestUnusedLossesHaveNoGradient(t *testing.T) {
	for name, loss := range weightedLosses() {
		g := G.NewGraph()
		x := input(g, "x", dense([]float64{math.NaN(), 1, 2, inf, -inf, 0, 1, 2, 3, 4, 5, 6}, 4, 3))
		l := must.Get(loss(&layers.Build{}, g, x, nil))(t)
		nothing := G.NewScalar(g, tensor.Float64, G.WithName("nothing"), G.WithValue(0.0))
		if d := read(t, gradients(t, must.Get(G.Mul(l, nothing))(t), x)...)[0]; !allZero(d) {
			t.Errorf("%s: the gradient is %v, want 0", name, d)
		}
	}
}

// TestInvalidWeights checks that invalid weights are errors when the graph runs.
func TestInvalidWeights(t *testing.T) {
	for name, loss := range weightedLosses() {
		for _, bad := range []float64{-1, math.NaN(), inf, -inf} {
			g := G.NewGraph()
			l := must.Get(loss(&layers.Build{}, g, input(g, "x", random(1, 4, 3)), input(g, "weights", dense([]float64{1, 0, bad, 1}, 4))))(t)
			_, err := tryRead(t, l)
			must.Fail(t, err, map[bool]string{true: "error", false: "cross-entropy"}[name == "squared" || name == "absolute" || name == "huber"],
				"weight of position 2", fmt.Sprint(bad), "at least 0")
		}
	}
}

// TestPositionsLeftOutNeedNoTarget uses invalid targets at positions with weight 0.
func TestPositionsLeftOutNeedNoTarget(t *testing.T) {
	g := G.NewGraph()
	w := input(g, "weights", dense([]float64{1, 0}, 2))
	loss := must.Get(mean(layers.CrossEntropy(&layers.Build{}, input(g, "x", dense([]float64{0, 0, 1, 2}, 2, 2)),
		input(g, "classes", dense([]int{1, 7}, 2)), layers.CrossEntropyOptions{Weights: w})))(t)
	binary := must.Get(mean(layers.BinaryCrossEntropy(&layers.Build{}, input(g, "y", dense([]float64{0, 0, 1, 2}, 2, 2)),
		input(g, "chances", dense([]float64{1, 0.5, 7, math.NaN()}, 2, 2)), w)))(t)
	for i, got := range read(t, loss, binary) {
		near(t, fmt.Sprint("loss ", i), got, []float64{math.Ln2}, 1e-15)
	}
}

// TestElementwiseLosses compares losses and gradients with known values. Some logits are so large that their
// exponential overflows.
func TestElementwiseLosses(t *testing.T) {
	for _, tc := range []struct {
		loss                   string
		x, target, want, dx    float64
		tolerance, tolerance32 float64
	}{
		{"squared", 3, 1, 4, 4, 0, 0},
		{"squared", -1000, 1000, 4e6, -4000, 0, 0},
		{"absolute", 3, 1, 2, 1, 0, 0},
		{"absolute", 1, 3, 2, -1, 0, 0},
		{"absolute", 3, 3, 0, 0, 0, 0},
		{"huber", 3, 3, 0, 0, 0, 0},
		{"huber", 3.25, 3, 0.03125, 0.25, 0, 0},
		{"huber", 2.5, 3, 0.125, -0.5, 0, 0},
		{"huber", 5, 3, 0.875, 0.5, 0, 0},
		{"huber", -inf, 3, inf, -0.5, 0, 0},
		{"binary", 0, 1, math.Ln2, -0.5, 1e-16, 1e-7},
		{"binary", 0, 0, math.Ln2, 0.5, 1e-16, 1e-7},
		{"binary", 0, 0.25, math.Ln2, 0.25, 1e-16, 1e-7},
		{"binary", 2, 1, math.Log1p(math.Exp(-2)), -1 / (1 + math.Exp(2)), 1e-16, 1e-7},
		{"binary", 1000, 1, 0, 0, 0, 0},
		{"binary", -1000, 0, 0, 0, 0, 0},
		{"binary", 1000, 0, 1000, 1, 0, 0},
		{"binary", -1000, 1, 1000, -1, 0, 0},
		{"binary", 1000, 0.25, 750, 0.75, 0, 0},
		{"binary", 40, 1, math.Exp(-40), -math.Exp(-40), 1e-30, 1e-23}, // PyTorch returns 0 and 0 in float32
		{"binary", inf, 1, 0, 0, 0, 0},
		{"binary", -inf, 0, 0, 0, 0, 0},
		{"binary", inf, 0, inf, 1, 0, 0},
		{"binary", -inf, 1, inf, -1, 0, 0},
	} {
		for _, dt := range bothDtypes {
			g := G.NewGraph()
			x, target := input(g, "x", as(dt, dense([]float64{tc.x}, 1))), input(g, "t", as(dt, dense([]float64{tc.target}, 1)))
			loss := must.Get(mean(elementwiseLosses(0.5)[tc.loss](&layers.Build{}, x, target, nil)))(t)
			got := read(t, append(G.Nodes{loss}, gradients(t, loss, x)...)...)
			tol := tc.tolerance
			if dt == tensor.Float32 {
				tol = tc.tolerance32
			}
			for i, want := range []float64{tc.want, tc.dx} {
				if v := got[i][0]; v != want && !(math.Abs(v-want) <= tol) {
					t.Errorf("%s of %v and %v, %v: value %d is %v, want %v", tc.loss, tc.x, tc.target, dt, i, v, want)
				}
			}
		}
	}
}

func TestElementwiseLossErrors(t *testing.T) {
	g := G.NewGraph()
	n := 0
	operand := func(dt tensor.Dtype, shape ...int) *G.Node {
		n++
		return input(g, fmt.Sprint("in ", n), as(dt, chances(1, shape...)))
	}
	const f32, f64 = 32, 64
	sample := func(bits int, shape ...int) *G.Node {
		return operand(map[int]tensor.Dtype{f32: tensor.Float32, f64: tensor.Float64}[bits], shape...)
	}
	scalar := G.NewScalar(g, tensor.Float64, G.WithName("scalar"), G.WithValue(1.0))
	for name, loss := range elementwiseLosses(1) {
		for _, tc := range []struct {
			name                      string
			outputs, targets, weights *G.Node
			want                      []string
		}{
			{"int outputs", input(g, name+" ints", dense([]int{1, 2}, 2)), sample(f64, 2), nil, []string{"outputs", "float32 or float64", "int"}},
			{"targets' dtype", sample(f64, 2), sample(f32, 2), nil, []string{"targets", "float64", "float32"}},
			{"targets' shape", sample(f64, 2, 3), sample(f64, 3, 2), nil, []string{"targets", "(2, 3)", "(3, 2)"}},
			{"targets' rank", sample(f64, 2, 3), sample(f64, 6), nil, []string{"targets", "(2, 3)", "(6)"}},
			{"scalars", scalar, scalar, nil, []string{"outputs", "at least one axis", "scalar"}},
			{"weights' dtype", sample(f64, 2), sample(f64, 2), sample(f32, 2), []string{"weights", "float64", "float32"}},
			{"weights' shape", sample(f64, 2, 3), sample(f64, 2, 3), sample(f64, 3), []string{"weights", "(2, 3)", "first axes", "(3)"}},
			{"weights' rank", sample(f64, 2), sample(f64, 2), sample(f64, 2, 1), []string{"weights", "(2)", "(2, 1)"}},
			{"a scalar weight", sample(f64, 2), sample(f64, 2), scalar, []string{"weights", "(2)", "()"}},
			{"another graph", sample(f64, 2), sample(f64, 2), input(G.NewGraph(), "w", random(1, 2)), []string{"another graph"}},
		} {
			t.Run(name+" "+tc.name, func(t *testing.T) {
				must.Refuse(loss(&layers.Build{}, tc.outputs, tc.targets, tc.weights))(t, tc.want...)
			})
		}
	}
	for _, delta := range []float64{0, -1, math.NaN(), inf} {
		must.Refuse(layers.HuberError(&layers.Build{}, sample(f64, 2), sample(f64, 2), nil, delta))(t, "huber error", "delta", "above 0", fmt.Sprint(delta))
	}
	for _, bad := range []float64{-0.1, 1.1, math.NaN()} {
		g := G.NewGraph()
		loss := must.Get(mean(layers.BinaryCrossEntropy(&layers.Build{}, input(g, "x", random(1, 2)), input(g, "t", dense([]float64{1, bad}, 2)), nil)))(t)
		must.Refuse(tryRead(t, loss))(t, "binary cross-entropy", "target 1", fmt.Sprint(bad), "from 0 to 1")
	}
}

// Sequences of different lengths are padded to the longest. The padding has weight 0 and may hold any values.
func ExampleHuberError() {
	g := G.NewGraph()
	forecast := matrixOf(g, "forecast", 2, 1.0, 2, 3, 5, 7, 0) // (B, T) = (2, 3)
	truth := matrixOf(g, "truth", 2, 1, 2.5, 13, 5, math.NaN(), math.NaN())
	weights := matrixOf(g, "weights", 2, 1.0, 1, 1, 1, 0, 0)
	loss, err := layers.HuberError(&layers.Build{}, forecast, truth, weights, 1)
	check(err)
	fmt.Printf("(0 + 0.5²/2 + (10 − 0.5) + 0) / 4 = %v\n", evaluate(loss.Mean)[0])
	// Output: (0 + 0.5²/2 + (10 − 0.5) + 0) / 4 = 2.40625
}

// TestCounts compares each loss's Count with the number of targets that count, or with the sum of their weights.
func TestCounts(t *testing.T) {
	classes := []float64{2, 1, 0.5}
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		g, b, p := G.NewGraph(), &layers.Build{}, must.Get(layers.NewParams(dt, 1))(t)
		head := must.Get(layers.NewLinear(p, 3, 3, layers.LinearConfig{}))(t)
		x := input(g, "x", as(dt, chances(9, 4, 3)))
		weights := input(g, "weights", as(dt, dense([]float64{0.5, 3, 0, 1}, 4)))
		targets := input(g, "targets", dense([]int{2, 0, 1, layers.Ignore}, 4))
		cross := func(o layers.CrossEntropyOptions) (layers.Loss, error) {
			return layers.CrossEntropy(b, x, targets, o)
		}
		fused := func(composed bool, o layers.CrossEntropyOptions) (layers.Loss, error) {
			b.Composed = composed
			loss, _, err := layers.HeadCrossEntropy(b, x, head, 0, targets, o)
			return loss, err
		}
		type loss struct {
			layers.Loss
			error
		}
		of := func(l layers.Loss, err error) loss { return loss{l, err} }
		for name, tc := range map[string]struct {
			loss loss
			want float64
		}{
			"cross-entropy":               {of(cross(layers.CrossEntropyOptions{})), 3},
			"cross-entropy, smoothed":     {of(cross(layers.CrossEntropyOptions{LabelSmoothing: 0.1})), 3},
			"cross-entropy, weights":      {of(cross(layers.CrossEntropyOptions{Weights: weights})), 3.5},
			"cross-entropy, classes":      {of(cross(layers.CrossEntropyOptions{ClassWeights: classes})), 3.5},
			"cross-entropy, both":         {of(cross(layers.CrossEntropyOptions{Weights: weights, ClassWeights: classes})), 6.25},
			"head cross-entropy":          {of(fused(false, layers.CrossEntropyOptions{ClassWeights: classes})), 3.5},
			"head cross-entropy, logits":  {of(fused(true, layers.CrossEntropyOptions{ClassWeights: classes})), 3.5},
			"binary":                      {of(layers.BinaryCrossEntropy(b, x, x, nil)), 12},
			"squared":                     {of(layers.MeanSquaredError(b, x, x, weights)), 13.5},
			"squared, weights as targets": {of(layers.MeanSquaredError(b, weights, weights, weights)), 4.5},
			"absolute":                    {of(layers.MeanAbsoluteError(b, weights, weights, nil)), 4},
			"huber":                       {of(layers.HuberError(b, x, x, weights, 1)), 13.5},
		} {
			must.Do(t, tc.loss.error)
			if got := read(t, tc.loss.Count)[0]; got[0] != tc.want {
				t.Errorf("%v, %s: the Count is %v, want %v", dt, name, got[0], tc.want)
			}
		}
	}
}
