package ops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
)

// unread returns the nodes of a graph that no node reads, besides the given ones.
func unread(g *G.ExprGraph, results ...*G.Node) (found G.Nodes) {
	for _, n := range g.AllNodes() {
		if g.To(n.ID()).Len() == 0 && !slices.Contains(results, n) {
			found = append(found, n)
		}
	}
	return found
}

// TestFixedInputs differentiates every op that has several gradients, for every choice of fixed inputs. The graph has
// no gradient that nobody reads, and the gradients of the other inputs have the same bits as without fixed inputs.
func TestFixedInputs(t *testing.T) {
	var counts G.Nodes // of losses, which nobody reads
	for name, c := range map[string]struct {
		shapes []tensor.Shape
		op     func(g *graph, e *ops.Env, in G.Nodes) (*G.Node, error)
	}{
		"linear": {[]tensor.Shape{{5, 3}, {4, 3}, {4}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.Linear(e, in[0], in[1], in[2], ops.Identity)
		}},
		"linear with GELU, without a bias": {[]tensor.Shape{{5, 3}, {4, 3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.Linear(e, in[0], in[1], nil, ops.GELU)
		}},
		"linear sum": {[]tensor.Shape{{5, 3}, {4, 3}, {5, 2}, {4, 2}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.LinearSum(e, in[0], in[1], nil, in[2], in[3], 0.3, ops.GELU)
		}},
		"layer norm": {[]tensor.Shape{{5, 3}, {3}, {3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.LayerNorm(e, in[0], in[1], in[2], 1e-5)
		}},
		"rms norm": {[]tensor.Shape{{5, 6}, {3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.RMSNorm(e, in[0], in[1], 1e-5)
		}},
		"gate": {[]tensor.Shape{{5, 3}, {5, 3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.Gate(e, in[0], in[1], ops.SiLU)
		}},
		"additive scores": {[]tensor.Shape{{4, 3}, {5, 3}, {3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.AdditiveScores(e, in[0], in[1], in[2])
		}},
		"append": {[]tensor.Shape{{2, 3}, {2, 3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.Append(e, in[0], in[1])
		}},
		"add": {[]tensor.Shape{{2, 3}, {2, 3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.Add(e, in[0], in[1])
		}},
		"add rows": {[]tensor.Shape{{2, 4, 3}, {5, 3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.AddRows(e, in[0], in[1], 4)
		}},
		"matmul": {[]tensor.Shape{{5, 3}, {3, 4}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.MatMul(e, in[0], in[1], false, false, 1, false)
		}},
		"matmul transposed": {[]tensor.Shape{{3, 5}, {4, 3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.MatMul(e, in[0], in[1], true, true, 1, false)
		}},
		"softmax": {[]tensor.Shape{{2, 4, 5}, {4, 5}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.Softmax(e, "softmax", in[0], ops.Mask{Bias: in[1]})
		}},
		"attention": {[]tensor.Shape{{2, 4, 3}, {2, 5, 3}, {2, 5, 3}, {4, 5}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			return ops.Attention(e, in[0], in[1], in[2], ops.AttentionConfig{Mask: ops.Mask{Bias: in[3]}})
		}},
		"squared error": {[]tensor.Shape{{5, 3}, {5, 3}}, func(_ *graph, e *ops.Env, in G.Nodes) (*G.Node, error) {
			mean, count, err := ops.MeanDistance(e, kernel.SquaredError, 0, in[0], in[1], nil)
			counts = append(counts, count)
			return mean, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			// differentiate returns the bits of the gradients. Inputs whose bit of fixed is set are fixed.
			differentiate := func(fixed int) []string {
				g, held := newGraph(t), G.Nodes{}
				e := &ops.Env{Training: true, Fixed: &held, Buffers: ops.Spoiling()}
				var in, learned G.Nodes
				for i, s := range c.shapes {
					in = append(in, g.in(s...))
					if fixed>>i&1 == 1 {
						held = append(held, in[i])
					} else {
						learned = append(learned, in[i])
					}
				}
				y := g.node(c.op(g, e, in))
				weights := make([]float64, y.Shape().TotalSize())
				for i := range weights {
					weights[i] = float64(i%5) - 1.5
				}
				loss := g.node(ops.WeightedSum(e, y, weights, "weights"))
				grads, err := G.Grad(loss, learned...)
				if err != nil {
					t.Fatalf("fixed %b: %v", fixed, err)
				}
				if nodes := unread(g.ExprGraph, slices.Concat(grads, counts, G.Nodes{loss})...); len(nodes) > 0 {
					t.Errorf("fixed %b: nobody reads %v", fixed, nodes)
				}
				values, bits := g.read(grads...), make([]string, len(in))
				for i, n := range learned {
					bits[slices.Index(in, n)] = fmt.Sprintf("%x", values[i])
				}
				return bits
			}
			want := differentiate(0)
			for fixed := 1; fixed < 1<<len(c.shapes)-1; fixed++ {
				for i, bits := range differentiate(fixed) {
					if bits != "" && bits != want[i] {
						t.Errorf("fixed %b: input %d has the gradient %s, want %s", fixed, i, bits, want[i])
					}
				}
			}
		})
	}
}

// TestFixedTwins adds two ops whose gradients depend on the same node, with different fixed inputs.
func TestFixedTwins(t *testing.T) {
	g, held := newGraph(t), G.Nodes{}
	e := &ops.Env{Training: true, Fixed: &held, Buffers: ops.Spoiling()}
	a, b, c, d := g.in(2, 3), g.in(2, 3), g.in(2, 3), g.in(2, 3)
	held = append(held, a, d)
	sum := g.node(ops.Add(e, g.node(ops.Append(e, a, b)), g.node(ops.Append(e, c, d))))
	loss := g.node(ops.WeightedSum(e, sum, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, "1 to 12"))
	grads := must.Get(G.Grad(loss, b, c))(t)
	if got, want := fmt.Sprint(g.read(grads...)), "[[7 8 9 10 11 12] [1 2 3 4 5 6]]"; got != want {
		t.Errorf("the gradients are %s, want %s", got, want)
	}
}

// TestFixedOnlyInTraining asks for gradients of fixed inputs and of nodes that depend only on them. In training, this
// is an error. In evaluation, where gradients explain results, every node has a gradient.
func TestFixedOnlyInTraining(t *testing.T) {
	for _, training := range []bool{false, true} {
		for _, inner := range []bool{false, true} {
			g, held := newGraph(t), G.Nodes{}
			e := &ops.Env{Training: training, Fixed: &held}
			wrt := g.in(4, 3)
			held = append(held, wrt)
			n := g.node(ops.Embedding(e, wrt, g.ints(2)))
			loss := g.node(ops.Sum(e, g.node(ops.Linear(e, n, g.in(3, 3), nil, ops.Identity))))
			if inner {
				wrt = n
			}
			_, err := G.Backpropagate(G.Nodes{loss}, G.Nodes{G.NewScalar(g.ExprGraph, tensor.Float64, G.WithName("dloss"))}, G.Nodes{wrt})
			if training != (err != nil && strings.Contains(err.Error(), "Non Differentiable WRTs")) {
				t.Errorf("training %t, inner node %t: the error is %v", training, inner, err)
			}
		}
	}
}

// TestFixedBelowGorgonia has a fixed op below an op of Gorgonia, which computes a gradient for it. Backpropagation
// returns this gradient and computes none below.
func TestFixedBelowGorgonia(t *testing.T) {
	g, held := newGraph(t), G.Nodes{}
	e := &ops.Env{Training: true, Fixed: &held}
	x := g.in(2, 3)
	held = append(held, x)
	y := g.node(ops.Scale(e, x, 3))
	loss := g.node(G.Sum(g.node(G.Square(y))))
	grads := must.Get(G.Backpropagate(G.Nodes{loss}, G.Nodes{G.NewScalar(g.ExprGraph, tensor.Float64, G.WithName("dloss"))}, G.Nodes{y}))(t)
	if nodes := unread(g.ExprGraph, grads[0], loss); len(nodes) > 0 {
		t.Errorf("nobody reads %v", nodes)
	}
}
