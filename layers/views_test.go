package layers_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// views returns tensors with the given shape. Their elements aren't contiguous, or don't start at the first element of
// the memory.
func views(t *testing.T, shape ...int) map[string]*tensor.Dense {
	t.Helper()
	out := map[string]*tensor.Dense{}
	for axis := range shape {
		for _, after := range []int{0, 2} {
			big := append([]int(nil), shape...)
			big[axis] += 1 + after
			slices := make([]tensor.Slice, len(shape))
			slices[axis] = G.S(1, 1+shape[axis])
			v := must.Get(random(uint64(3+axis), big...).Slice(slices...))(t).(*tensor.Dense)
			if v.Shape().Eq(tensor.Shape(shape)) && v.Dims() == len(shape) { // Slice drops an axis of 1
				out[fmt.Sprintf("slice of axis %d, %d after it", axis, after)] = v
			}
		}
	}
	if len(shape) >= 2 {
		last := len(shape) - 1
		swapped := append([]int(nil), shape...)
		swapped[last], swapped[last-1] = swapped[last-1], swapped[last]
		axes := make([]int, len(shape))
		for i := range axes {
			axes[i] = i
		}
		axes[last], axes[last-1] = last-1, last
		v := random(9, swapped...)
		must.Do(t, v.T(axes...))
		out["transposed"] = v
	}
	return out
}

// straight copies a view to contiguous memory, element by element.
func straight(t *testing.T, v *tensor.Dense) *tensor.Dense {
	t.Helper()
	shape := v.Shape().Clone()
	values := make([]float64, shape.TotalSize())
	for i := range values {
		index := make([]int, len(shape))
		for axis, r := len(shape)-1, i; axis >= 0; axis-- {
			index[axis], r = r%shape[axis], r/shape[axis]
		}
		values[i] = must.Get(v.At(index...))(t).(float64)
	}
	return dense(values, shape...)
}

// TestInputsMayBeViews binds views of other tensors with WithValue and Let. The results are the same as with contiguous
// copies.
func TestInputsMayBeViews(t *testing.T) {
	for _, shape := range [][]int{{4, 6}, {1, 6}, {4, 1}, {3, 4, 6}, {1, 4, 6}, {2, 1, 6}, {1, 1, 1}} {
		for name, v := range views(t, shape...) {
			t.Run(fmt.Sprintf("%v, %s", tensor.Shape(shape), name), func(t *testing.T) {
				flat := straight(t, v)
				bind := map[string]func(g *G.ExprGraph) *G.Node{
					"copy":      func(g *G.ExprGraph) *G.Node { return input(g, "x", flat) },
					"WithValue": func(g *G.ExprGraph) *G.Node { return input(g, "x", v) },
					"Let": func(g *G.ExprGraph) *G.Node {
						x := G.NewTensor(g, tensor.Float64, v.Dims(), G.WithShape(v.Shape()...), G.WithName("x"))
						must.Do(t, G.Let(x, v))
						return x
					},
				}
				want := viewed(t, bind["copy"])
				for _, method := range []string{"WithValue", "Let"} {
					for i, got := range viewed(t, bind[method]) {
						sameBits(t, fmt.Sprintf("%s: value %d", method, i), got, want[i])
					}
				}
			})
		}
	}
}

// viewed applies layers to the node that bind returns. It returns their outputs, a loss and gradients.
func viewed(t *testing.T, bind func(g *G.ExprGraph) *G.Node) [][]float64 {
	t.Helper()
	g := G.NewGraph()
	x := bind(g)
	s := x.Shape()
	c := &bench{T: t, g: g, p: newParams(t), b: &layers.Build{}}
	dim := s[len(s)-1]
	a := c.multiHead(dim, layers.AttentionConfig{})
	n := must.Get(layers.NewNorm(c.p, dim, layers.NormConfig{}))(t)
	y := c.node(a.Forward(c.b, x, x, x, layers.Mask{Causal: true}))
	z := c.node(n.Forward(c.b, x))
	act := c.node(layers.GELU.Forward(c.b, x))
	positions := c.node(layers.Sinusoidal{}.Embed(c.b, x, nil))
	core, _, err := scaledDotProduct(c.b, x, x, x, layers.AttentionOptions{})
	core = c.node(core, err)
	rows := s.TotalSize() / dim
	loss := c.node(mean(layers.CrossEntropy(&layers.Build{}, x, input(g, "targets", dense(make([]int, rows), s[:len(s)-1]...)), layers.CrossEntropyOptions{})))
	cost := c.node(G.Add(loss, weigh(t, y, input(g, "w", random(1, s...)))))
	nodes := append(G.Nodes{y, z, act, positions, core, loss}, gradients(t, cost, append(G.Nodes{x}, c.b.Learnables()[:8]...)...)...)
	return read(t, nodes...)
}

// TestMasksIdsAndTargetsMayBeViews uses views as ids, targets, lengths and a boolean mask. The results are the same as
// with contiguous tensors.
func TestMasksIdsAndTargetsMayBeViews(t *testing.T) {
	big := dense([]int{9, 1, 2, 9, 0, 3, 9, 2, 2}, 3, 3) // its last two columns are ids
	columns := must.Get(big.Slice(nil, G.S(1, 3)))(t).(*tensor.Dense)
	allow := dense([]bool{true, false, true, true}, 2, 2)
	must.Do(t, allow.T())
	lengths := must.Get(dense([]int{0, 2, 9, 1, 9, 2}, 3, 2).Slice(nil, G.S(1)))(t).(*tensor.Dense) // 2, 1, 2

	run := func(ids, allow, lengths *tensor.Dense) [][]float64 {
		c := newBench(t)
		e := must.Get(layers.NewEncoder(c.p, layers.ModelConfig{Vocab: 4, Positions: layers.Learned{MaxLen: 2}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1, Outputs: 4}))(t)
		idsNode := input(c.g, "ids", ids)
		y := c.node(e.Forward(c.b, idsNode, layers.Mask{Allow: input(c.g, "allow", allow), KeyLengths: input(c.g, "lengths", lengths)}))
		loss := c.node(mean(layers.CrossEntropy(&layers.Build{}, y, idsNode, layers.CrossEntropyOptions{})))
		return read(t, append(G.Nodes{y, loss}, gradients(t, loss, c.b.Learnables()...)...)...)
	}
	want := run(dense([]int{1, 2, 0, 3, 2, 2}, 3, 2), dense([]bool{true, true, false, true}, 2, 2), dense([]int{2, 1, 2}, 3))
	for i, got := range run(columns, allow, lengths) {
		sameBits(t, fmt.Sprintf("value %d", i), got, want[i])
	}
}
