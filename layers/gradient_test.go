package layers_test

import (
	"fmt"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
)

// A bench holds a graph, its parameters and its inputs, for a test.
type bench struct {
	*testing.T
	g   *G.ExprGraph
	p   *layers.Params
	b   *layers.Build
	dt  tensor.Dtype // dtype of the parameters
	wrt G.Nodes      // float inputs, whose gradients are checked
}

func newBench(t *testing.T) *bench {
	return &bench{T: t, g: G.NewGraph(), p: newParams(t), b: &layers.Build{Training: true}, dt: tensor.Float64}
}

// in returns an input of random numbers and adds it to wrt.
func (c *bench) in(name string, shape ...int) *G.Node {
	n := input(c.g, name, as(c.dt, random(uint64(len(c.wrt)+1), shape...)))
	c.wrt = append(c.wrt, n)
	return n
}

// bias returns a random float mask and adds it to wrt.
func (c *bench) bias(shape ...int) *G.Node { return c.in("bias", shape...) }

func (c *bench) ints(name string, values []int, shape ...int) *G.Node {
	return input(c.g, name, dense(values, shape...))
}

// allow returns a boolean mask: every third element is false, and so are all elements in the rows listed in empty.
func (c *bench) allow(empty []int, shape ...int) *G.Node {
	values := make([]bool, tensor.Shape(shape).TotalSize())
	width := shape[len(shape)-1]
	for i := range values {
		values[i] = i%3 != 1
	}
	for _, r := range empty {
		clear(values[r*width:][:width])
	}
	return input(c.g, "allow", dense(values, shape...))
}

func (c *bench) node(n *G.Node, err error) *G.Node {
	c.Helper()
	return must.Get(n, err)(c)
}

// A gradientCase builds an expression. If the expression isn't a scalar, graph projects it to a scalar.
type gradientCase struct {
	name  string
	build func(c *bench) *G.Node
}

// mayVanish is an argument of checkGradients: a weight's gradient may be all zero, for example with only one key or
// class.
const mayVanish = true

// graph builds a case in one form, with random parameters. It returns the cost and, as wrt, the float inputs and the
// parameters. The nodes in values are the expression and the gradients of the cost.
func (tc gradientCase) graph(t *testing.T, composed bool) (cost *G.Node, wrt, values G.Nodes) {
	c := newBench(t)
	c.b.Composed = composed
	cost = tc.build(c)
	randomise(c.p)
	values = G.Nodes{cost}
	if !cost.IsScalar() {
		cost = must.Get(gradcheck.Project(cost, 3))(t)
	}
	wrt = append(c.wrt, c.b.Learnables()...)
	return cost, wrt, append(values, gradients(t, cost, wrt...)...)
}

// checkGradients compares the gradients of all float inputs and parameters with finite differences. The gradient of a
// weight must not be all zero. If the case uses attention, checkGradients also compares the values and gradients of
// both forms.
func checkGradients(t *testing.T, cases []gradientCase, vanish ...bool) {
	t.Parallel()
	for _, tc := range cases {
		if testing.Short() && testseed.LeftOut(tc.name) {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			cost, wrt, values := tc.graph(t, false)
			must.Do(t, gradcheck.Expr(cost, wrt...))
			fused := read(t, values...)
			for i, n := range wrt {
				if strings.HasSuffix(n.Name(), "weight") && allZero(fused[1+i]) && len(vanish) == 0 {
					t.Errorf("the gradient of %s is all zero", n.Name())
				}
			}
			other, _, values := tc.graph(t, true)
			if len(other.Graph().AllNodes()) == len(cost.Graph().AllNodes()) {
				return // the case has no attention
			}
			for i, want := range read(t, values...) {
				near(t, fmt.Sprintf("composed: value, or gradient %d of %v", i, wrt), fused[i], want, 1e-12)
			}
		})
	}
}

func TestGradientsOfLayers(t *testing.T) {
	var cases []gradientCase
	add := func(name string, build func(c *bench) *G.Node) { cases = append(cases, gradientCase{name, build}) }

	for _, shape := range [][]int{{4}, {3, 4}, {2, 3, 4}, {2, 1, 2, 4}} {
		add(fmt.Sprintf("normalize of %v", tensor.Shape(shape)), func(c *bench) *G.Node {
			return c.node(layers.Normalize(c.b, c.in("x", shape...)))
		})
		for _, noBias := range []bool{false, true} {
			add(fmt.Sprintf("linear of %v, no bias %t", tensor.Shape(shape), noBias), func(c *bench) *G.Node {
				l := must.Get(layers.NewLinear(c.p, 4, 3, layers.LinearConfig{NoBias: noBias}))(c)
				return c.node(l.Forward(c.b, c.in("x", shape...)))
			})
			add(fmt.Sprintf("layer norm of %v, no bias %t", tensor.Shape(shape), noBias), func(c *bench) *G.Node {
				l := must.Get(layers.NewNorm(c.p, 4, layers.NormConfig{NoBias: noBias}))(c)
				return c.node(l.Forward(c.b, c.in("x", shape...)))
			})
		}
		for heads := 1; heads <= 2; heads++ {
			add(fmt.Sprintf("rms norm of %v, %d heads", tensor.Shape(shape), heads), func(c *bench) *G.Node {
				l := must.Get(layers.NewNorm(c.p, 4/heads, layers.NormConfig{Kind: "rms", Eps: 0.01}))(c)
				return c.node(l.Heads(c.b, c.in("x", shape...), heads))
			})
		}
		for _, a := range everyActivation {
			add(fmt.Sprintf("%v of %v", a, tensor.Shape(shape)), func(c *bench) *G.Node {
				return c.node(a.Forward(c.b, c.in("x", shape...)))
			})
		}
	}
	for _, pooling := range poolings {
		add("pool, "+pooling.String(), func(c *bench) *G.Node {
			return c.node(layers.Pool(c.b, c.in("x", 3, 4, 2), c.lengths(4, 0, 2), pooling))
		})
	}
	for _, shape := range [][]int{{4}, {2, 3}} {
		add(fmt.Sprintf("embedding of %v", tensor.Shape(shape)), func(c *bench) *G.Node {
			e := must.Get(layers.NewEmbedding(c.p, 5, 3, layers.Init{}))(c)
			return c.node(e.Forward(c.b, c.ints("ids", []int{4, 0, 4, 4, 1, 2}[:tensor.Shape(shape).TotalSize()], shape...)))
		})
	}
	for _, shape := range [][]int{{3, 4}, {2, 3, 4}} {
		for _, maxLen := range []int{3, 5} {
			add(fmt.Sprintf("learned positions of %v out of %d", tensor.Shape(shape), maxLen), func(c *bench) *G.Node {
				l := must.Get(layers.Learned{MaxLen: maxLen}.New(c.p, 4, layers.AttentionConfig{}))(c)
				return c.node(l.Embed(c.b, c.in("x", shape...), nil))
			})
		}
		add(fmt.Sprintf("learned positions of %v, given", tensor.Shape(shape)), func(c *bench) *G.Node {
			l := must.Get(layers.Learned{MaxLen: 6}.New(c.p, 4, layers.AttentionConfig{}))(c)
			if len(shape) == 2 {
				return c.node(l.Embed(c.b, c.in("x", shape...), c.ints("positions", []int{2}, 1)))
			}
			return c.node(l.Embed(c.b, c.in("x", shape...), c.ints("positions", []int{5, 0, 0, 3, 2, 3}, 2, 3))) // 0 and 3 twice
		})
		add(fmt.Sprintf("sinusoidal positions of %v", tensor.Shape(shape)), func(c *bench) *G.Node {
			return c.node(layers.Sinusoidal{}.Embed(c.b, c.in("x", shape...), nil))
		})
	}
	for i, tc := range []struct {
		shape []int
		heads int
	}{
		{[]int{3, 4}, 1}, {[]int{3, 8}, 2}, {[]int{2, 3, 4}, 1}, {[]int{2, 3, 12}, 3}, {[]int{2, 3, 2, 4}, 1}, {[]int{1, 1, 1, 4}, 1},
	} {
		for j, r := range []layers.Rotary{{}, {Interleaved: true}, {Dim: 2, Base: 7}, {Dim: 2, Interleaved: true, Offset: 5}} {
			rank := (i + j) % 3
			add(fmt.Sprintf("rotary of %v, %d heads, %+v, positions of rank %d", tensor.Shape(tc.shape), tc.heads, r, rank), func(c *bench) *G.Node {
				x := c.in("x", tc.shape...)
				return c.node(r.Rotate(c.b, x, tc.heads, c.positions(x, rank)))
			})
		}
	}
	for _, a := range everyActivation {
		for _, gated := range []bool{false, true} {
			for _, noBias := range []bool{false, true} {
				add(fmt.Sprintf("feed-forward with %v, gated %t, no bias %t", a, gated, noBias), func(c *bench) *G.Node {
					return c.node(c.feedForward(3, layers.FeedForwardConfig{Hidden: 5, Activation: a, Gated: gated, NoBias: noBias}).Forward(c.b, c.in("x", 2, 2, 3)))
				})
			}
		}
	}
	checkGradients(t, cases)
}

// TestSizesOfOne checks axes of size 1, which Gorgonia may mistake for scalars or vectors.
func TestSizesOfOne(t *testing.T) {
	var cases []gradientCase
	for name, shape := range map[string][]int{"(1)": {1}, "(1, 1)": {1, 1}, "(1, 1, 1)": {1, 1, 1}, "(1, 1, 1, 1)": {1, 1, 1, 1}} {
		add := func(what string, build func(c *bench, x *G.Node) (*G.Node, error)) {
			cases = append(cases, gradientCase{what + " of " + name, func(c *bench) *G.Node { return c.node(build(c, c.in("x", shape...))) }})
		}
		for _, out := range []int{1, 3} {
			add(fmt.Sprintf("linear to %d", out), func(c *bench, x *G.Node) (*G.Node, error) {
				return must.Get(layers.NewLinear(c.p, 1, out, layers.LinearConfig{}))(c).Forward(c.b, x)
			})
		}
		add("rms norm", func(c *bench, x *G.Node) (*G.Node, error) {
			return must.Get(layers.NewNorm(c.p, 1, layers.NormConfig{Kind: "rms", Eps: 0.1}))(c).Forward(c.b, x)
		})
		for _, a := range everyActivation {
			add("gated feed-forward with "+a.String(), func(c *bench, x *G.Node) (*G.Node, error) {
				return c.feedForward(1, layers.FeedForwardConfig{Hidden: 1, Activation: a, Gated: true}).Forward(c.b, x)
			})
			add(a.String(), func(c *bench, x *G.Node) (*G.Node, error) { return a.Forward(c.b, x) })
		}
		if len(shape) == 1 {
			continue
		}
		for rank := range 3 {
			cases = append(cases, gradientCase{fmt.Sprintf("rotary of %s and 2, positions of rank %d", name, rank), func(c *bench) *G.Node {
				x := c.in("x", append(shape[:len(shape)-1:len(shape)-1], 2)...)
				return c.node(layers.Rotary{Offset: 1}.Rotate(c.b, x, 1, c.positions(x, rank)))
			}})
		}
		if len(shape) == 4 {
			continue
		}
		add("attention", func(c *bench, x *G.Node) (*G.Node, error) {
			a := must.Get(layers.NewMultiHeadAttention(c.p.Scope("a"), 1, layers.AttentionConfig{}))(c)
			l := must.Get(layers.Learned{MaxLen: 1}.New(c.p.Scope("l"), 1, layers.AttentionConfig{}))(c)
			y := c.node(a.Forward(c.b, c.node(l.Embed(c.b, x, nil)), x, x, layers.Mask{
				Causal: true, KeyLengths: c.ints("lengths", []int{1}, 1), Bias: c.bias(1), Allow: input(c.g, "allow", dense([]bool{true}, 1, 1)),
			}))
			return G.Add(y, x)
		})
		add("attention with alibi's bias", func(c *bench, x *G.Node) (*G.Node, error) {
			return c.multiHead(1, layers.AttentionConfig{}).Forward(c.b, x, x, x, layers.Mask{Bias: input(c.g, "bias", alibiBias(c, 1, 2, 1, 1))})
		})
		for _, config := range []layers.AdditiveConfig{{}, {NoProjections: true}, {NoScale: true}, {Hidden: 3}} {
			add(fmt.Sprintf("additive attention, %+v,", config), func(c *bench, x *G.Node) (*G.Node, error) {
				return c.additive(1, config).Forward(c.b, x, x, x, layers.Mask{Bias: c.bias(1, 1)})
			})
		}
	}
	for name, seq := range map[string][]int{"(1)": {1}, "(1, 1)": {1, 1}, "(1, 2)": {1, 2}, "(2, 1)": {2, 1}} {
		ids := make([]int, tensor.Shape(seq).TotalSize())
		for _, config := range []layers.ModelConfig{
			{Vocab: 1, Positions: layers.Learned{MaxLen: 2}, Dim: 1, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 1}, FeedForward: layers.FeedForwardConfig{Hidden: 1, Activation: layers.GELU}}, Layers: 1, Outputs: 2},
			{Vocab: 2, Positions: layers.Learned{MaxLen: 2}, Dim: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 1, Activation: layers.GELU}}, Layers: 1, Outputs: 2},
			{Vocab: 1, Positions: layers.Learned{MaxLen: 2}, Dim: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 1}, FeedForward: layers.FeedForwardConfig{Hidden: 2, Activation: layers.GELU}, PostNorm: true}, Layers: 1, Outputs: 1},
		} {
			cases = append(cases, gradientCase{"encoder of " + name, func(c *bench) *G.Node {
				e := must.Get(layers.NewEncoder(c.p, config))(c)
				y := c.node(e.Forward(c.b, c.ints("ids", ids, seq...), layers.Mask{}))
				return c.node(mean(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", ids, seq...), layers.CrossEntropyOptions{})))
			}}, gradientCase{"decoder of " + name, func(c *bench) *G.Node {
				d := must.Get(layers.NewDecoder(c.p, config))(c)
				y := c.node(d.Forward(c.b, c.ints("ids", ids, seq...), layers.Mask{}))
				return c.node(mean(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", ids, seq...), layers.CrossEntropyOptions{})))
			}})
		}
	}
	checkGradients(t, cases, mayVanish)
}

// everyActivation lists all activations.
var everyActivation = func() (list []layers.Activation) {
	for a := layers.ReLU; ; a++ {
		if _, err := a.MarshalText(); err != nil {
			return list
		}
		list = append(list, a)
	}
}()

func (c *bench) feedForward(dim int, config layers.FeedForwardConfig) *layers.FeedForward {
	c.Helper()
	return must.Get(layers.NewFeedForward(c.p, dim, config))(c)
}

// positions returns positions for the rows of x: nil for rank 0, the first position of each sequence for rank 1, or
// every position for rank 2.
func (c *bench) positions(x *G.Node, rank int) *G.Node {
	s := x.Shape()
	batch, length := 1, s[len(s)-2]
	if len(s) > 2 {
		batch = s[0]
	}
	switch rank {
	case 1:
		return c.ints("positions", []int{4, -9}[:batch], batch)
	case 2:
		values := make([]int, batch*length)
		for i := range values {
			values[i] = 3*i%7 - 1
		}
		return c.ints("positions", values, batch, length)
	}
	return nil
}
