package layers_test

import (
	"math"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

func TestMain(m *testing.M) {
	testseed.KeepInMemory()
	debug.SetGCPercent(400) // collecting the garbage of tiny graphs takes as long as computing them
	m.Run()
}

// mean returns the Mean of a loss.
func mean(l layers.Loss, err error) (*G.Node, error) { return l.Mean, err }

// newParams returns an empty set of float64 parameters.
func newParams(t testing.TB) *layers.Params {
	return must.Get(layers.NewParams(tensor.Float64, 1))(t)
}

// random returns a float64 tensor with elements of about unit size.
func random(seed uint64, shape ...int) *tensor.Dense {
	r := rand.New(rand.NewPCG(seed, 7))
	values := make([]float64, tensor.Shape(shape).TotalSize())
	for i := range values {
		values[i] = r.NormFloat64() * 0.7
	}
	return dense(values, shape...)
}

// randomise gives every parameter random values, because biases of 0 could hide a mistake.
func randomise(p *layers.Params) {
	for i, q := range p.All() {
		copy(q.Value.Float64s(), random(uint64(100+i), q.Value.Shape()...).Float64s())
	}
}

// dense returns a tensor of the given shape, which may have axes of size 1. The argument values is the tensor's memory.
func dense[T any](values []T, shape ...int) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(values))
}

// as converts a float64 tensor to a dtype.
func as(dt tensor.Dtype, v *tensor.Dense) *tensor.Dense {
	if dt == tensor.Float64 {
		return v
	}
	values := make([]float32, v.Shape().TotalSize())
	for i, x := range v.Float64s() {
		values[i] = float32(x)
	}
	return dense(values, v.Shape()...)
}

// input returns a named input node with the value v.
func input(g *G.ExprGraph, name string, v *tensor.Dense) *G.Node {
	return G.NewTensor(g, v.Dtype(), v.Dims(), G.WithShape(v.Shape()...), G.WithName(name), G.WithValue(v))
}

// floats returns the elements of a value as float64, in order.
func floats(t testing.TB, v G.Value) []float64 {
	t.Helper()
	switch d := v.Data().(type) {
	case []float64:
		return append([]float64(nil), d...)
	case []float32:
		out := make([]float64, len(d))
		for i, x := range d {
			out[i] = float64(x)
		}
		return out
	case float64:
		return []float64{d}
	case float32:
		return []float64{float64(d)}
	}
	t.Fatalf("unexpected value %T", v.Data())
	return nil
}

// read runs a graph once and returns the elements of the given nodes.
func read(t testing.TB, nodes ...*G.Node) [][]float64 {
	t.Helper()
	out := must.Get(tryRead(t, nodes...))(t)
	return out
}

// tryRead is like read, but returns the run's error.
func tryRead(t testing.TB, nodes ...*G.Node) ([][]float64, error) {
	t.Helper()
	return runner(t, nodes...)()
}

// runner compiles a graph. The function that it returns runs the graph and returns the elements of the given nodes.
func runner(t testing.TB, nodes ...*G.Node) func() ([][]float64, error) {
	t.Helper()
	values := make([]G.Value, len(nodes))
	for i, n := range nodes {
		G.Read(n, &values[i])
	}
	vm := G.NewTapeMachine(nodes[0].Graph())
	t.Cleanup(func() { vm.Close() })
	return func() ([][]float64, error) {
		t.Helper()
		vm.Reset()
		if err := vm.RunAll(); err != nil {
			return nil, err
		}
		out := make([][]float64, len(nodes))
		for i, v := range values {
			out[i] = floats(t, v)
		}
		return out, nil
	}
}

// forwardWeights calls Forward of an attention layer. It also returns the captured weights.
func forwardWeights(a attention, b *layers.Build, q, k, v *G.Node, m layers.Mask) (out, weights *G.Node, err error) {
	b.CaptureWeights = true
	if out, err = a.Forward(b, q, k, v, m); err != nil {
		return nil, nil, err
	}
	captured := b.AttentionWeights()
	return out, captured[len(captured)-1].Weights, nil
}

type attention interface {
	Forward(b *layers.Build, query, key, value *G.Node, m layers.Mask) (*G.Node, error)
}

// scaledDotProduct returns the output of ScaledDotProductStages and the weights after dropout.
func scaledDotProduct(b *layers.Build, q, k, v *G.Node, o layers.AttentionOptions) (out, weights *G.Node, err error) {
	st, err := layers.ScaledDotProductStages(b, q, k, v, o)
	return st.Output, st.Dropped, err
}

// gradients returns the nodes of the gradients of cost.
func gradients(t testing.TB, cost *G.Node, wrt ...*G.Node) G.Nodes {
	t.Helper()
	return must.Get(G.Grad(cost, wrt...))(t)
}

// weigh returns the cost Σ wᵢyᵢ.
func weigh(t testing.TB, y, w *G.Node) *G.Node {
	t.Helper()
	return must.Get(G.Sum(must.Get(G.HadamardProd(y, w))(t)))(t)
}

// sameBits reports an error if two slices differ in a bit, or if an element isn't finite.
func sameBits(t testing.TB, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d elements, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) || math.IsNaN(got[i]) || math.IsInf(got[i], 0) {
			t.Errorf("%s: element %d is %v, want exactly %v", what, i, got[i], want[i])
			return
		}
	}
}

// near reports an error if an element of got differs from want by more than tol times the largest magnitude in want. If
// that magnitude is below 1, the limit is tol: some gradients are sums in which terms of about unit size cancel.
func near(t testing.TB, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d elements, want %d", what, len(got), len(want))
		return
	}
	largest := 1.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	for i := range got {
		if d := math.Abs(got[i] - want[i]); !(d <= tol*largest) {
			t.Errorf("%s: element %d is %v, want %v: the difference is %.3g, the limit is %.3g", what, i, got[i], want[i], d, tol*largest)
			return
		}
	}
}

// allZero reports whether every element is zero.
func allZero(x []float64) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// An errorCase is an error, and the parts that its text must contain.
type errorCase struct {
	name string
	err  error
	want []string
}

// wantErrors calls must.Fail for each case.
func wantErrors(t *testing.T, cases []errorCase) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { must.Fail(t, tc.err, tc.want...) })
	}
}
