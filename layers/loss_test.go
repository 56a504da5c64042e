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

func smoothed(e float64) layers.CrossEntropyOptions {
	return layers.CrossEntropyOptions{LabelSmoothing: e}
}

func TestGradientsOfCrossEntropy(t *testing.T) {
	var cases []gradientCase
	for _, e := range []float64{0, 0.1, 1} {
		add := func(name string, build func(c *bench) *G.Node) {
			cases = append(cases, gradientCase{fmt.Sprintf("%s, smoothed by %v", name, e), build})
		}
		add("a sequence", func(c *bench) *G.Node {
			return c.node(mean(layers.CrossEntropy(&layers.Build{}, c.in("logits", 3, 4), c.ints("targets", []int{3, 0, 2}, 3), smoothed(e))))
		})
		add("a batch, some ignored", func(c *bench) *G.Node {
			targets := c.ints("targets", []int{3, layers.Ignore, 2, -7, 0, 0}, 2, 3)
			return c.node(mean(layers.CrossEntropy(&layers.Build{}, c.in("logits", 2, 3, 4), targets, smoothed(e))))
		})
		add("squared", func(c *bench) *G.Node {
			return c.node(G.Square(c.node(mean(layers.CrossEntropy(&layers.Build{}, c.in("logits", 2, 4), c.ints("targets", []int{1, 3}, 2), smoothed(e))))))
		})
		add("all ignored", func(c *bench) *G.Node {
			return c.node(mean(layers.CrossEntropy(&layers.Build{}, c.in("logits", 2, 4), c.ints("targets", []int{-1, -1}, 2), smoothed(e))))
		})
		add("one class", func(c *bench) *G.Node {
			return c.node(mean(layers.CrossEntropy(&layers.Build{}, c.in("logits", 2, 1), c.ints("targets", []int{0, 0}, 2), smoothed(e))))
		})
	}
	checkGradients(t, cases)
}

// chances returns a tensor of numbers between 0 and 1.
func chances(seed uint64, shape ...int) *tensor.Dense {
	v := random(seed, shape...)
	for i, x := range v.Float64s() {
		v.Float64s()[i] = 1 / (1 + math.Exp(-x))
	}
	return v
}

// anyWeights returns a tensor of weights. The first is 0.
func anyWeights(seed uint64, shape ...int) *tensor.Dense {
	v := chances(seed, shape...)
	v.Float64s()[0] = 0
	return v
}

func TestGradientsOfWeightedCrossEntropy(t *testing.T) {
	var cases []gradientCase
	for _, smoothing := range []float64{0, 0.1} {
		for _, classes := range [][]float64{nil, {0.5, 2, 1, 0}} {
			for _, weighted := range []bool{false, true} {
				cases = append(cases, gradientCase{fmt.Sprintf("classes %v, positions %t, smoothed by %v", classes, weighted, smoothing), func(c *bench) *G.Node {
					o := layers.CrossEntropyOptions{ClassWeights: classes, LabelSmoothing: smoothing}
					if weighted {
						o.Weights = input(c.g, "weights", anyWeights(6, 2, 3))
					}
					return c.node(G.Square(c.node(mean(layers.CrossEntropy(c.b, c.in("logits", 2, 3, 4), c.ints("targets", []int{3, 1, 2, -1, 0, 1}, 2, 3), o)))))
				}})
			}
		}
	}
	checkGradients(t, cases)
}

// lossOf returns a loss and its gradient with respect to the logits.
func lossOf(t *testing.T, dt tensor.Dtype, logits []float64, targets []int, o layers.CrossEntropyOptions) [][]float64 {
	t.Helper()
	g := G.NewGraph()
	x := input(g, "logits", as(dt, dense(append([]float64(nil), logits...), len(targets), len(logits)/len(targets))))
	loss := must.Get(mean(layers.CrossEntropy(&layers.Build{}, x, input(g, "targets", dense(targets, len(targets))), o)))(t)
	return read(t, append(G.Nodes{loss}, gradients(t, loss, x)...)...)
}

// TestCrossEntropyOfImpossibleClasses uses logits of −Inf. As in PyTorch, the loss is infinite if such a class has a
// share of the target. Otherwise the class doesn't change the loss. Gradients are finite.
func TestCrossEntropyOfImpossibleClasses(t *testing.T) {
	logits := []float64{0, -inf, 0}
	for _, tc := range []struct {
		target          int
		smoothing, loss float64
		gradient        []float64
	}{
		{0, 0, math.Ln2, []float64{-0.5, 0, 0.5}},
		{1, 0, inf, []float64{0.5, -1, 0.5}},
		{0, 0.3, inf, []float64{-0.3, -0.1, 0.4}},
		{0, 1, inf, []float64{0.5 - 1./3, -1. / 3, 0.5 - 1./3}},
		{1, 1, inf, []float64{0.5 - 1./3, -1. / 3, 0.5 - 1./3}},
	} {
		got := lossOf(t, tensor.Float64, logits, []int{tc.target}, smoothed(tc.smoothing))
		if got[0][0] != tc.loss && !(math.Abs(got[0][0]-tc.loss) < 1e-15) {
			t.Errorf("target %d smoothed by %v: the loss is %v, want %v", tc.target, tc.smoothing, got[0][0], tc.loss)
		}
		near(t, fmt.Sprintf("target %d smoothed by %v: gradient", tc.target, tc.smoothing), got[1], tc.gradient, 1e-15)
	}
}

func TestCrossEntropyWeightErrors(t *testing.T) {
	g := G.NewGraph()
	logits, targets := input(g, "logits", random(1, 2, 3)), input(g, "targets", dense([]int{0, 1}, 2))
	for _, tc := range []struct {
		name string
		o    layers.CrossEntropyOptions
		want []string
	}{
		{"too few classes", layers.CrossEntropyOptions{ClassWeights: []float64{1, 2}}, []string{"ClassWeights", "3 classes", "got 2"}},
		{"no classes", layers.CrossEntropyOptions{ClassWeights: []float64{}}, []string{"ClassWeights", "3 classes", "got 0"}},
		{"negative", layers.CrossEntropyOptions{ClassWeights: []float64{1, -2, 1}}, []string{"class 1", "-2", "at least 0"}},
		{"NaN", layers.CrossEntropyOptions{ClassWeights: []float64{1, 2, math.NaN()}}, []string{"class 2", "NaN"}},
		{"too large", layers.CrossEntropyOptions{ClassWeights: []float64{1e300, 2, 1}}, []string{"class 0", "1e+300", "finite"}},
		{"weights' dtype", layers.CrossEntropyOptions{Weights: targets}, []string{"weights", "float", "int"}},
		{"weights' shape", layers.CrossEntropyOptions{Weights: input(g, "w", random(1, 2, 3))}, []string{"weights", "(2)", "(2, 3)"}},
		{"another graph", layers.CrossEntropyOptions{Weights: input(G.NewGraph(), "w", random(1, 2))}, []string{"another graph"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			must.Refuse(layers.CrossEntropy(&layers.Build{}, logits, targets, tc.o))(t, append(tc.want, "cross-entropy")...)
		})
	}
}

// Label smoothing spreads a tenth of every target over both classes, so even a certain and correct prediction has a
// loss. The second target is ignored.
func ExampleCrossEntropy_labelSmoothing() {
	g := G.NewGraph()
	logits, targets := matrixOf(g, "logits", 2, 9.0, 0, 0, 0), arrayOf(g, "targets", 0, layers.Ignore)
	loss, err := layers.CrossEntropy(&layers.Build{}, logits, targets, layers.CrossEntropyOptions{LabelSmoothing: 0.1})
	check(err)
	fmt.Printf("%.4f nats\n", evaluate(loss.Mean)[0])
	// Output: 0.4501 nats
}
