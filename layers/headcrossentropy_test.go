package layers_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// head returns a Linear of the bench's parameters.
func (c *bench) head(in, out int, noBias bool) *layers.Linear {
	c.Helper()
	return must.Get(layers.NewLinear(c.p.Scope("head"), in, out, layers.LinearConfig{NoBias: noBias}))(c)
}

// TestGradientsOfHeadCrossEntropy compares gradients with finite differences and with the composed form.
func TestGradientsOfHeadCrossEntropy(t *testing.T) {
	var cases []gradientCase
	for _, tc := range []struct {
		name    string
		shape   []int // of the targets
		targets []int
		vocab   int
		noBias  bool
		softcap float64
		options layers.CrossEntropyOptions
	}{
		{name: "a batch, some ignored", shape: []int{2, 3}, targets: []int{3, layers.Ignore, 2, -7, 0, 0}, vocab: 4},
		{name: "a sequence, no bias", shape: []int{3}, targets: []int{3, 0, 2}, vocab: 4, noBias: true},
		{name: "all ignored", shape: []int{2}, targets: []int{-1, -1}, vocab: 3},
		{name: "one row", shape: []int{1}, targets: []int{1}, vocab: 3},
		{name: "one class", shape: []int{2}, targets: []int{0, 0}, vocab: 1},
		{name: "softcap", shape: []int{4}, targets: []int{0, 2, -1, 1}, vocab: 3, softcap: 1.5},
		{name: "softcap, smoothed, class weights", shape: []int{4}, targets: []int{0, 2, -1, 1}, vocab: 3, softcap: 2, options: layers.CrossEntropyOptions{LabelSmoothing: 0.1, ClassWeights: []float64{1, 0, 2}}},
	} {
		cases = append(cases, gradientCase{tc.name, func(c *bench) *G.Node {
			states := c.in("states", append(slices.Clone(tc.shape), 3)...)
			loss, _, err := layers.HeadCrossEntropy(c.b, states, c.head(3, tc.vocab, tc.noBias), tc.softcap, c.ints("targets", tc.targets, tc.shape...), tc.options)
			return c.node(G.Square(c.node(loss.Mean, err)))
		}})
	}
	block := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}}
	for name, config := range map[string]layers.ModelConfig{
		"tied":                     {Tied: true},
		"tied, scaled, transform":  {Tied: true, TiedBias: true, EmbeddingScale: 0.5, HeadScale: 0.7, LogitSoftcap: 1.5, Transform: &layers.TransformConfig{Activation: layers.GELU, Norm: true}},
		"a head of its own weight": {Outputs: 5},
	} {
		config.Vocab, config.Dim, config.Layers, config.Block, config.Positions = 5, 4, 1, block, layers.Rotary{}
		model := func(states func(c *bench, ids *G.Node) (*layers.Trunk, *G.Node, error)) func(c *bench) *G.Node {
			return func(c *bench) *G.Node {
				trunk, x, err := states(c, c.ints("ids", []int{3, 0, 2, 3, 1, 1}, 2, 3))
				must.Do(c, err)
				loss, _, err := trunk.CrossEntropy(c.b, x, c.ints("targets", []int{0, -1, 3, 1, 1, 4}, 2, 3), layers.CrossEntropyOptions{})
				return c.node(loss.Mean, err)
			}
		}
		cases = append(cases, gradientCase{"decoder, " + name, model(func(c *bench, ids *G.Node) (*layers.Trunk, *G.Node, error) {
			d := must.Get(layers.NewDecoder(c.p, config))(c)
			x, err := d.States(c.b, ids, layers.Mask{})
			return d.Trunk, x, err
		})}, gradientCase{"encoder, " + name, model(func(c *bench, ids *G.Node) (*layers.Trunk, *G.Node, error) {
			e := must.Get(layers.NewEncoder(c.p, config))(c)
			x, err := e.States(c.b, ids, layers.Mask{})
			return e.Trunk, x, err
		})})
	}
	checkGradients(t, cases, mayVanish)
}

// TestHeadCrossEntropyPredicts checks the loss and the predicted ids of both forms in float32, with states of ignored
// positions that are NaN.
func TestHeadCrossEntropyPredicts(t *testing.T) {
	nan := float32(math.NaN())
	for _, composed := range []bool{false, true} {
		p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
		head := must.Get(layers.NewLinear(p, 2, 3, layers.LinearConfig{NoBias: true}))(t)
		copy(head.Weight.Value.Float32s(), []float32{1, 0, 0, 1, 0, 1})
		g := G.NewGraph()
		states := input(g, "states", dense([]float32{2, 1, nan, nan, 0, 3, 1, 1}, 2, 2, 2))
		loss, predicted, err := layers.HeadCrossEntropy(&layers.Build{Composed: composed}, states, head, 0, input(g, "targets", dense([]int{0, -1, 2, 1}, 2, 2)), layers.CrossEntropyOptions{})
		must.Do(t, err)
		var ids G.Value
		G.Read(predicted, &ids)
		mean := func(x ...float64) float64 { return (x[0] + x[1] + x[2]) / 3 }
		near(t, "loss", read(t, loss.Mean)[0], []float64{mean(math.Log(1+2*math.Exp(-1)), math.Log(2+math.Exp(-3)), math.Log(3))}, 1e-6)
		if got := ids.Data().([]int); !slices.Equal(got, []int{0, -1, 1, 0}) || !ids.Shape().Eq(tensor.Shape{2, 2}) {
			t.Errorf("composed %t: predicted %v of shape %v, want the ids 0, −1, 1 and 0 of shape (2, 2)", composed, got, ids.Shape())
		}
	}
}

// TestHeadCrossEntropyOfAdaptedHead adds a low-rank product to a head: the loss includes it.
func TestHeadCrossEntropyOfAdaptedHead(t *testing.T) {
	losses := func(adapted bool) (fused, separate float64) {
		c := newBench(t)
		head := c.head(3, 4, true)
		if adapted {
			c.b.Adapter = must.Get(layers.NewAdapter(c.p, layers.LowRank{Rank: 2, Alpha: 2, Targets: []string{"head"}}, 1))(t)
			randomise(c.b.Adapter.Params)
		}
		states, targets := c.in("states", 2, 3), c.ints("targets", []int{2, 0}, 2)
		loss, _, err := layers.HeadCrossEntropy(c.b, states, head, 0, targets, layers.CrossEntropyOptions{})
		x := read(t, c.node(loss.Mean, err), c.node(mean(layers.CrossEntropy(c.b, c.node(head.Forward(c.b, states)), targets, layers.CrossEntropyOptions{}))))
		return x[0][0], x[1][0]
	}
	base, _ := losses(false)
	if fused, separate := losses(true); fused != separate || fused == base {
		t.Errorf("with an adapter the loss is %v, want %v, and not the loss without it, %v", fused, separate, base)
	}
}

func TestHeadCrossEntropyErrors(t *testing.T) {
	c := newBench(t)
	head, states := c.head(3, 4, false), c.in("states", 2, 3)
	_, _, err := layers.HeadCrossEntropy(c.b, c.in("wide", 2, 5), head, 0, c.ints("targets", []int{0, 1}, 2), layers.CrossEntropyOptions{})
	must.Fail(t, err, "linear head: the input", "(2, 5)")
	trunk := must.Get(layers.NewEncoder(c.p.Scope("encoder"), layers.ModelConfig{Vocab: 4, Dim: 3, Positions: layers.NoPositions{}, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 1}}, Layers: 1}))(t).Trunk
	_, _, err = trunk.CrossEntropy(c.b, states, c.ints("more", []int{0, 1}, 2), layers.CrossEntropyOptions{})
	must.Fail(t, err, "encoder: the cross-entropy needs a head")
	loss, _, err := layers.HeadCrossEntropy(c.b, states, head, 0, c.ints("large", []int{0, 4}, 2), layers.CrossEntropyOptions{})
	must.Do(t, err)
	must.Refuse(tryRead(t, loss.Mean))(t, "head cross-entropy: target 4 at position 1 isn't one of 4 classes")
}

// BenchmarkHeadCrossEntropy measures the loss of GPT-2's head with its gradients, in both forms.
func BenchmarkHeadCrossEntropy(b *testing.B) {
	const n, dim, vocab = 256, 768, 50257
	for _, composed := range []bool{false, true} {
		b.Run(fmt.Sprintf("composed=%t", composed), func(b *testing.B) {
			p := must.Get(layers.NewParams(tensor.Float32, 1))(b)
			head := must.Get(layers.NewLinear(p, dim, vocab, layers.LinearConfig{NoBias: true}))(b)
			g, build := G.NewGraph(), &layers.Build{Training: true, Composed: composed, Buffers: &layers.Buffers{}}
			targets := make([]int, n)
			for i := range targets {
				targets[i] = i * 97 % vocab
			}
			states := input(g, "states", as(tensor.Float32, random(1, n, dim)))
			loss, _, err := layers.HeadCrossEntropy(build, states, head, 0, input(g, "targets", dense(targets, n)), layers.CrossEntropyOptions{})
			must.Do(b, err)
			w := must.Get(build.Bind(g, head.Weight))(b)
			gradients(b, loss.Mean, states, w)
			shared, own, err := ops.Plan(g)
			must.Do(b, err)
			vm := G.NewTapeMachine(g)
			defer vm.Close()
			for b.Loop() {
				vm.Reset()
				must.Do(b, vm.RunAll())
			}
			b.ReportMetric(float64(shared+own)/(1<<20), "MiB")
		})
	}
}
