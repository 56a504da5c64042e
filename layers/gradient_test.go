package layers_test

import (
	"fmt"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
)

// A bench is what a gradient case builds with.
type bench struct {
	*testing.T
	g   *G.ExprGraph
	p   *layers.Params
	b   *layers.Build
	dt  tensor.Dtype // of the parameters
	wrt G.Nodes      // float inputs
}

func newBench(t *testing.T) *bench {
	return &bench{T: t, g: G.NewGraph(), p: newParams(t), b: &layers.Build{Mode: layers.Training}, dt: tensor.Float64}
}

// in is a random float64 input, whose gradient is checked.
func (c *bench) in(name string, shape ...int) *G.Node {
	n := input(c.g, name, as(c.dt, random(uint64(len(c.wrt)+1), shape...)))
	c.wrt = append(c.wrt, n)
	return n
}

// bias is the float mask.
func (c *bench) bias(shape ...int) *G.Node { return c.in("bias", shape...) }

func (c *bench) ints(name string, values []int, shape ...int) *G.Node {
	return input(c.g, name, dense(values, shape...))
}

// allow is a mask that is false at every third place, and all false in the rows given.
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
	return node(c)(n, err)
}

// A gradientCase builds an expression: a scalar, or what is projected to one.
type gradientCase struct {
	name  string
	build func(c *bench) *G.Node
}

// mayVanish tells checkGradients that a weight's gradient may be zero, as where there is one key, or one class.
const mayVanish = true

// checkGradients holds every gradient, of every float input and every parameter, to finite differences, and insists
// that those of weights aren't all zero.
func checkGradients(t *testing.T, cases []gradientCase, vanish ...bool) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := newBench(t)
			y := tc.build(c)
			randomise(c.p)
			if !y.IsScalar() {
				y = node(t)(gradcheck.Project(y, 3))
			}
			wrt := append(c.wrt, c.b.Learnables()...)
			grads := gradients(t, y, wrt...)
			if err := gradcheck.Expr(y, wrt...); err != nil {
				t.Fatal(err)
			}
			for i, d := range read(t, grads...) {
				if name := wrt[i].Name(); strings.HasSuffix(name, "weight") && allZero(d) && len(vanish) == 0 {
					t.Errorf("the gradient of %s is zero", name)
				}
			}
		})
	}
}

func TestGradientsOfLayers(t *testing.T) {
	var cases []gradientCase
	add := func(name string, build func(c *bench) *G.Node) { cases = append(cases, gradientCase{name, build}) }

	for _, shape := range [][]int{{4}, {3, 4}, {2, 3, 4}, {2, 1, 2, 4}} {
		for _, noBias := range []bool{false, true} {
			add(fmt.Sprintf("linear of %v, no bias %t", tensor.Shape(shape), noBias), func(c *bench) *G.Node {
				l := must[*layers.Linear](c)(layers.NewLinear(c.p, 4, 3, layers.LinearConfig{NoBias: noBias}))
				return c.node(l.Forward(c.b, c.in("x", shape...)))
			})
			add(fmt.Sprintf("layer norm of %v, no bias %t", tensor.Shape(shape), noBias), func(c *bench) *G.Node {
				l := must[*layers.LayerNorm](c)(layers.NewLayerNorm(c.p, 4, layers.NormConfig{NoBias: noBias}))
				return c.node(l.Forward(c.b, c.in("x", shape...)))
			})
		}
	}
	add("embedding of a sequence", func(c *bench) *G.Node {
		e := must[*layers.Embedding](c)(layers.NewEmbedding(c.p, 5, 3, layers.Init{}))
		return c.node(e.Forward(c.b, c.ints("ids", []int{4, 0, 4, 4}, 4)))
	})
	add("embedding of a batch", func(c *bench) *G.Node {
		e := must[*layers.Embedding](c)(layers.NewEmbedding(c.p, 5, 3, layers.Init{}))
		return c.node(e.Forward(c.b, c.ints("ids", []int{4, 0, 4, 1, 1, 2}, 2, 3)))
	})
	for _, shape := range [][]int{{3, 4}, {2, 3, 4}} {
		for _, maxLen := range []int{3, 5} {
			add(fmt.Sprintf("learned positions of %v out of %d", tensor.Shape(shape), maxLen), func(c *bench) *G.Node {
				l := must[layers.Positions](c)(layers.Learned{MaxLen: maxLen}.New(c.p, 4, layers.AttentionConfig{}))
				return c.node(l.Embed(c.b, c.in("x", shape...), nil))
			})
		}
		add(fmt.Sprintf("learned positions of %v, given", tensor.Shape(shape)), func(c *bench) *G.Node {
			l := must[layers.Positions](c)(layers.Learned{MaxLen: 6}.New(c.p, 4, layers.AttentionConfig{}))
			if len(shape) == 2 {
				return c.node(l.Embed(c.b, c.in("x", shape...), c.ints("positions", []int{2}, 1)))
			}
			return c.node(l.Embed(c.b, c.in("x", shape...), c.ints("positions", []int{5, 0, 0, 3, 2, 3}, 2, 3))) // one twice
		})
		add(fmt.Sprintf("sinusoidal positions of %v", tensor.Shape(shape)), func(c *bench) *G.Node {
			return c.node(layers.Sinusoidal{}.Embed(c.b, c.in("x", shape...), nil))
		})
	}
	for _, a := range everyActivation {
		add(fmt.Sprintf("feed-forward with %v", a), func(c *bench) *G.Node {
			f := must[*layers.FeedForward](c)(layers.NewFeedForward(c.p, 3, layers.FeedForwardConfig{Hidden: 5, Activation: a}))
			return c.node(f.Forward(c.b, c.in("x", 2, 2, 3)))
		})
	}
	add("cross-entropy of a sequence", func(c *bench) *G.Node {
		return c.node(layers.CrossEntropy(&layers.Build{}, c.in("logits", 3, 4), c.ints("targets", []int{3, 0, 2}, 3), layers.CrossEntropyOptions{}))
	})
	add("cross-entropy of a batch, some ignored", func(c *bench) *G.Node {
		return c.node(layers.CrossEntropy(&layers.Build{}, c.in("logits", 2, 3, 4), c.ints("targets", []int{3, layers.Ignore, 2, -7, 0, 0}, 2, 3), layers.CrossEntropyOptions{}))
	})
	add("cross-entropy, squared", func(c *bench) *G.Node {
		return c.node(G.Square(c.node(layers.CrossEntropy(&layers.Build{}, c.in("logits", 2, 4), c.ints("targets", []int{1, 3}, 2), layers.CrossEntropyOptions{}))))
	})
	add("cross-entropy, all ignored", func(c *bench) *G.Node {
		return c.node(layers.CrossEntropy(&layers.Build{}, c.in("logits", 2, 4), c.ints("targets", []int{-1, -1}, 2), layers.CrossEntropyOptions{}))
	})
	checkGradients(t, cases)
}

func TestGradientsOfScaledDotProduct(t *testing.T) {
	type shapes struct{ q, k, v []int }
	matrices := shapes{[]int{3, 4}, []int{5, 4}, []int{5, 2}}
	batch := shapes{[]int{2, 3, 4}, []int{2, 5, 4}, []int{2, 5, 2}}
	heads := shapes{[]int{2, 2, 3, 2}, []int{2, 2, 4, 2}, []int{2, 2, 4, 3}}

	var cases []gradientCase
	add := func(name string, s shapes, options func(c *bench) layers.AttentionOptions) {
		cases = append(cases, gradientCase{name, func(c *bench) *G.Node {
			out, weights, err := scaledDotProduct(c.b, c.in("q", s.q...), c.in("k", s.k...), c.in("v", s.v...), options(c))
			if err != nil {
				c.Fatal(err)
			}
			// Both outputs count, so that the weights' own gradient is checked too.
			a, b := c.node(gradcheck.Project(out, 1)), c.node(gradcheck.Project(weights, 2))
			return c.node(G.Add(a, b))
		}}, gradientCase{name + ", fused", func(c *bench) *G.Node {
			out := c.node(layers.ScaledDotProduct(c.b, c.in("q", s.q...), c.in("k", s.k...), c.in("v", s.v...), options(c)))
			return c.node(gradcheck.Project(out, 1))
		}})
	}
	mask := func(m func(c *bench) layers.Mask) func(c *bench) layers.AttentionOptions {
		return func(c *bench) layers.AttentionOptions { return layers.AttentionOptions{Mask: m(c)} }
	}
	plain := mask(func(*bench) layers.Mask { return layers.Mask{} })
	causal := mask(func(*bench) layers.Mask { return layers.Mask{Causal: true} })
	for name, s := range map[string]shapes{"matrices": matrices, "batch": batch, "heads": heads} {
		add(name+", plain", s, plain)
		add(name+", causal", s, causal)
		lengths := []int{4}
		if name != "matrices" {
			lengths = []int{0, 3}
		}
		add(name+", lengths", s, mask(func(c *bench) layers.Mask {
			return layers.Mask{KeyLengths: c.ints("lengths", lengths, len(lengths))}
		}))
	}
	add("scale", heads, func(*bench) layers.AttentionOptions { return layers.AttentionOptions{Scale: -0.3} })
	add("all lengths 0", heads, mask(func(c *bench) layers.Mask {
		return layers.Mask{KeyLengths: c.ints("lengths", []int{0, 0}, 2)}
	}))
	add("all lengths full", heads, mask(func(c *bench) layers.Mask {
		return layers.Mask{KeyLengths: c.ints("lengths", []int{4, 4}, 2)}
	}))
	for _, shape := range [][]int{{4}, {2}, {3, 4}, {1, 4}, {3, 1}, {2, 3, 4}, {1, 3, 4}, {2, 1, 4}, {1, 1, 1, 4}, {2, 1, 1, 4}, {1, 2, 1, 3}, {2, 1, 3, 2}, {2, 2, 3, 4}, {1, 1, 1, 1}, {1}} {
		add(fmt.Sprintf("heads, bias of %v", tensor.Shape(shape)), heads, mask(func(c *bench) layers.Mask {
			return layers.Mask{Bias: c.bias(shape...)}
		}))
		add(fmt.Sprintf("heads, allow of %v", tensor.Shape(shape)), heads, mask(func(c *bench) layers.Mask {
			return layers.Mask{Allow: c.allow([]int{0}, shape...)}
		}))
	}
	for _, shape := range [][]int{{5}, {3}, {3, 5}, {1, 5}, {2, 3, 5}, {2, 1, 5}, {1, 3, 5}, {2, 1, 2}} {
		add(fmt.Sprintf("batch, bias of %v", tensor.Shape(shape)), batch, mask(func(c *bench) layers.Mask {
			return layers.Mask{Bias: c.bias(shape...)}
		}))
	}
	for _, shape := range [][]int{{5}, {3, 5}, {2, 1, 5}} {
		add(fmt.Sprintf("batch, allow of %v", tensor.Shape(shape)), batch, mask(func(c *bench) layers.Mask {
			return layers.Mask{Allow: c.allow(nil, shape...)}
		}))
	}
	add("matrices, bias", matrices, mask(func(c *bench) layers.Mask { return layers.Mask{Bias: c.bias(3, 5)} }))
	add("everything", heads, func(c *bench) layers.AttentionOptions {
		return layers.AttentionOptions{Scale: 0.8, Mask: layers.Mask{
			Causal: true, KeyLengths: c.ints("lengths", []int{4, 2}, 2), Allow: c.allow([]int{1}, 2, 1, 3, 4), Bias: c.bias(2, 3, 3),
		}}
	})
	checkGradients(t, cases)
}

// TestGradientsBesideMinusInfinity has a bias with −Inf in it: the elements that are finite are checked, through a node
// that adds them up, and those at −Inf must have a gradient of 0.
func TestGradientsBesideMinusInfinity(t *testing.T) {
	c := newBench(t)
	hole := input(c.g, "hole", dense([]float64{0, -inf, 0, 0, -inf, -inf, -inf, -inf, 0, 0, 0, -inf}, 3, 4))
	free := c.in("free", 3, 4)
	bias := c.node(G.Add(free, hole))
	out := c.node(layers.ScaledDotProduct(c.b, c.in("q", 2, 3, 2), c.in("k", 2, 4, 2), c.in("v", 2, 4, 3), layers.AttentionOptions{Mask: layers.Mask{Bias: bias}}))
	cost := c.node(gradcheck.Project(out, 1))
	grads := gradients(t, cost, c.wrt...)
	if err := gradcheck.Expr(cost, c.wrt...); err != nil {
		t.Error(err)
	}
	d := read(t, grads[0])[0]
	for i, h := range hole.Value().Data().([]float64) {
		if masked := h == -inf; masked && d[i] != 0 {
			t.Errorf("element %d of the bias is −Inf and has a gradient of %v", i, d[i])
		}
	}
}

// everyActivation is every one there is.
var everyActivation = func() (all []layers.Activation) {
	for a := layers.ReLU; ; a++ {
		if _, err := a.MarshalText(); err != nil {
			return all
		}
		all = append(all, a)
	}
}()

func TestGradientsOfNormsAndFeedForwards(t *testing.T) {
	var cases []gradientCase
	add := func(name string, build func(c *bench) *G.Node) { cases = append(cases, gradientCase{name, build}) }

	for _, shape := range [][]int{{4}, {3, 4}, {2, 3, 4}, {2, 1, 2, 4}} {
		for heads := 1; heads <= 2; heads++ {
			add(fmt.Sprintf("rms norm of %v, %d heads", tensor.Shape(shape), heads), func(c *bench) *G.Node {
				l := must[*layers.RMSNorm](c)(layers.NewRMSNorm(c.p, 4/heads, layers.NormConfig{Eps: 0.01}))
				return c.node(l.ForwardHeads(c.b, c.in("x", shape...), heads))
			})
		}
		add(fmt.Sprintf("silu of %v", tensor.Shape(shape)), func(c *bench) *G.Node {
			return c.node(layers.SiLU.Forward(c.b, c.in("x", shape...)))
		})
	}
	for _, a := range everyActivation {
		for _, noBias := range []bool{false, true} {
			add(fmt.Sprintf("gated feed-forward with %v, no bias %t", a, noBias), func(c *bench) *G.Node {
				return c.node(c.feedForward(3, layers.FeedForwardConfig{Hidden: 5, Activation: a, Gated: true, NoBias: noBias}).Forward(c.b, c.in("x", 2, 2, 3)))
			})
		}
	}
	add("feed-forward with silu", func(c *bench) *G.Node {
		return c.node(c.feedForward(3, layers.FeedForwardConfig{Hidden: 5, Activation: layers.SiLU}).Forward(c.b, c.in("x", 2, 2, 3)))
	})
	add("feed-forward without biases", func(c *bench) *G.Node {
		return c.node(c.feedForward(3, layers.FeedForwardConfig{NoBias: true}).Forward(c.b, c.in("x", 2, 3)))
	})
	checkGradients(t, cases)
}

func (c *bench) feedForward(dim int, config layers.FeedForwardConfig) *layers.FeedForward {
	c.Helper()
	return must[*layers.FeedForward](c)(layers.NewFeedForward(c.p, dim, config))
}
