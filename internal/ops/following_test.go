package ops_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
)

func act(g *graph, e *ops.Env, x *G.Node) *G.Node { return g.node(ops.Activate(e, x, ops.GELU)) }

// sublayer adds x + q·k·v to the graph, where q, k and v are linear layers of a norm of x with the weights w. If follow
// is true, each further use of x and of the norm follows an earlier one.
func sublayer(g *graph, e *ops.Env, rms, follow bool, x, gamma *G.Node, w []*G.Node) *G.Node {
	following := func(x, earlier *G.Node, add func() (*G.Node, error)) *G.Node {
		if !follow {
			earlier = nil
		}
		return g.node(ops.Following(e, x, earlier, add))
	}
	var norm *G.Node
	if rms {
		norm = g.node(ops.RMSNorm(e, x, gamma, 1e-5))
	} else {
		norm = g.node(ops.LayerNorm(e, x, gamma, nil, 1e-5))
	}
	var last, product *G.Node
	for _, w := range w {
		last = following(norm, last, func() (*G.Node, error) { return ops.Linear(e, norm, w, nil, ops.GELU) })
		if product == nil {
			product = last
		} else {
			product = g.node(ops.Gate(e, product, last, ops.SiLU))
		}
	}
	return following(x, norm, func() (*G.Node, error) { return ops.Add(e, x, product) })
}

// foreign returns the number of additions of tensors that are Gorgonia's.
func foreign(nodes G.Nodes) (n int) {
	for _, m := range nodes {
		if m.Op() != nil && m.Dims() > 0 && fmt.Sprintf("%T", m.Op()) != "*ops.op" {
			n++
		}
	}
	return n
}

// TestFollowing compares the gradients for every subset of the inputs with those that Gorgonia adds up. It expects that
// Gorgonia adds up none.
func TestFollowing(t *testing.T) {
	for _, rms := range []bool{false, true} {
		for subset := 1; subset < 1<<5; subset++ {
			var grads [2][][]float64
			for i, follow := range []bool{false, true} {
				g := newGraph(t)
				e := &ops.Env{Training: true, Buffers: ops.Spoiling()}
				x, gamma := g.in(3, 2, 4), g.in(4)
				inputs := []*G.Node{x, gamma, g.in(4, 4), g.in(4, 4), g.in(4, 4)}
				y := act(g, e, x)
				for range 2 { // two blocks of a model
					y = sublayer(g, e, rms, follow, y, gamma, inputs[2:])
				}
				cost := g.node(ops.Sum(e, act(g, e, y)))
				var wrt G.Nodes
				for i, n := range inputs {
					if subset>>i&1 == 1 {
						wrt = append(wrt, n)
					}
				}
				result := must.Get(G.Grad(cost, wrt...))(t)
				if subset == 1 && follow {
					if n := foreign(g.AllNodes()); n > 0 {
						t.Errorf("rms %t: Gorgonia adds %d times", rms, n)
					}
				}
				grads[i] = g.read(result...)
			}
			ops.Near(t, fmt.Sprintf("rms %t, subset %05b", rms, subset), grads[1], grads[0], 1e-12)
		}
	}
}

// TestFollowingTwice has two uses that follow the same use, and a use outside. Gorgonia must add what can't be handed
// over.
func TestFollowingTwice(t *testing.T) {
	var want string
	for _, follow := range []bool{false, true} {
		g := newGraph(t)
		e := &ops.Env{Training: true}
		x := g.in(3, 4)
		norm := g.node(ops.LayerNorm(e, x, g.in(4), nil, 1e-5))
		sum := act(g, e, x)
		for _, y := range []*G.Node{norm, act(g, e, norm)} {
			earlier := norm
			if !follow {
				earlier = nil
			}
			sum = g.node(ops.Add(e, sum, g.node(ops.Following(e, x, earlier, func() (*G.Node, error) { return ops.Add(e, x, y) }))))
		}
		grads := must.Get(G.Grad(g.node(ops.Sum(e, act(g, e, sum))), x))(t)
		if got := fmt.Sprintf("%.12f", g.read(grads...)); want == "" {
			want = got
		} else if got != want {
			t.Errorf("gradient %s, want %s", got, want)
		}
	}
}

// TestTiedLinear has a table of embeddings that is also the weight of linear layers. Its gradient must be the sum of
// the gradients of separate tables, and Gorgonia must not add up those of the embedding and the last layer.
func TestTiedLinear(t *testing.T) {
	for heads := 1; heads <= 2; heads++ {
		var want []float64
		for _, tied := range []bool{false, true} {
			g := newGraph(t)
			e := &ops.Env{Training: true, Buffers: ops.Spoiling()}
			ids := g.ints(6)
			copy(ids.Value().Data().([]int), []int{4, 1, 1, 0, 4, 4})
			tables := G.Nodes{g.in(5, 3)}
			for range heads {
				if !tied {
					tables = append(tables, g.input(tables[0].Value().(*tensor.Dense).Clone().(*tensor.Dense)))
				}
			}
			x := act(g, e, g.node(ops.Embedding(e, tables[0], ids)))
			cost := g.node(ops.Sum(e, x))
			for i := range heads {
				head := tables[min(1+i, len(tables)-1)]
				y := g.node(ops.Linear(e, x, head, nil, []ops.Activation{ops.GELU, ops.SiLU}[i]))
				cost = G.Must(G.Add(cost, g.node(ops.Sum(e, y))))
			}
			grads := must.Get(G.Grad(cost, tables...))(t)
			// x has a gradient from each head and from Sum, and a second head has a gradient of its own.
			if n := foreign(g.AllNodes()); tied && n != 2*heads-1 {
				t.Errorf("%d heads: Gorgonia adds %d times, want %d", heads, n, 2*heads-1)
			}
			sum := make([]float64, 15)
			for _, grad := range g.read(grads...) {
				for i, v := range grad {
					sum[i] += v
				}
			}
			if want == nil {
				want = sum
			}
			ops.Near(t, fmt.Sprintf("%d heads", heads), [][]float64{sum}, [][]float64{want}, 1e-12)
		}
	}
}
