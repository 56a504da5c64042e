package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers/gradcheck"
)

// graph is a Gorgonia graph that gives its inputs numbered names.
type graph struct {
	*testing.T
	*G.ExprGraph
	n int
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
	if err != nil {
		g.Fatal(err)
	}
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
	if err := vm.RunAll(); err != nil {
		g.Fatal(err)
	}
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
				if err := gradcheck.Expr(g.node(gradcheck.Project(c, 1)), a, b); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestEqualNodesAreOne builds the same expressions twice in one graph, which gives one node. Ops that keep state, or
// that compute several outputs, must still give the right values.
func TestEqualNodesAreOne(t *testing.T) {
	for name, build := range map[string]func(g *graph, x, w *G.Node) (*G.Node, error){
		"layer norm": func(_ *graph, x, w *G.Node) (*G.Node, error) { return ops.LayerNorm(&ops.Env{}, x, w, w, 1e-5) },
		"softmax": func(_ *graph, x, _ *G.Node) (*G.Node, error) {
			return ops.Softmax(&ops.Env{}, "", x, ops.Mask{Causal: true})
		},
		"add":  func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Add(&ops.Env{}, x, x) },
		"gelu": func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Activate(&ops.Env{}, x, ops.GELU) },
		"matmul": func(_ *graph, x, _ *G.Node) (*G.Node, error) {
			return ops.MatMul(&ops.Env{}, x, x, false, true, 1, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t)
			x, w := g.in(3, 3), g.in(3)
			a, b := g.node(build(g, x, w)), g.node(build(g, x, w))
			cost := G.Must(G.Add(g.node(gradcheck.Project(a, 1)), g.node(gradcheck.Project(b, 2))))
			if err := gradcheck.Expr(cost, x, w); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("cross-entropy", func(t *testing.T) {
		g := newGraph(t)
		x, targets := g.in(2, 3), g.ints(2)
		a, b := g.node(mean(ops.CrossEntropy(&ops.Env{}, x, targets, ops.CrossEntropyOptions{}))), g.node(mean(ops.CrossEntropy(&ops.Env{}, x, targets, ops.CrossEntropyOptions{})))
		if err := gradcheck.Expr(G.Must(G.Add(a, b)), x); err != nil {
			t.Error(err)
		}
	})
}

// TestAttributesTellNodesApart builds ops with different attributes on the same input. If an op's name omitted an
// attribute, two of these ops would be one node.
func TestAttributesTellNodesApart(t *testing.T) {
	g := newGraph(t)
	x := g.in(4, 4)
	w := g.in(4)
	nodes := map[*G.Node]string{}
	add := func(name string, n *G.Node, err error) {
		n = g.node(n, err)
		if other, ok := nodes[n]; ok {
			t.Errorf("%s and %s are the same node", name, other)
		}
		nodes[n] = name
	}
	for a := ops.ReLU; a.Known(); a++ {
		n, err := ops.Activate(&ops.Env{}, x, a)
		add(a.String(), n, err)
	}
	for i, m := range []ops.Mask{{}, {Causal: true}, {Bias: x}, {KeyLengths: g.ints(1)}} {
		n, err := ops.Softmax(&ops.Env{}, "", x, m)
		add(fmt.Sprint("softmax ", i), n, err)
	}
	for i := range 8 {
		n, err := ops.MatMul(&ops.Env{}, x, x, i&1 != 0, i&2 != 0, 1, i&4 != 0)
		add(fmt.Sprint("matmul ", i), n, err)
	}
	n, err := ops.MatMul(&ops.Env{}, x, x, false, false, 1.0000001, false)
	add("matmul scaled", n, err)
	for _, eps := range []float64{1e-5, 1e-6} {
		n, err := ops.LayerNorm(&ops.Env{}, x, w, nil, eps)
		add(fmt.Sprint("norm ", eps), n, err)
	}
	for seed := range uint64(2) {
		e := &ops.Env{Training: true, Seed: seed}
		for stream := range 2 {
			for p := range 2 {
				n, err := ops.Dropout(e, x, 0.1+0.1*float64(p))
				add(fmt.Sprint("dropout ", p, seed, stream), n, err)
			}
		}
	}
	n, err = ops.SplitHeads(&ops.Env{}, x, 2)
	add("2 heads", n, err)
	n, err = ops.SplitHeads(&ops.Env{}, x, 4)
	add("4 heads", n, err)
	n, err = ops.AddRows(&ops.Env{}, x, x)
	add("rows", n, err)
	n, err = ops.AddFirstRow(&ops.Env{}, x, x)
	add("first row", n, err)
	n, err = ops.AddConstantRows(&ops.Env{}, x, make([]float64, 16), "a")
	add("rows a", n, err)
	n, err = ops.AddConstantRows(&ops.Env{}, x, make([]float64, 16), "b")
	add("rows b", n, err)
}

// TestSecondDerivatives checks that a second derivative returns an error and doesn't panic.
func TestSecondDerivatives(t *testing.T) {
	g := newGraph(t)
	x := g.in(2, 3)
	cost := g.node(gradcheck.Project(g.node(ops.Activate(&ops.Env{}, x, ops.GELU)), 1))
	grads, err := G.Grad(cost, x)
	if err != nil {
		t.Fatal(err)
	}
	op, ok := grads[0].Op().(G.SDOp)
	if !ok {
		t.Fatalf("%T is not an SDOp", grads[0].Op())
	}
	if d := op.DiffWRT(2); len(d) != 2 || d[0] || d[1] {
		t.Errorf("a gradient's op has DiffWRT %v, want [false false]", d)
	}
	if _, err := op.SymDiff(nil, nil, nil); err == nil || !strings.Contains(err.Error(), "first order") {
		t.Errorf("got %v, want an error about first order", err)
	}
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
					grads, err := G.Grad(cost, wrt...)
					if err != nil {
						t.Fatal(err)
					}
					return g.read(append(G.Nodes{y}, grads...)...)
				}
				fused, composed := run(true), run(false)
				for i := range composed {
					for j := range composed[i] {
						if math.Abs(fused[i][j]-composed[i][j]) > 1e-13 {
							t.Fatalf("element %d of output %d is %v for one op, and %v for separate ops", j, i, fused[i][j], composed[i][j])
						}
					}
				}
			})
		}
	}
}

// TestErrors passes invalid arguments. Each error must name the op.
func TestErrors(t *testing.T) {
	g := newGraph(t)
	for name, tc := range map[string]struct {
		make func() (*G.Node, error)
		want string
	}{
		"activation unknown": {func() (*G.Node, error) { return ops.Activate(&ops.Env{}, g.in(2), 9) }, "activation 9"},
		"add shapes":         {func() (*G.Node, error) { return ops.Add(&ops.Env{}, g.in(2, 3), g.in(3, 2)) }, "(2, 3), got (3, 2)"},
		"add dtypes":         {func() (*G.Node, error) { return ops.Add(&ops.Env{}, g.in(2), g.in32(2)) }, "float64, got float32"},
		"rows shapes":        {func() (*G.Node, error) { return ops.AddRows(&ops.Env{}, g.in(3, 4), g.in(3, 5)) }, "(3, 4) and (3, 5)"},
		"rows too few":       {func() (*G.Node, error) { return ops.AddRows(&ops.Env{}, g.in(3, 4), g.in(2, 4)) }, "3 positions is longer than the table of 2"},
		"first row":          {func() (*G.Node, error) { return ops.AddFirstRow(&ops.Env{}, g.in(3, 4), g.in(3, 5)) }, "(3, 4) and (3, 5)"},
		"constant rows":      {func() (*G.Node, error) { return ops.AddConstantRows(&ops.Env{}, g.in(3, 4), nil, "") }, "got (3, 4) and 0 elements"},
		"cross-entropy": {func() (*G.Node, error) {
			return mean(ops.CrossEntropy(&ops.Env{}, g.in(3, 4), g.ints(4), ops.CrossEntropyOptions{}))
		}, "shape (3), got int of shape (4)"},
		"dropout":             {func() (*G.Node, error) { return ops.Dropout(&ops.Env{}, g.in(3), 1) }, "below 1, got 1"},
		"embedding":           {func() (*G.Node, error) { return ops.Embedding(&ops.Env{}, g.in(3), g.ints(4)) }, "(V, D)"},
		"embedding of floats": {func() (*G.Node, error) { return ops.Embedding(&ops.Env{}, g.in(3, 2), g.in(4)) }, "got (3, 2), and ids of shape (4) and dtype float64"},
		"split":               {func() (*G.Node, error) { return ops.SplitHeads(&ops.Env{}, g.in(2, 3, 5), 2) }, "multiple of 2 heads, got (2, 3, 5)"},
		"split heads of 0":    {func() (*G.Node, error) { return ops.SplitHeads(&ops.Env{}, g.in(2, 3, 5), 0) }, "0 heads"},
		"merge":               {func() (*G.Node, error) { return ops.MergeHeads(&ops.Env{}, g.in(2, 3, 5), true) }, "(B, H, T, K)"},
		"merge a batch":       {func() (*G.Node, error) { return ops.MergeHeads(&ops.Env{}, g.in(2, 3, 5, 2), false) }, "(2, 3, 5, 2)"},
		"linear":              {func() (*G.Node, error) { return ops.Linear(&ops.Env{}, g.in(2, 3), g.in(4, 2), nil, ops.Identity) }, "(2, 3) and (4, 2)"},
		"linear bias":         {func() (*G.Node, error) { return ops.Linear(&ops.Env{}, g.in(2, 3), g.in(4, 3), g.in(3), ops.Identity) }, "(4), got (3)"},
		"linear second": {func() (*G.Node, error) {
			return ops.LinearSum(&ops.Env{}, g.in(2, 3), g.in(4, 3), nil, g.in(3, 2), g.in(4, 2), 1, ops.Identity)
		}, "(2, 2), got (3, 2)"},
		"linear activation": {func() (*G.Node, error) { return ops.Linear(&ops.Env{}, g.in(2, 3), g.in(4, 3), nil, 7) }, "no activation 7"},
		"matmul inner":      {func() (*G.Node, error) { return ops.MatMul(&ops.Env{}, g.in(2, 3), g.in(2, 3), false, false, 1, false) }, "(2, 3) and (2, 3)"},
		"matmul outer": {func() (*G.Node, error) {
			return ops.MatMul(&ops.Env{}, g.in(2, 2, 3), g.in(1, 3, 2), false, false, 1, false)
		}, "(2, 2, 3) and (1, 3, 2)"},
		"matmul rank":     {func() (*G.Node, error) { return ops.MatMul(&ops.Env{}, g.in(3), g.in(3), false, false, 1, false) }, "(3) and (3)"},
		"norm":            {func() (*G.Node, error) { return ops.LayerNorm(&ops.Env{}, g.in(2, 3), g.in(2), nil, 1) }, "gamma must have shape (3), got (2)"},
		"softmax rank":    {func() (*G.Node, error) { return ops.Softmax(&ops.Env{}, "", g.in(3), ops.Mask{}) }, "got (3)"},
		"softmax allow":   {func() (*G.Node, error) { return ops.Softmax(&ops.Env{}, "", g.in(3, 3), ops.Mask{Allow: g.in(3, 3)}) }, "true means attend"},
		"softmax lengths": {func() (*G.Node, error) { return ops.Softmax(&ops.Env{}, "", g.in(3, 3), ops.Mask{KeyLengths: g.in(1)}) }, "int, got float64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.make()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), ": ") {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
