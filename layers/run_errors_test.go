package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// TestRunErrors runs graphs with invalid input values, in both forms. The run returns an error that names the invalid
// value, and doesn't panic.
func TestRunErrors(t *testing.T) {
	attention := func(m func(c *bench) layers.Mask) func(c *bench) *G.Node {
		return func(c *bench) *G.Node {
			x := c.in("x", 2, 3, 4)
			return c.node(c.multiHead(4, layers.AttentionConfig{Heads: 2}).Forward(c.b, x, x, x, m(c)))
		}
	}
	lengths := func(lengths ...int) func(c *bench) *G.Node {
		return attention(func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(lengths...)} })
	}
	// core builds attention without projections, with one past key. The argument mask makes the mask from a node of
	// ints, one for each of the 2 batch elements.
	core := func(mask func(ints *G.Node) layers.Mask, values ...int) func(c *bench) *G.Node {
		return func(c *bench) *G.Node {
			o := pastOf([]int{2, 2, 1, 6}, []int{2, 2, 1, 4})(c)
			o.Mask = mask(c.lengths(values...))
			return c.node(layers.ScaledDotProduct(c.b, c.in("q", 2, 4, 3, 6), c.in("k", 2, 2, 5, 6), c.in("v", 2, 2, 5, 4), o))
		}
	}
	keys := func(n *G.Node) layers.Mask { return layers.Mask{KeyLengths: n} }
	causal := func(n *G.Node) layers.Mask { return layers.Mask{Causal: true, Offsets: n} }
	far := math.MaxInt / 2
	model := func(ids ...int) func(c *bench) *G.Node {
		return func(c *bench) *G.Node {
			e := must.Get(layers.NewEncoder(c.p, layers.ModelConfig{Vocab: 5, Positions: layers.Learned{MaxLen: 4}, Dim: 4, Layers: 1}))(c)
			return c.node(e.Forward(c.b, c.ints("ids", ids, 1, len(ids)), layers.Mask{}))
		}
	}
	loss := func(targets ...int) func(c *bench) *G.Node {
		return func(c *bench) *G.Node {
			return c.node(mean(layers.CrossEntropy(&layers.Build{}, c.in("logits", len(targets), 3), c.ints("targets", targets, len(targets)), layers.CrossEntropyOptions{})))
		}
	}
	// bound applies a linear layer to a node of shape (2, 4). A value set by opt may have another shape.
	bound := func(opt ...G.NodeConsOpt) func(c *bench) *G.Node {
		return func(c *bench) *G.Node {
			l := must.Get(layers.NewLinear(c.p, 4, 4, layers.LinearConfig{}))(c)
			x := G.NewTensor(c.g, tensor.Float64, 2, append([]G.NodeConsOpt{G.WithName("x"), G.WithShape(2, 4)}, opt...)...)
			return c.node(l.Forward(c.b, x))
		}
	}
	columns := tensor.New(tensor.WithShape(2, 4), tensor.AsFortran([]float64{1, 2, 3, 4, 5, 6, 7, 8}))

	for _, tc := range []struct {
		name  string
		build func(c *bench) *G.Node
		want  []string
	}{
		{"length over S", lengths(3, 4), []string{"attention", "length 4", "element 1", "0 and the 3 keys"}},
		{"length below 0", lengths(-1, 2), []string{"attention", "length -1", "element 0", "0 and the 3 keys"}},
		{"length of a block in a model", func(c *bench) *G.Node {
			block := must.Get(layers.NewEncoderBlock(c.p.Scope("blocks").Scope("3"), 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}))(c)
			return c.node(block.Forward(c.b, c.in("x", 2, 3, 4), layers.Mask{KeyLengths: c.lengths(3, 4)}))
		}, []string{"attention blocks.3.attention: key length 4 of batch element 1"}},
		{"length over past and new keys", core(keys, 6, 7), []string{"length 7", "element 1", "6 keys"}},
		{"offset out of range", core(causal, 0, far), []string{"offset", fmt.Sprint(far), "element 1"}},
		{"offset out of range below 0", core(causal, -far, 0), []string{"offset", fmt.Sprint(-far), "element 0"}},
		{"offset out of range, with a past alone", core(func(n *G.Node) layers.Mask { return layers.Mask{Offsets: n} }, -far, 0), []string{"offset", fmt.Sprint(-far), "element 0"}},
		{"offset out of range, without a past", attention(func(c *bench) layers.Mask { return causal(c.lengths(0, far)) }), []string{"offset", fmt.Sprint(far), "element 1"}},
		{"id of V", model(1, 5), []string{"embedding", "id 5", "position 1", "vocabulary of 5"}},
		{"id below 0", model(-1, 0), []string{"embedding", "id -1", "position 0", "vocabulary of 5"}},
		{"target of V", loss(0, 1, 3), []string{"cross-entropy", "target 3", "position 2", "3 classes"}},
		{"no value", bound(), []string{"No value bound to node x"}},
		{"other shape", bound(G.WithValue(random(1, 4, 2))), []string{"linear", "(2, 4)", "(4, 2)"}},
		{"more elements", bound(G.WithValue(random(1, 3, 4))), []string{"linear", "(2, 4)", "(3, 4)"}},
		{"fewer elements", bound(G.WithValue(random(1, 1, 4))), []string{"linear", "(2, 4)", "(1, 4)"}},
		{"laid out in columns", bound(G.WithValue(columns)), []string{"linear", "rows"}},
		{"short mask", attention(func(c *bench) layers.Mask {
			return layers.Mask{Bias: G.NewTensor(c.g, tensor.Float64, 2, G.WithName("m"), G.WithShape(3, 3), G.WithValue(random(1, 2, 3)))}
		}), []string{"attention", "(3, 3)", "(2, 3)"}},
	} {
		for _, composed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, composed %t", tc.name, composed), func(t *testing.T) {
				c := newBench(t)
				c.b.Composed = composed
				y := tc.build(c)
				if !y.IsScalar() {
					y = c.node(ops.Sum(&ops.Env{}, y))
				}
				gradients(t, y, append(c.wrt, c.b.Learnables()...)...)
				_, err := tryRead(t, y)
				if composed && tc.name == "short mask" {
					tc.want[0] = "softmax" // the first op that reads the mask
				}
				must.Fail(t, err, tc.want...)
			})
		}
	}
}

// TestRunAfterAnError runs a graph with an invalid input, corrects the input and runs the graph again.
func TestRunAfterAnError(t *testing.T) {
	c := newBench(t)
	d := newDecoder(t, c.p)
	ids := c.ints("ids", []int{1, 2, 9}, 3)
	var out G.Value
	G.Read(c.node(d.Forward(c.b, ids, layers.Mask{})), &out)
	vm := G.NewTapeMachine(c.g)
	defer vm.Close()
	must.Fail(t, vm.RunAll(), "id 9")
	vm.Reset()
	for i, err := range []error{
		G.Let(ids, dense([]int{1, 2}, 2)), G.Let(ids, dense([]int{1, 2, 3, 4}, 2, 2)), G.Let(ids, dense([]float64{1, 2, 3}, 3)),
	} {
		if err == nil {
			t.Errorf("Let accepted invalid value %d", i)
		}
	}
	must.Do(t, G.Let(ids, dense([]int{1, 2, 6}, 3)))
	must.Do(t, vm.RunAll())
	if s := fmt.Sprint(out.Shape()); s != "(3, 7)" {
		t.Errorf("the output has shape %s, want (3, 7)", s)
	}
}
