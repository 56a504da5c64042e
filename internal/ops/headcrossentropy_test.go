package ops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
)

// headCase is a head on states that may be embeddings of the head's own weight.
type headCase struct {
	n, width, vocab int
	bias, tied      bool
	softcap         float64
	options         CrossEntropyOptions
	weights         []float64 // of positions; nil for none
	targets         []int
	chunk           int // rows in a chunk; 0: the usual number
	cores           int
	buffers         *Buffers
}

func drawHeadCase(r *rand.Rand) headCase {
	c := headCase{
		n: 1 + r.IntN(12), width: 1 + r.IntN(6), vocab: 1 + r.IntN(9), bias: r.IntN(2) == 0, tied: r.IntN(2) == 0,
		softcap: float64(2 * r.IntN(2)), options: CrossEntropyOptions{LabelSmoothing: 0.1 * float64(r.IntN(2))},
	}
	c.chunk = 1 + r.IntN(c.n)
	if r.IntN(2) == 0 {
		c.buffers = Spoiling()
	}
	if r.IntN(2) == 0 {
		for range c.vocab {
			c.options.ClassWeights = append(c.options.ClassWeights, float64(r.IntN(3)))
		}
	}
	if r.IntN(2) == 0 {
		for range c.n {
			c.weights = append(c.weights, float64(r.IntN(3)))
		}
	}
	for range c.n {
		c.targets = append(c.targets, r.IntN(c.vocab+2)-2)
	}
	return c
}

// ignored reports whether position i has no weight.
func (c headCase) ignored(i int) bool {
	t := c.targets[i]
	return t < 0 || c.weights != nil && c.weights[i] == 0 || c.options.ClassWeights != nil && c.options.ClassWeights[t] == 0
}

// run returns the loss, the gradients of the loss times 0.3, and the predicted ids, after two runs of the graph. The
// states of ignored positions are NaN.
func (c headCase) run(t *testing.T, seed uint64, fused bool) (results [][]float64, predicted []int) {
	r := rand.New(rand.NewPCG(seed, 2))
	g, e := G.NewGraph(), &Env{Buffers: c.buffers, Cores: c.cores}
	input := func(name string, shape ...int) *G.Node {
		x := make([]float64, tensor.Shape(shape).TotalSize())
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return G.NodeFromAny(g, tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x)), G.WithName(name))
	}
	ints := func(name string, x []int) *G.Node {
		return G.NodeFromAny(g, tensor.New(tensor.WithShape(c.n), tensor.WithBacking(slices.Clone(x))), G.WithName(name))
	}
	x, w := input("x", c.n, c.width), input("w", c.vocab, c.width)
	wrt := G.Nodes{x, w}
	for i := range c.n {
		if c.ignored(i) {
			x.Value().(*tensor.Dense).Float64s()[i*c.width] = math.NaN()
		}
	}
	var bias *G.Node
	if c.bias {
		bias = input("b", c.vocab)
		wrt = append(wrt, bias)
	}
	if c.weights != nil {
		c.options.Weights = G.NodeFromAny(g, tensor.New(tensor.WithShape(c.n), tensor.WithBacking(slices.Clone(c.weights))), G.WithName("weights"))
	}
	states, targets := x, ints("targets", c.targets)
	if c.tied {
		ids := make([]int, c.n)
		for i := range ids {
			ids[i] = r.IntN(c.vocab)
		}
		states = made(t)(Add(e, x, made(t)(Scale(e, made(t)(Embedding(e, w, ints("ids", ids))), 1.5))))
	}
	var loss, best *G.Node
	var err error
	switch {
	case !fused:
		y := made(t)(Linear(e, states, w, bias, Identity))
		if c.softcap != 0 {
			y = made(t)(Softcap(e, y, c.softcap))
		}
		loss, _, err = CrossEntropy(e, y, targets, c.options)
		best = made(t)(Predicted(e, y, loss))
	case c.chunk == 0:
		loss, _, best, err = HeadCrossEntropy(e, states, w, bias, c.softcap, targets, c.options)
	default:
		loss, best, err = headCrossEntropy[float64](e, states, w, bias, c.softcap, targets, c.options, c.chunk)
	}
	must.Do(t, err)
	cost := made(t)(G.Mul(loss, G.NewConstant(0.3)))
	grads := must.Get(G.Grad(cost, wrt...))(t)
	nodes := append(G.Nodes{loss}, grads...)
	values := make([]G.Value, len(nodes))
	for i, n := range nodes {
		G.Read(n, &values[i])
	}
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	for range 2 {
		vm.Reset()
		must.Do(t, vm.RunAll())
	}
	for i, n := range nodes {
		results = append(results, slices.Clone(elements[float64](values[i], n.Shape().TotalSize())))
	}
	return results, best.Value().Data().([]int)
}

// TestHeadCrossEntropyAgrees compares the fused op with separate ops, for random sizes, options and chunks.
func TestHeadCrossEntropyAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for round := range 300 {
		c := drawHeadCase(r)
		got, best := c.run(t, uint64(round), true)
		want, wantBest := c.run(t, uint64(round), false)
		Near(t, fmt.Sprintf("%+v", c), got, want, 1e-12)
		if !slices.Equal(best, wantBest) {
			t.Fatalf("%+v: predicted %v, want %v", c, best, wantBest)
		}
	}
}

// TestHeadCrossEntropyOnCores computes several chunks on different numbers of cores: no bit may change.
func TestHeadCrossEntropyOnCores(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	c := headCase{n: 70, width: 24, vocab: 1500, bias: true, tied: true, chunk: 32}
	for range c.n {
		c.targets = append(c.targets, r.IntN(c.vocab+100)-100)
	}
	c.cores = 1
	want, _ := c.run(t, 1, true)
	for _, c.cores = range []int{2, 3, 0} {
		got, _ := c.run(t, 1, true)
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("result %d on %d cores differs from the result on one core", i, c.cores)
			}
		}
	}
}

// TestTiedTableHasOneGradient checks that a graph whose head uses a table of embeddings needs memory for one gradient
// of the table.
func TestTiedTableHasOneGradient(t *testing.T) {
	const n, width, vocab = 20, 64, 20000
	g, e := G.NewGraph(), &Env{Buffers: &Buffers{}}
	table := G.NewMatrix(g, tensor.Float32, G.WithShape(vocab, width), G.WithName("table"))
	ids := G.NewVector(g, tensor.Int, G.WithShape(n), G.WithName("ids"))
	loss, _, _, err := HeadCrossEntropy(e, made(t)(Embedding(e, table, ids)), table, nil, 0, ids, CrossEntropyOptions{})
	must.Do(t, err)
	must.Get(G.Grad(loss, table))(t)
	shared, own, err := Plan(g)
	must.Do(t, err)
	if want := 4 * (vocab*width + n*vocab + 3*n*width); shared > want || own > 1000 {
		t.Errorf("the graph needs %d bytes in Buffers and %d outside, want up to %d for a table, the logits and the states", shared, own, want)
	}
}
