package layers_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// lossGraph holds a graph of a model's loss, for sequences of one length, and the machine that runs the graph.
type lossGraph struct {
	b     *layers.Build
	grads G.Nodes // gradients of the parameters, in a training graph
	count *G.Node // Count of the loss
	read  []G.Value
	vm    G.VM
}

// newLossGraph builds a graph. Graphs with the same length get the same ids.
func newLossGraph(t testing.TB, b *layers.Build, batch, length, vocab int, logits func(b *layers.Build, ids, targets *G.Node) (*G.Node, error)) *lossGraph {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(length), 1))
	g := G.NewGraph()
	ints := func(name string) *G.Node {
		x := make([]int, batch*length)
		for i := range x {
			x[i] = r.IntN(vocab)
		}
		return input(g, name, dense(x, batch, length))
	}
	ids, targets := ints("ids"), ints("targets")
	y := must.Get(logits(b, ids, targets))(t)
	if s := y.Shape(); len(s) == 2 { // one class per sequence
		targets = input(g, "classes", dense(make([]int, batch), batch))
	}
	loss := must.Get(layers.CrossEntropy(b, y, targets, layers.CrossEntropyOptions{}))(t)
	l := &lossGraph{b: b, count: loss.Count, read: make([]G.Value, 2)}
	if b.Training {
		l.grads = gradients(t, loss.Mean, b.Learnables()...)
	}
	G.Read(loss.Mean, &l.read[0])
	G.Read(y, &l.read[1])
	l.vm = G.NewTapeMachine(g)
	t.Cleanup(func() { l.vm.Close() })
	return l
}

// run runs the graph with the given run number, and returns the loss, the logits and the gradients.
func (l *lossGraph) run(t testing.TB, number int) (out [][]float64) {
	t.Helper()
	l.b.Runs = uint64(number)
	l.vm.Reset()
	must.Do(t, l.vm.RunAll())
	for _, v := range l.read {
		out = append(out, floats(t, v))
	}
	for _, n := range l.grads {
		out = append(out, floats(t, n.Value()))
	}
	return out
}

// logitsOf makes models of every kind, for up to 12 tokens and a vocabulary of 13. It returns functions that build
// their logits.
func logitsOf(t testing.TB, p *layers.Params, block layers.BlockConfig, positions layers.PositionsConfig) map[string]func(b *layers.Build, ids, targets *G.Node) (*G.Node, error) {
	t.Helper()
	model := layers.ModelConfig{Vocab: 13, Dim: 8, Layers: 2, Positions: positions, Block: block, Dropout: block.Dropout}
	tagger := model
	tagger.Outputs = 13
	encoder := must.Get(layers.NewEncoder(p.Scope("tagger"), tagger))(t)
	decoder := must.Get(layers.NewDecoder(p.Scope("text"), model))(t)
	classifier := must.Get(layers.NewSequenceClassifier(p.Scope("labels"), layers.SequenceClassifierConfig{Model: tagger}))(t)
	pairs := must.Get(layers.NewEncoderDecoder(p.Scope("pairs"), layers.EncoderDecoderConfig{Model: model, Shared: true}))(t)
	lengths := func(ids *G.Node) layers.Mask {
		s := ids.Shape()
		return layers.Mask{KeyLengths: input(ids.Graph(), "lengths", dense([]int{s[1] - 1, s[1]}, 2))}
	}
	return map[string]func(b *layers.Build, ids, targets *G.Node) (*G.Node, error){
		"encoder": func(b *layers.Build, ids, _ *G.Node) (*G.Node, error) { return encoder.Forward(b, ids, lengths(ids)) },
		"decoder": func(b *layers.Build, ids, _ *G.Node) (*G.Node, error) { return decoder.Forward(b, ids, layers.Mask{}) },
		"sequence classifier": func(b *layers.Build, ids, _ *G.Node) (*G.Node, error) {
			return classifier.Forward(b, ids, lengths(ids))
		},
		"encoder-decoder": func(b *layers.Build, ids, targets *G.Node) (*G.Node, error) {
			return pairs.Forward(b, ids, targets, lengths(ids))
		},
	}
}

// TestBuffersChangeNoBit runs graphs for three lengths, for training and evaluation, in random order with the same
// Buffers, which fill freed memory with NaN. Each graph returns the same bits as a graph without Buffers.
func TestBuffersChangeNoBit(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	attention := layers.AttentionConfig{Heads: 2, Dropout: 0.2}
	blocks := map[string]layers.BlockConfig{
		"gelu":            {Attention: attention, Dropout: 0.1, FeedForward: layers.FeedForwardConfig{Activation: layers.GELU, Dropout: 0.1}},
		"relu, post-norm": {Attention: attention, Dropout: 0.1, PostNorm: true},
		"gated, rms norm, grouped heads": {
			Attention:   layers.AttentionConfig{Heads: 2, KeyValueHeads: 1, Softcap: 5},
			FeedForward: layers.FeedForwardConfig{Activation: layers.SiLU, Gated: true}, Norm: layers.NormConfig{Kind: "rms"},
		},
	}
	positions := map[string]layers.PositionsConfig{"gelu": layers.Learned{MaxLen: 12}, "relu, post-norm": layers.RelativeBias{Buckets: 4, MaxDistance: 3}, "gated, rms norm, grouped heads": layers.Rotary{}}
	for name, block := range blocks {
		for composed, dt := range map[bool]tensor.Dtype{false: tensor.Float32, true: tensor.Float64} {
			p := must.Get(layers.NewParams(dt, 1))(t)
			for model, logits := range logitsOf(t, p, block, positions[name]) {
				name := fmt.Sprintf("%s/%s/%v/composed %t", model, name, dt, composed)
				if testseed.LeftOut(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					buffers := &layers.Buffers{}
					buffers.Spoil()
					var own, shared []*lossGraph
					for _, length := range []int{7, 3, 12} {
						for _, training := range []bool{true, false} {
							own = append(own, newLossGraph(t, &layers.Build{Training: training, Seed: 5, Composed: composed}, 2, length, 13, logits))
							shared = append(shared, newLossGraph(t, &layers.Build{Training: training, Seed: 5, Composed: composed, Buffers: buffers}, 2, length, 13, logits))
						}
					}
					r := rand.New(rand.NewPCG(2, 3))
					for number := range 20 {
						i := r.IntN(len(own))
						want, got := own[i].run(t, number), shared[i].run(t, number)
						for j := range want {
							sameBits(t, fmt.Sprintf("run %d of graph %d: result %d", number, i, j), got[j], want[j])
						}
					}
				})
			}
		}
	}
}

// TestBuffersHoldTheLongest runs graphs for five lengths, in any order, with the same Buffers. Together they
// use about as much memory as the graph for the longest sequences alone.
func TestBuffersHoldTheLongest(t *testing.T) {
	testseed.Slow(t)
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	block := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Activation: layers.GELU}, Dropout: 0.1}
	m := must.Get(layers.NewDecoder(p, layers.ModelConfig{Vocab: 13, Dim: 64, Layers: 2, Positions: layers.NoPositions{}, Block: block}))(t)
	logits := func(b *layers.Build, ids, _ *G.Node) (*G.Node, error) { return m.Forward(b, ids, layers.Mask{}) }
	// held returns the bytes in use after each graph has run once.
	held := func(b layers.Build, lengths ...int) float64 {
		before := memory.HeapInUse()
		var graphs []*lossGraph
		for _, length := range lengths {
			b := b
			graphs = append(graphs, newLossGraph(t, &b, 32, length, 13, logits))
		}
		for i, l := range graphs {
			l.run(t, i)
		}
		bytes := memory.HeapInUse() - before
		for _, l := range graphs {
			*l = lossGraph{vm: l.vm}
		}
		return float64(bytes)
	}
	alone := held(layers.Build{Training: true, Buffers: &layers.Buffers{}}, 50)
	for _, lengths := range [][]int{{10, 20, 30, 40, 50}, {50, 40, 30, 20, 10}, {30, 50, 10, 40, 20}} {
		// Each graph adds about 2 % outside the Buffers: its nodes, and the numbers that ops keep per row.
		if together := held(layers.Build{Training: true, Buffers: &layers.Buffers{}}, lengths...); together > 1.1*alone {
			t.Errorf("graphs for lengths %v hold %.1f MB, want at most 1.1 times the %.1f MB of the longest alone", lengths, together/1e6, alone/1e6)
		}
	}
	if own := held(layers.Build{Training: true}, 50); alone > 0.65*own {
		t.Errorf("a training graph holds %.1f MB with Buffers, want at most 65 %% of the %.1f MB without", alone/1e6, own/1e6)
	}
	if with, own := held(layers.Build{Buffers: &layers.Buffers{}}, 50), held(layers.Build{}, 50); with > 0.35*own {
		t.Errorf("a graph for evaluation holds %.2f MB with Buffers, want at most 35 %% of the %.2f MB without", with/1e6, own/1e6)
	}
}

// TestBuffersLetGraphsGo builds graphs with the same Buffers and drops each graph: memory use doesn't grow.
func TestBuffersLetGraphsGo(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	m := must.Get(layers.NewDecoder(p, layers.ModelConfig{Vocab: 13, Dim: 32, Layers: 2, Positions: layers.NoPositions{}}))(t)
	buffers := &layers.Buffers{}
	run := func(length int) {
		g := G.NewGraph()
		logits := must.Get(m.Forward(&layers.Build{Buffers: buffers}, input(g, "ids", dense(make([]int, 8*length), 8, length)), layers.Mask{}))(t)
		var v G.Value
		G.Read(logits, &v)
		vm := G.NewTapeMachine(g)
		defer vm.Close()
		must.Do(t, vm.RunAll())
	}
	run(70)
	const rounds, limit = 40, 1 << 20 // a graph takes about 200 kB, and its buffers about 1 MB
	before := memory.HeapInUse()
	for i := range rounds {
		run(i + 1)
	}
	if grown := memory.HeapInUse() - before; grown > limit {
		t.Errorf("%d dropped graphs left %d bytes, want at most %d", rounds, grown, limit)
	}
	runtime.KeepAlive(buffers)
}

// TestBuffersAllocateNothing runs graphs in turns, with and without Buffers: the numbers of allocations are about the
// same. One allocation per op would add about 400.
func TestBuffersAllocateNothing(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	m := must.Get(layers.NewDecoder(p, layers.ModelConfig{Vocab: 13, Dim: 8, Layers: 2, Positions: layers.NoPositions{}, Dropout: 0.1}))(t)
	logits := func(b *layers.Build, ids, _ *G.Node) (*G.Node, error) { return m.Forward(b, ids, layers.Mask{}) }
	allocations := func(b layers.Build) float64 {
		var graphs []*lossGraph
		for _, length := range []int{5, 7} {
			b := b
			graphs = append(graphs, newLossGraph(t, &b, 2, length, 13, logits))
		}
		return testing.AllocsPerRun(20, func() {
			for _, l := range graphs {
				l.vm.Reset()
				must.Do(t, l.vm.RunAll())
			}
		})
	}
	own := allocations(layers.Build{Training: true})
	if with := allocations(layers.Build{Training: true, Buffers: &layers.Buffers{}}); with > 1.05*own {
		t.Errorf("a round makes %v allocations with Buffers, want at most 5 %% more than the %v without", with, own)
	}
}
