package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers/gradcheck"
)

// graph is a Gorgonia graph that gives its inputs numbered names.
type graph struct {
	*testing.T
	*G.ExprGraph
	n       int
	classes *G.Node // targets of a loss
}

func newGraph(t *testing.T) *graph { return &graph{T: t, ExprGraph: G.NewGraph()} }

func (g *graph) input(v *tensor.Dense) *G.Node {
	g.n++
	return G.NewTensor(g.ExprGraph, v.Dtype(), v.Dims(), G.WithShape(v.Shape()...), G.WithName(fmt.Sprint("in", g.n)), G.WithValue(v))
}

// in returns a random float64 input.
func (g *graph) in(shape ...int) *G.Node {
	r := rand.New(rand.NewPCG(uint64(g.n), 1))
	x := make([]float64, tensor.Shape(shape).TotalSize())
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return g.input(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x)))
}

func (g *graph) ints(shape ...int) *G.Node {
	return g.input(tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Int)))
}

func (g *graph) in32(shape ...int) *G.Node {
	return g.input(tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Float32)))
}

func (g *graph) node(n *G.Node, err error) *G.Node {
	g.Helper()
	must.Do(g.T, err)
	return n
}

// mean returns the mean of a loss, without its count.
func mean(mean, _ *G.Node, err error) (*G.Node, error) { return mean, err }

// read runs the graph once and copies the float64 values of nodes.
func (g *graph) read(nodes ...*G.Node) [][]float64 {
	g.Helper()
	values := make([]G.Value, len(nodes))
	for i, n := range nodes {
		G.Read(n, &values[i])
	}
	vm := G.NewTapeMachine(g.ExprGraph)
	defer vm.Close()
	must.Do(g.T, vm.RunAll())
	out := make([][]float64, len(nodes))
	for i, v := range values {
		switch d := v.Data().(type) {
		case float64:
			out[i] = []float64{d}
		case []float64:
			out[i] = append(out[i], d...)
		}
	}
	return out
}

// TestMatMul compares products in every orientation with a plain sum, and their gradients with finite differences.
func TestMatMul(t *testing.T) {
	for _, lead := range [][]int{nil, {3}, {2, 3}, {1, 1}} {
		for flags := range 8 {
			transA, transB, skip := flags&1 != 0, flags&2 != 0, flags&4 != 0
			t.Run(fmt.Sprintf("%v, %t, %t, %t", tensor.Shape(lead), transA, transB, skip), func(t *testing.T) {
				const m, k, n, scale = 2, 4, 3, -0.5
				shape := func(swap bool, x, y int) []int {
					if swap {
						x, y = y, x
					}
					return append(append([]int(nil), lead...), x, y)
				}
				g := newGraph(t)
				a, b := g.in(shape(transA, m, k)...), g.in(shape(transB, k, n)...)
				c := g.node(ops.MatMul(&ops.Env{}, a, b, transA, transB, scale, skip))
				if want := shape(false, m, n); !c.Shape().Eq(tensor.Shape(want)) {
					t.Fatalf("the product has shape %v, want %v", c.Shape(), want)
				}
				element := func(x []float64, swap bool, q, rows, cols, i, j int) float64 {
					if swap {
						return x[q*rows*cols+j*rows+i]
					}
					return x[q*rows*cols+i*cols+j]
				}
				av, bv := a.Value().Data().([]float64), b.Value().Data().([]float64)
				got := g.read(c)[0]
				for r := range got {
					q, i, j := r/(m*n), r/n%m, r%n
					want := 0.0
					for p := range k {
						want += scale * element(av, transA, q, m, k, i, p) * element(bv, transB, q, k, n, p, j)
					}
					if math.Abs(got[r]-want) > 1e-14 {
						t.Fatalf("element %d is %v, want %v", r, got[r], want)
					}
				}
				must.Do(t, gradcheck.Expr(g.node(gradcheck.Project(c, 1)), a, b))
			})
		}
	}
}

// TestSecondDerivatives checks that a second derivative returns an error and doesn't panic.
func TestSecondDerivatives(t *testing.T) {
	g := newGraph(t)
	x := g.in(2, 3)
	cost := g.node(gradcheck.Project(g.node(ops.Activate(&ops.Env{}, x, ops.GELU)), 1))
	grads := must.Get(G.Grad(cost, x))(t)
	op, ok := grads[0].Op().(G.SDOp)
	if !ok {
		t.Fatalf("%T is not an SDOp", grads[0].Op())
	}
	if d := op.DiffWRT(2); len(d) != 2 || d[0] || d[1] {
		t.Errorf("a gradient's op has DiffWRT %v, want [false false]", d)
	}
	must.Refuse(op.SymDiff(nil, nil, nil))(t, "first order")
}

// TestLinearActivation compares a linear layer that includes a second product and its activation with separate ops, in
// values and gradients.
func TestLinearActivation(t *testing.T) {
	for act := ops.ReLU; act.Known(); act++ {
		for _, bias := range []bool{false, true} {
			t.Run(fmt.Sprint(act, bias), func(t *testing.T) {
				run := func(fused bool) [][]float64 {
					g := newGraph(t)
					x, w := g.in(2, 5, 3), g.in(4, 3)
					u, v := g.in(2, 5, 2), g.in(4, 2)
					wrt := G.Nodes{x, w, u, v}
					var b *G.Node
					if bias {
						b = g.in(4)
						wrt = append(wrt, b)
					}
					e, y := &ops.Env{}, (*G.Node)(nil)
					if fused {
						y = g.node(ops.LinearSum(e, x, w, b, u, v, 0.3, act))
					} else {
						second := g.node(ops.Scale(e, g.node(ops.Linear(e, u, v, nil, ops.Identity)), 0.3))
						y = g.node(ops.Activate(e, g.node(ops.Add(e, g.node(ops.Linear(e, x, w, b, ops.Identity)), second)), act))
					}
					cost := g.node(gradcheck.Project(y, 1))
					grads := must.Get(G.Grad(cost, wrt...))(t)
					return g.read(append(G.Nodes{y}, grads...)...)
				}
				ops.Near(t, "one op for all", run(true), run(false), 1e-13)
			})
		}
	}
}
