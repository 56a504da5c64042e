package layers_test

import (
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

func newDecoder(t testing.TB, p *layers.Params) *layers.Decoder {
	t.Helper()
	return must.Get(layers.NewDecoder(p, layers.ModelConfig{Vocab: 7, Positions: layers.Learned{MaxLen: 6}, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Activation: layers.GELU}}, Layers: 2}))(t)
}

// TestOneModelInManyGraphs trains a model in one graph. Other graphs, built before the training for other batch sizes
// and lengths, use the trained weights.
func TestOneModelInManyGraphs(t *testing.T) {
	p := newParams(t)
	d := newDecoder(t, p)

	g := G.NewGraph()
	b := &layers.Build{Training: true}
	ids := input(g, "ids", dense([]int{1, 2, 3, 4, 5, 6, 0, 1, 2, 3}, 2, 5))
	targets := input(g, "targets", dense([]int{2, 3, layers.Ignore, 5, 6, 0, 1, 2, 3, layers.Ignore}, 2, 5))
	loss := must.Get(mean(layers.CrossEntropy(b, must.Get(d.Forward(b, ids, layers.Mask{}))(t), targets, layers.CrossEntropyOptions{})))(t)
	gradients(t, loss, b.Learnables()...)
	var lossValue G.Value
	G.Read(loss, &lossValue)
	vm := G.NewTapeMachine(g, G.BindDualValues(b.Learnables()...))
	defer vm.Close()

	var views []func() ([][]float64, error)
	for _, shape := range [][]int{{1, 5}, {3, 4}, {1, 1}, {6}} {
		g := G.NewGraph()
		v := dense(make([]int, tensor.Shape(shape).TotalSize()), shape...)
		views = append(views, runner(t, must.Get(d.Forward(&layers.Build{}, input(g, "ids", v), layers.Mask{}))(t)))
	}
	first := func() (rows [][]float64) { // the first position's logits, which depend only on the first id
		for _, v := range views {
			rows = append(rows, must.Get(v())(t)[0][:7])
		}
		return rows
	}
	before := first()
	solver := G.NewAdamSolver(G.WithLearnRate(0.01))
	var losses []float64
	for range 30 {
		must.Do(t, vm.RunAll())
		losses = append(losses, floats(t, lossValue)[0])
		must.Do(t, solver.Step(G.NodesToValueGrads(b.Learnables())))
		vm.Reset()
	}
	if losses[29] > losses[0]/5 {
		t.Errorf("the loss went from %v to %v, want at most a fifth", losses[0], losses[29])
	}
	after := first()
	for i := range after {
		near(t, "another graph's output", after[i], after[0], 1e-12)
		if slices.Equal(before[i], after[i]) {
			t.Errorf("graph %d has the same output before and after training", i)
		}
	}
}

func TestBuildBinds(t *testing.T) {
	p := newParams(t)
	l := must.Get(layers.NewLinear(p.Scope("a"), 2, 2, layers.LinearConfig{}))(t)
	g := G.NewGraph()
	x := input(g, "x", random(1, 3, 2))
	b := &layers.Build{}
	y := must.Get(l.Forward(b, x))(t)
	must.Get(l.Forward(b, y))(t)
	if n := b.Learnables(); len(n) != 2 || n[0].Name() != "a.weight" || n[1].Name() != "a.bias" {
		t.Errorf("a layer applied twice has learnables %v, want a.weight and a.bias", n)
	}
	if b.Learnables()[0].Value().Uintptr() != l.Weight.Value.Uintptr() {
		t.Error("the node doesn't use the parameter's own memory")
	}

	t.Run("by another Build for the same graph", func(t *testing.T) {
		must.Refuse(l.Forward(&layers.Build{}, x))(t, `"a.weight"`, "another Build", "one Build per graph")
	})
	t.Run("another parameter with that name", func(t *testing.T) {
		twin := must.Get(layers.NewLinear(newParams(t).Scope("a"), 2, 2, layers.LinearConfig{}))(t)
		must.Refuse(twin.Forward(b, x))(t, `"a.weight"`, "(2, 2)")
		must.Refuse(twin.Forward(&layers.Build{}, x))(t, `"a.weight"`, "(2, 2)")
	})
	t.Run("a node with that name", func(t *testing.T) {
		g := G.NewGraph()
		input(g, "a.bias", random(1, 5))
		must.Refuse(l.Forward(&layers.Build{}, input(g, "x", random(1, 3, 2))))(t, `"a.bias"`, "(5)")
	})
	t.Run("two graphs", func(t *testing.T) {
		must.Refuse(l.Forward(b, input(G.NewGraph(), "x", random(1, 3, 2))))(t, "Build", "another graph")
	})
}

func TestCapturedWeights(t *testing.T) {
	p := newParams(t)
	d := newDecoder(t, p)
	g := G.NewGraph()
	ids := input(g, "ids", dense([]int{1, 2, 3, 4, 5, 6}, 2, 3))
	b := &layers.Build{CaptureWeights: true}
	must.Get(d.Forward(b, ids, layers.Mask{}))(t)
	var nodes G.Nodes
	for i, c := range b.AttentionWeights() {
		if want := []string{"blocks.0.attention", "blocks.1.attention"}[i]; c.Layer != want {
			t.Errorf("captured %q, want %q", c.Layer, want)
		}
		if s := c.Weights.Shape(); !s.Eq(tensor.Shape{2, 2, 3, 3}) {
			t.Errorf("weights have shape %v, want (2, 2, 3, 3)", s)
		}
		nodes = append(nodes, c.Weights)
	}
	if len(nodes) != 2 {
		t.Fatalf("captured %d layers, want 2", len(nodes))
	}
	for _, w := range read(t, nodes...) {
		for r := 0; r < len(w); r += 3 {
			near(t, "a row's sum", []float64{w[r] + w[r+1] + w[r+2]}, []float64{1}, 1e-12)
			if q := r / 3 % 3; !allZero(w[r+q+1 : r+3]) {
				t.Errorf("query %d has the weights %v, want 0 for future keys", q, w[r:][:3])
			}
		}
	}
	if weights := (&layers.Build{}).AttentionWeights(); weights != nil {
		t.Errorf("without CaptureWeights: captured %v, want nil", weights)
	}
}

func TestParams(t *testing.T) {
	p := newParams(t)
	d := newDecoder(t, p)
	var names []string
	for _, q := range p.All() {
		names = append(names, q.Name)
	}
	for _, want := range []string{
		"embedding.weight", "positions.weight", "blocks.0.attention.query.weight", "blocks.1.attention.output.bias",
		"blocks.1.feedforward.up.weight", "blocks.1.feedforward.down.bias", "blocks.0.norm1.weight", "blocks.0.norm2.bias",
		"norm.weight", "head.weight", "head.bias",
	} {
		if !slices.Contains(names, want) || p.Get(want) == nil || p.Scope("any").Get(want) != p.Get(want) {
			t.Errorf("no parameter %q in %v", want, strings.Join(names, " "))
		}
	}
	if p.Get("nothing") != nil {
		t.Error("Get with an unknown name returned a parameter, want nil")
	}
	block := 4*(8*8+8) + (8*32 + 32) + (32*8 + 8) + 2*(8+8)
	if want := 7*8 + 6*8 + 2*block + (8 + 8) + (8*7 + 7); p.Count() != want {
		t.Errorf("Count is %d, want %d", p.Count(), want)
	}
	if d.Head.Weight != p.Get("head.weight") {
		t.Error("the head's parameter isn't the parameter with its name in the set")
	}

	must.Refuse(layers.NewDecoder(p, layers.ModelConfig{Vocab: 7, Positions: layers.Learned{MaxLen: 6}, Dim: 8, Layers: 1}))(t, `"embedding.weight"`, "Scope")
	must.Refuse(layers.NewParams(tensor.Int, 1))(t, "float32 or float64", "int")
	must.Refuse(p.New("empty", layers.Zeros(), 3, 0))(t, `"empty"`, "(3, 0)")

	// A value depends on the seed and the name, not on other parameters. The dtype changes only its precision.
	alone := newParams(t)
	w := must.Get(alone.Scope("head").New("weight", layers.Init{Kind: "xavier_uniform"}, 7, 8))(t)
	sameBits(t, "a parameter made on its own", w.Value.Float64s(), d.Head.Weight.Value.Float64s())
	small := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	w32 := must.Get(small.Scope("head").New("weight", layers.Init{Kind: "xavier_uniform"}, 7, 8))(t)
	near(t, "in float32", floats(t, w32.Value), w.Value.Float64s(), 1e-7)
	other := must.Get(layers.NewParams(tensor.Float64, 2))(t)
	if v := must.Get(other.Scope("head").New("weight", layers.Init{Kind: "xavier_uniform"}, 7, 8))(t); slices.Equal(v.Value.Float64s(), w.Value.Float64s()) {
		t.Error("two seeds gave the same weight")
	}
}
