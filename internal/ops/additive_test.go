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
					must.Do(t, gradcheck.Expr(g.node(gradcheck.Project(e, 1)), wrt...))
				})
			}
		}
	}
}
