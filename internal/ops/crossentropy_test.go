package ops_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

func TestSmoothCrossEntropyErrors(t *testing.T) {
	g := newGraph(t)
	for _, smoothing := range []float64{-1e-9, 1.01, math.NaN(), math.Inf(1)} {
		_, _, err := ops.CrossEntropy(&ops.Env{}, g.in(3, 4), g.ints(3), ops.CrossEntropyOptions{LabelSmoothing: smoothing})
		if want := fmt.Sprintf("cross-entropy: LabelSmoothing must be from 0 to 1, got %v", smoothing); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestSmoothingTellsLossesApart builds losses of the same input with different smoothing: no two may be the same node.
func TestSmoothingTellsLossesApart(t *testing.T) {
	g := newGraph(t)
	x, targets := g.in(2, 3), g.ints(2)
	nodes := map[*G.Node]float64{}
	for _, smoothing := range []float64{0, 1e-9, 0.1, 1} {
		n := g.node(mean(ops.CrossEntropy(&ops.Env{}, x, targets, ops.CrossEntropyOptions{LabelSmoothing: smoothing})))
		if other, ok := nodes[n]; ok {
			t.Errorf("smoothing %v and %v give the same node", smoothing, other)
		}
		nodes[n] = smoothing
	}
	if a, b := g.node(mean(ops.CrossEntropy(&ops.Env{}, x, targets, ops.CrossEntropyOptions{}))), g.node(mean(ops.CrossEntropy(&ops.Env{}, x, targets, ops.CrossEntropyOptions{}))); a != b {
		t.Error("no smoothing and a smoothing of 0 give different nodes")
	}
}

// TestUnusedLossHasNoGradient multiplies a loss by 0: the gradient is 0, whatever the logits hold.
func TestUnusedLossHasNoGradient(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, smoothing := range []float64{0, 0.1, 1} {
		g := newGraph(t)
		x := g.input(tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float64{nan, 1, 2, inf, -inf, 0})))
		loss := g.node(mean(ops.CrossEntropy(&ops.Env{}, x, g.ints(2), ops.CrossEntropyOptions{LabelSmoothing: smoothing})))
		nothing := G.NewScalar(g.ExprGraph, tensor.Float64, G.WithName("nothing"), G.WithValue(0.0))
		grads, err := G.Grad(G.Must(G.Mul(loss, nothing)), x)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range g.read(grads[0])[0] {
			if d != 0 {
				t.Errorf("smoothing %v: element %d of the gradient is %v, want 0", smoothing, i, d)
			}
		}
	}
}
