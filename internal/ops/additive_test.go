package ops_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers/gradcheck"
)

// TestAdditiveScores compares the scores with the formula, and the gradients with finite differences, at every rank.
func TestAdditiveScores(t *testing.T) {
	for _, lead := range [][]int{nil, {3}, {2, 3}, {1, 1}} {
		for _, size := range [][3]int{{2, 4, 3}, {1, 1, 1}, {3, 1, 2}} {
			for _, scaled := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, %v, scale %t", tensor.Shape(lead), size, scaled), func(t *testing.T) {
					queries, keys, width := size[0], size[1], size[2]
					shape := func(length, width int) []int { return append(append([]int(nil), lead...), length, width) }
					g := newGraph(t)
					q, k := g.in(shape(queries, width)...), g.in(shape(keys, width)...)
					wrt := G.Nodes{q, k}
					var v *G.Node
					if scaled {
						v = g.in(width)
						wrt = append(wrt, v)
					}
					e := g.node(ops.AdditiveScores(&ops.Env{}, q, k, v))
					if want := shape(queries, keys); !e.Shape().Eq(tensor.Shape(want)) {
						t.Fatalf("the scores have shape %v, want %v", e.Shape(), want)
					}
					element := func(n *G.Node, i int) float64 { return n.Value().(tensor.Tensor).Data().([]float64)[i] }
					for index, got := range g.read(e)[0] {
						row, key := index/keys, index/(queries*keys)*keys+index%keys
						want := 0.0
						for f := range width {
							x := math.Tanh(element(q, row*width+f) + element(k, key*width+f))
							if scaled {
								x *= element(v, f)
							}
							want += x
						}
						if math.Abs(got-want) > 1e-14 {
							t.Errorf("score %d is %v, want %v", index, got, want)
						}
					}
					if err := gradcheck.Expr(g.node(gradcheck.Project(e, 1)), wrt...); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestAdditiveZeroGradients puts NaN and infinities into a query and a key whose scores don't enter the cost. Every
// gradient must equal, to the bit, the gradient with zeros in their place.
func TestAdditiveZeroGradients(t *testing.T) {
	const queries, keys, width = 3, 4, 2
	run := func(fill float64) [][]float64 {
		g := newGraph(t)
		q, k, v, w := g.in(queries, width), g.in(keys, width), g.in(width), g.in(queries, keys)
		for f := range width {
			q.Value().Data().([]float64)[1*width+f], k.Value().Data().([]float64)[2*width+f] = fill, fill
		}
		for i := range queries * keys {
			if i/keys == 1 || i%keys == 2 {
				w.Value().Data().([]float64)[i] = 0
			}
		}
		cost := G.Must(G.Sum(G.Must(G.HadamardProd(g.node(ops.AdditiveScores(&ops.Env{}, q, k, v)), w))))
		grads, err := G.Grad(cost, q, k, v)
		if err != nil {
			t.Fatal(err)
		}
		return g.read(grads...)
	}
	want := run(0)
	for _, fill := range []float64{5, math.Inf(-1), math.NaN()} {
		for i, got := range run(fill) {
			for j, x := range got {
				if math.Float64bits(x) != math.Float64bits(want[i][j]) {
					t.Errorf("with %v: element %d of gradient %d is %v, want %v", fill, j, i, x, want[i][j])
				}
			}
		}
	}
	for f := range width {
		if q, k := want[0][1*width+f], want[1][2*width+f]; q != 0 || k != 0 {
			t.Errorf("the gradients of the query and key are %v and %v, want 0", q, k)
		}
	}
}
