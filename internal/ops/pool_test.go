package ops_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
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
		pooling ops.Pooling
		spans   [][2]int // the rows of each mean
	}{
		{[]int{2, 3, 4}, nil, ops.MeanPooling, [][2]int{{0, 3}, {0, 3}}},
		{[]int{2, 3, 4}, nil, ops.LastPooling, [][2]int{{2, 3}, {2, 3}}},
		{[]int{3, 3, 4}, []int{0, 3, 2}, ops.MeanPooling, [][2]int{{}, {0, 3}, {0, 2}}},
		{[]int{3, 3, 4}, []int{0, 3, 2}, ops.FirstPooling, [][2]int{{}, {0, 1}, {0, 1}}},
		{[]int{3, 3, 4}, []int{0, 3, 2}, ops.LastPooling, [][2]int{{}, {2, 3}, {1, 2}}},
		{[]int{3, 4}, []int{2}, ops.MeanPooling, [][2]int{{0, 2}}},
		{[]int{3, 4}, nil, ops.FirstPooling, [][2]int{{0, 1}}},
		{[]int{1, 1, 1}, []int{1}, ops.LastPooling, [][2]int{{0, 1}}},
		{[]int{1, 1}, nil, ops.FirstPooling, [][2]int{{0, 1}}},
	} {
		t.Run(fmt.Sprint(tensor.Shape(tc.shape), tc.lengths, tc.pooling), func(t *testing.T) {
			g := newGraph(t)
			x := g.in(tc.shape...)
			var lengths *G.Node
			if tc.lengths != nil {
				lengths = g.lengths(tc.lengths...)
			}
			y := g.node(ops.Pool(&ops.Env{}, x, lengths, tc.pooling))
			rows, width := tc.shape[len(tc.shape)-2], tc.shape[len(tc.shape)-1]
			if want := (tensor.Shape{len(tc.spans), width}); fmt.Sprint(y.Shape()) != fmt.Sprint(want) {
				t.Fatalf("shape %v, want %v", y.Shape(), want)
			}
			values := x.Value().Data().([]float64)
			got := g.read(y)[0]
			for i := range got {
				want := 0.0
				s := tc.spans[i/width]
				for r := s[0]; r < s[1]; r++ {
					want += values[(i/width*rows+r)*width+i%width] / float64(s[1]-s[0])
				}
				if math.Abs(got[i]-want) > 1e-15 {
					t.Errorf("element %d is %v, want %v", i, got[i], want)
				}
			}
			must.Do(t, gradcheck.Expr(g.node(gradcheck.Project(y, 1)), x))
		})
	}
}

// TestNormalize divides rows by their lengths: rows of any size, whose squares may overflow or vanish, and a row of
// zeros. For these rows, the gradient is checked by its formula too, because finite differences can't.
func TestNormalize(t *testing.T) {
	g := newGraph(t)
	x := g.in(2, 3, 4)
	must.Do(t, gradcheck.Expr(g.node(gradcheck.Project(g.node(ops.Normalize(&ops.Env{}, x)), 1)), x))
	for _, size := range []float64{1, 1e200, 1e-200, 0} {
		values := []float64{3 * size, -4 * size}
		g := newGraph(t)
		x, w := g.input(tensor.New(tensor.WithShape(1, 2), tensor.WithBacking(values))), g.in(1, 2)
		y := g.node(ops.Normalize(&ops.Env{}, x))
		grads := must.Get(G.Grad(g.node(G.Sum(g.node(G.HadamardProd(y, w)))), x))(t)
		got, weights := g.read(y, grads[0]), w.Value().Data().([]float64)
		want := [][]float64{{0.6, -0.8}, nil}
		dot := 0.6*weights[0] - 0.8*weights[1]
		want[1] = []float64{(weights[0] - 0.6*dot) / (5 * size), (weights[1] + 0.8*dot) / (5 * size)}
		if size == 0 {
			want = [][]float64{{0, 0}, {0, 0}}
		}
		for i := range want {
			for j, v := range want[i] {
				if !(math.Abs(got[i][j]-v) <= 1e-14*math.Abs(v)) {
					t.Errorf("size %v: element %d of the result or its gradient (%d) is %v, want %v", size, j, i, got[i][j], v)
				}
			}
		}
	}
}
