package main

import (
	"math"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// small has a different size for every axis, so that two axes can't be mixed up unnoticed.
var small = bench.GPT{Name: "small", Batch: 2, Length: 5, Dim: 12, Heads: 3, Blocks: 2, Vocab: 7}

var (
	smallIDs     = []int{0, 3, 3, 6, 1, 2, 2, 5, 4, 0}
	smallTargets = []int{6, 1, 0, 0, 2, 4, 5, 3, 3, 1}
)

// TestAgreesWithHeed checks that the network has the same loss and gradients as Heed's model with the same weights.
func TestAgreesWithHeed(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float32, 3))(t)
	model, err := layers.NewDecoder(p, layers.ModelConfig{
		Vocab: small.Vocab, Dim: small.Dim, Layers: small.Blocks, Positions: layers.Learned{MaxLen: small.Length},
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: small.Heads}},
	})
	must.Do(t, err)
	values := map[string]*tensor.Dense{}
	for _, q := range p.All() {
		values[q.Name] = turn(t, q.Name, q.Value)
	}
	n, err := newNetwork(small, smallIDs, smallTargets, func(name string, shape ...int) *tensor.Dense {
		v := values[name]
		if v == nil {
			t.Fatalf("Heed has no parameter %q", name)
		}
		if err := v.Reshape(shape...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	})
	must.Do(t, err)
	if len(n.params) != len(values) {
		t.Errorf("the network has %d parameters, want %d as in Heed's model", len(n.params), len(values))
	}
	vm := G.NewTapeMachine(n.graph, G.BindDualValues(n.params...))
	defer vm.Close()
	must.Do(t, vm.RunAll())

	loss, gradients := heed(t, model)
	near(t, "loss", []float32{n.value.Data().(float32)}, []float32{loss})
	for _, param := range n.params {
		gradient := must.Get(param.Grad())(t)
		near(t, param.Name(), gradient.Data().([]float32), gradients[param.Name()])
	}

	// The first run must not overwrite anything that another run needs.
	vm.Reset()
	must.Do(t, vm.RunAll())
	near(t, "loss of a second run", []float32{n.value.Data().(float32)}, []float32{loss})
}

// heed returns the loss of Heed's model, and its gradients by name.
func heed(t *testing.T, model *layers.Decoder) (float32, map[string][]float32) {
	t.Helper()
	g := G.NewGraph()
	input := func(name string, ids []int) *G.Node {
		v := tensor.New(tensor.WithShape(small.Batch, small.Length), tensor.WithBacking(ids))
		return G.NewMatrix(g, tensor.Int, G.WithShape(v.Shape()...), G.WithName(name), G.WithValue(v))
	}
	b := &layers.Build{Composed: true}
	logits := must.Get(model.Forward(b, input("ids", smallIDs), layers.Mask{}))(t)
	loss := must.Get(layers.CrossEntropy(b, logits, input("targets", smallTargets), layers.CrossEntropyOptions{}))(t)
	var value G.Value
	G.Read(loss.Mean, &value)
	must.Get(G.Grad(loss.Mean, b.Learnables()...))(t)
	vm := G.NewTapeMachine(g, G.BindDualValues(b.Learnables()...))
	defer vm.Close()
	must.Do(t, vm.RunAll())
	gradients := map[string][]float32{}
	for _, node := range b.Learnables() {
		gradient := must.Get(node.Grad())(t)
		gradients[node.Name()] = turn(t, node.Name(), gradient.(*tensor.Dense)).Data().([]float32)
	}
	return value.Data().(float32), gradients
}

// turn returns a copy of one of Heed's parameters or gradients in the network's layout: a weight is (in, out), not
// (out, in).
func turn(t *testing.T, name string, x *tensor.Dense) *tensor.Dense {
	t.Helper()
	x = x.Clone().(*tensor.Dense)
	if x.Dims() != 2 || strings.HasPrefix(name, "embedding.") || strings.HasPrefix(name, "positions.") {
		return x
	}
	turned := must.Get(tensor.Transpose(x))(t)
	return turned.(*tensor.Dense)
}

// near fails the test unless all numbers agree up to float32 rounding.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 2e-6 {
			t.Errorf("%s: number %d is %v, Heed has %v", what, i, got[i], want[i])
			return
		}
	}
}

// TestLearns checks that the loss starts near the loss of a random guess, and falls at every step.
func TestLearns(t *testing.T) {
	step := must.Get(prepare(small))(t)
	last := math.Inf(1)
	for i := range 30 {
		loss := must.Get(step())(t)
		if guess := math.Log(float64(small.Vocab)); i == 0 && math.Abs(float64(loss)-guess) > 0.1 {
			t.Errorf("the first loss is %v, want a loss near %v, the loss of guessing", loss, guess)
		}
		if float64(loss) >= last {
			t.Errorf("the loss of step %d is %v, want it below %v, the loss of the step before", i, loss, last)
		}
		last = float64(loss)
	}
}
