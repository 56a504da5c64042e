package layers_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
	"github.com/heed-go/heed/train/optim"
)

// expertConfigs are the configurations of experts that the tests try.
var expertConfigs = map[string]layers.FeedForwardConfig{
	"of ReLU":                  {Hidden: 3, Experts: &layers.ExpertsConfig{Count: 3}},
	"one":                      {Hidden: 3, Activation: layers.GELU, Experts: &layers.ExpertsConfig{Count: 1}},
	"gated, as in Mixtral":     {Hidden: 3, Activation: layers.SiLU, Gated: true, NoBias: true, Experts: &layers.ExpertsConfig{Count: 4}},
	"unnormalized":             {Hidden: 3, Activation: layers.SiLU, Gated: true, NoBias: true, Experts: &layers.ExpertsConfig{Count: 5, Top: 3, Unnormalized: true}},
	"limited, as in gpt-oss":   {Hidden: 3, Activation: layers.SiLU, Gated: true, Experts: &layers.ExpertsConfig{Count: 4, RouterBias: true, Limit: 0.4}},
	"groups, as in DeepSeek":   {Hidden: 3, Activation: layers.SiLU, Gated: true, NoBias: true, Experts: &layers.ExpertsConfig{Count: 6, Sigmoid: true, Groups: 3, TopGroups: 2, ChoiceBias: true, Scale: 2.5, Shared: 2}},
	"with a loss and dropout":  {Hidden: 3, Activation: layers.Tanh, Dropout: 0.3, Experts: &layers.ExpertsConfig{Count: 4, Balance: 0.1}},
	"sigmoid and a loss, gate": {Hidden: 3, Activation: layers.Sigmoid, Gated: true, Experts: &layers.ExpertsConfig{Count: 4, Sigmoid: true, Unnormalized: true, Balance: 0.2}},
}

// balanced adds the losses of experts to a scalar node.
func (c *bench) balanced(n *G.Node) *G.Node {
	c.Helper()
	return must.Get(c.b.Balanced(layers.Loss{Mean: n}))(c).Mean
}

func TestGradientsOfExperts(t *testing.T) {
	var cases []gradientCase
	for name, config := range expertConfigs {
		config.Dropout = 0 // package ops tests it
		for _, shape := range [][]int{{2, 3, 4}, {3, 4}, {4}} {
			cases = append(cases, gradientCase{fmt.Sprintf("experts %s of %v", name, tensor.Shape(shape)), func(c *bench) *G.Node {
				y := c.node(c.feedForward(4, config).Forward(c.b, c.in("x", shape...)))
				return c.balanced(c.node(gradcheck.Project(y, 1)))
			}})
		}
		cases = append(cases, gradientCase{"decoder block, experts " + name, func(c *bench) *G.Node {
			d := must.Get(layers.NewDecoderBlock(c.p, 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: config}))(c)
			return c.node(d.Forward(c.b, c.in("x", 2, 3, 4), layers.Mask{}))
		}})
	}
	checkGradients(t, cases, mayVanish)
}

// TestExpertsHide checks that later tokens change earlier outputs only by rounding, even with NaN.
func TestExpertsHide(t *testing.T) {
	for name, config := range expertConfigs {
		t.Run(name, func(t *testing.T) {
			config.Dropout = 0
			run := func(fill float64) [][]float64 {
				c := newBench(t)
				d := must.Get(layers.NewDecoderBlock(c.p, 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: config}))(c)
				x := c.in("x", 1, 6, 4)
				for i := range 8 {
					x.Value().Data().([]float64)[16+i] *= fill
				}
				y := c.node(d.Forward(c.b, x, layers.Mask{}))
				w := random(1, 1, 6, 4)
				clear(w.Float64s()[16:])
				nodes := append(G.Nodes{y}, gradients(t, weigh(t, y, input(c.g, "w", w)), append(c.b.Learnables(), x)...)...)
				return read(t, nodes...)
			}
			want, got := run(1), run(math.NaN())
			for i := range want {
				if i == 0 {
					want[i], got[i] = want[i][:16], got[i][:16]
				}
				near(t, fmt.Sprint("result ", i), got[i], want[i], 1e-12)
			}
		})
	}
}

// TestExpertsLearnBalance trains a router on tokens of four kinds. At first it prefers one expert; with the loss, all
// experts get tokens.
func TestExpertsLearnBalance(t *testing.T) {
	share := func(weight float64) float64 {
		c := newBench(t)
		f := c.feedForward(4, layers.FeedForwardConfig{Hidden: 4, Experts: &layers.ExpertsConfig{Count: 4, Top: 1, RouterBias: true, Unnormalized: true, Balance: weight}})
		f.Experts.Router.Bias.Value.Float64s()[2] = 4
		x := make([]float64, 64*4)
		for i := range 64 {
			x[4*i+i%4] = 1
		}
		in := input(c.g, "x", dense(x, 64, 4))
		y := c.node(f.Forward(c.b, in))
		var chosen G.Value
		G.Read(c.b.Routings()[0].Chosen, &chosen)
		loss := must.Get(c.b.Balanced(layers.Loss{Mean: weigh(t, y, input(c.g, "w", dense(slices.Repeat([]float64{1e-3}, 256), 64, 4)))}))(t)
		must.Get(G.Grad(loss.Mean, c.b.Learnables()...))(t)
		vm := G.NewTapeMachine(c.g, G.BindDualValues(c.b.Learnables()...))
		defer vm.Close()
		solver := &optim.Solver{LearningRate: 0.05}
		for range 300 {
			must.Do(t, vm.RunAll())
			must.Do(t, solver.Step(G.NodesToValueGrads(c.b.Learnables())))
			vm.Reset()
		}
		counts := make([]int, 4)
		for _, id := range chosen.Data().([]int) {
			counts[id]++
		}
		return float64(slices.Max(counts)) / 64
	}
	if without, with := share(1e-9), share(1); without < 0.7 || with > 0.3 {
		t.Errorf("the largest expert has %.2f of the tokens without the loss, and %.2f with it; want at least 0.7 and at most 0.3", without, with)
	}
}

// TestRoutings checks what a Build says about experts.
func TestRoutings(t *testing.T) {
	c := newBench(t)
	config := layers.ModelConfig{Vocab: 5, Dim: 4, Layers: 2, Positions: layers.Rotary{}, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: expertConfigs["with a loss and dropout"]}}
	d := must.Get(layers.NewDecoder(c.p, config))(t)
	logits := c.node(d.Forward(c.b, c.ints("ids", []int{1, 2, 3}, 1, 3), layers.Mask{}))
	loss := c.node(mean(layers.CrossEntropy(c.b, logits, c.ints("targets", []int{1, 2, 3}, 1, 3), layers.CrossEntropyOptions{})))
	r := c.b.Routings()
	if len(r) != 2 || r[0].Layer != "blocks.0.feedforward" || !r[0].Chosen.Shape().Eq(tensor.Shape{3, 2}) {
		t.Fatalf("routings %+v", r)
	}
	got := read(t, loss, c.balanced(loss), r[0].Balance, r[1].Balance, r[0].Shares)
	near(t, "the loss", got[1], []float64{got[0][0] + 0.1*(got[2][0]+got[3][0])}, 1e-12)
	for i := range 3 {
		near(t, "the sum of shares", []float64{got[4][2*i] + got[4][2*i+1]}, []float64{1}, 1e-12)
	}
	evaluation := &layers.Build{}
	if l := must.Get(evaluation.Balanced(layers.Loss{Mean: loss}))(t); l.Mean != loss {
		t.Error("in a graph for evaluation, the loss has another term")
	}
}
