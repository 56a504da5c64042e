package ops_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers/gradcheck"
)

func (g *graph) lengths(n ...int) *G.Node {
	return g.input(tensor.New(tensor.WithShape(len(n)), tensor.WithBacking(n)))
}

func TestPool(t *testing.T) {
	for _, tc := range []struct {
		shape   []int
		lengths []int // nil for none
		limit   int
		counts  []int
	}{
		{[]int{2, 3, 4}, nil, 9, []int{3, 3}},
		{[]int{2, 3, 4}, nil, 2, []int{2, 2}},
		{[]int{3, 3, 4}, []int{0, 3, 2}, math.MaxInt, []int{0, 3, 2}},
		{[]int{3, 3, 4}, []int{0, 3, 2}, 1, []int{0, 1, 1}},
		{[]int{3, 4}, []int{2}, 9, []int{2}},
		{[]int{3, 4}, nil, 1, []int{1}},
		{[]int{1, 1, 1}, []int{1}, 1, []int{1}},
		{[]int{1, 1}, nil, 1, []int{1}},
	} {
		t.Run(fmt.Sprint(tensor.Shape(tc.shape), tc.lengths, tc.limit), func(t *testing.T) {
			g := newGraph(t)
			x := g.in(tc.shape...)
			var lengths *G.Node
			if tc.lengths != nil {
				lengths = g.lengths(tc.lengths...)
			}
			y := g.node(ops.Pool(&ops.Env{}, x, lengths, tc.limit))
			rows, width := tc.shape[len(tc.shape)-2], tc.shape[len(tc.shape)-1]
			if want := (tensor.Shape{len(tc.counts), width}); fmt.Sprint(y.Shape()) != fmt.Sprint(want) {
				t.Fatalf("shape %v, want %v", y.Shape(), want)
			}
			values := x.Value().Data().([]float64)
			got := g.read(y)[0]
			for i := range got {
				want := 0.0
				for r := range tc.counts[i/width] {
					want += values[(i/width*rows+r)*width+i%width] / float64(tc.counts[i/width])
				}
				if math.Abs(got[i]-want) > 1e-15 {
					t.Errorf("element %d is %v, want %v", i, got[i], want)
				}
			}
			if err := gradcheck.Expr(g.node(gradcheck.Project(y, 1)), x); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPoolLengthsAreChecked(t *testing.T) {
	for _, n := range []int{-1, 4} {
		g := newGraph(t)
		g.node(ops.Pool(&ops.Env{}, g.in(2, 3, 4), g.lengths(1, n), 9))
		vm := G.NewTapeMachine(g.ExprGraph)
		defer vm.Close()
		if err := vm.RunAll(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("length %d of batch element 1 isn't between 0 and the 3 positions", n)) {
			t.Errorf("length %d: got the error %v, want one about the length", n, err)
		}
	}
}

func TestScale(t *testing.T) {
	g := newGraph(t)
	x := g.in(2, 3)
	y := g.node(ops.Scale(&ops.Env{}, x, -2.5))
	got, values := g.read(y)[0], x.Value().Data().([]float64)
	for i := range got {
		if got[i] != -2.5*values[i] {
			t.Errorf("element %d is %v, want %v", i, got[i], -2.5*values[i])
		}
	}
	if err := gradcheck.Expr(g.node(gradcheck.Project(y, 1)), x); err != nil {
		t.Error(err)
	}
}

// TestPoolAndScaleNodesApart checks that ops with different attributes are different nodes, and that equal ops are one
// node.
func TestPoolAndScaleNodesApart(t *testing.T) {
	g := newGraph(t)
	x := g.in(4, 4)
	nodes := G.Nodes{
		g.node(ops.Pool(&ops.Env{}, x, nil, 1)), g.node(ops.Pool(&ops.Env{}, x, nil, 2)), g.node(ops.Pool(&ops.Env{}, x, g.lengths(2), 1)),
		g.node(ops.Scale(&ops.Env{}, x, 1)), g.node(ops.Scale(&ops.Env{}, x, 1.0000001)),
	}
	for i, n := range nodes {
		if slices.Contains(nodes[:i], n) {
			t.Errorf("node %d equals an earlier one", i)
		}
	}
	if n := g.node(ops.Pool(&ops.Env{}, x, nil, 2)); n != nodes[1] {
		t.Error("equal expressions give two nodes")
	}
}

func TestPoolAndScaleErrors(t *testing.T) {
	g := newGraph(t)
	for name, tc := range map[string]struct {
		make func() (*G.Node, error)
		want string
	}{
		"ints to pool":         {func() (*G.Node, error) { return ops.Pool(&ops.Env{}, g.ints(2, 3), nil, 1) }, "float32 or float64"},
		"pool rank":            {func() (*G.Node, error) { return ops.Pool(&ops.Env{}, g.in(3), nil, 1) }, "(B, T, D) or (T, D), got (3)"},
		"no positions to pool": {func() (*G.Node, error) { return ops.Pool(&ops.Env{}, g.in(2, 3), nil, 0) }, "the number of positions must be at least 1, got 0"},
		"pool lengths":         {func() (*G.Node, error) { return ops.Pool(&ops.Env{}, g.in(2, 3, 4), g.ints(3), 1) }, "lengths must have shape (2), got (3)"},
		"pool lengths' dtype":  {func() (*G.Node, error) { return ops.Pool(&ops.Env{}, g.in(2, 3, 4), g.in(2), 1) }, "lengths must be int, got float64"},
		"ints to scale":        {func() (*G.Node, error) { return ops.Scale(&ops.Env{}, g.ints(2), 1) }, "float32 or float64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.make()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), ": ") {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
