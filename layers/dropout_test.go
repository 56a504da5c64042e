package layers_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// dropoutNodes counts the dropout nodes of a graph.
func dropoutNodes(g *G.ExprGraph) int {
	n := 0
	for _, node := range g.AllNodes() {
		if op := node.Op(); op != nil && strings.Contains(strings.ToLower(fmt.Sprint(op)), "dropout") {
			n++
		}
	}
	return n
}

func TestOnlyTrainingGraphsHoldDropout(t *testing.T) {
	for _, tc := range []struct {
		training bool
		p        float64
		want     int // 1 for the embedding, and per block 1 for the weights, 1 for the hidden units and 2 for the sub-layers
	}{{true, 0.1, 9}, {true, 0, 0}, {false, 0.1, 0}} {
		p := newParams(t)
		d := must.Get(layers.NewDecoder(p, layers.ModelConfig{Vocab: 5, Positions: layers.Learned{MaxLen: 4}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, Dropout: tc.p}, Dropout: tc.p, FeedForward: layers.FeedForwardConfig{Dropout: tc.p}}, Layers: 2, Dropout: tc.p}))(t)
		g := G.NewGraph()
		must.Get(d.Forward(&layers.Build{Training: tc.training}, input(g, "ids", dense([]int{1, 2, 3}, 3)), layers.Mask{}))(t)
		if n := dropoutNodes(g); n != tc.want {
			t.Errorf("training %t, P %v: %d dropout nodes, want %d", tc.training, tc.p, n, tc.want)
		}
	}
}

// TestDropoutAndItsGradient checks that dropout keeps the same elements of its input and of the gradient.
func TestDropoutAndItsGradient(t *testing.T) {
	for _, p := range []float64{0.1, 0.5, 0.9} {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			t.Run(fmt.Sprintf("%v of %v", p, dt), func(t *testing.T) {
				g := G.NewGraph()
				x := random(1, 40, 500)
				xNode, w := input(g, "x", as(dt, x)), input(g, "w", as(dt, random(2, 40, 500)))
				y := must.Get(layers.Dropout{P: p}.Forward(&layers.Build{Training: true, Seed: 3}, xNode))(t)
				cost := weigh(t, y, w)
				got := read(t, y, gradients(t, cost, xNode)[0])
				kept := 0
				xs, ws := floats(t, xNode.Value()), floats(t, w.Value())
				for i, v := range got[0] {
					scale := 0.0
					if v != 0 {
						scale = 1 / (1 - p)
						kept++
					}
					if math.Abs(v-xs[i]*scale) > 1e-5*math.Abs(v) || math.Abs(got[1][i]-ws[i]*scale) > 1e-5*math.Abs(v)+1e-5 {
						t.Fatalf("element %d: %v became %v and its gradient %v became %v, want both times %v", i, xs[i], v, ws[i], got[1][i], scale)
					}
				}
				n := float64(len(xs))
				if sd := math.Sqrt(n * p * (1 - p)); math.Abs(float64(kept)-n*(1-p)) > 5*sd {
					t.Errorf("kept %d of %v, want about %v", kept, n, n*(1-p))
				}
			})
		}
	}
}

// kept runs a graph several times. The graph applies several dropouts, each to a vector of n ones. Before run i, b.Runs
// becomes numbers[i], if there are numbers. kept returns the outputs, indexed by run, dropout and element.
func kept(t *testing.T, b layers.Build, n, dropouts, runs int, numbers ...uint64) [][][]float64 {
	t.Helper()
	g := G.NewGraph()
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	x := input(g, "x", dense(ones, n))
	nodes := make(G.Nodes, dropouts)
	b.Training = true
	for i := range nodes {
		nodes[i] = must.Get(layers.Dropout{P: 0.5}.Forward(&b, x))(t)
	}
	again := runner(t, nodes...)
	var out [][][]float64
	for i := range runs {
		if numbers != nil {
			b.Runs = numbers[i]
		}
		out = append(out, must.Get(again())(t))
	}
	return out
}

// TestDropoutMasksDiffer compares the masks of different layers, runs and seeds, and the parts of one mask. Any two
// must agree in about half of their elements.
func TestDropoutMasksDiffer(t *testing.T) {
	const part, parts = 4096, 5 // several goroutines share the elements
	var masks [][]float64
	var names []string
	for seed := range uint64(3) {
		for run, dropouts := range kept(t, layers.Build{Seed: seed}, parts*part, 3, 3) {
			for d, mask := range dropouts {
				for i := range parts {
					masks = append(masks, mask[i*part:][:part])
					names = append(names, fmt.Sprintf("seed %d, run %d, layer %d, part %d", seed, run, d, i))
				}
			}
		}
	}
	for i, a := range masks {
		for j, b := range masks[:i] {
			same := 0
			for k := range a {
				if (a[k] == 0) == (b[k] == 0) {
					same++
				}
			}
			if d := math.Abs(float64(same) - part/2); d > 6*math.Sqrt(part)/2 {
				t.Errorf("%s and %s agree in %d of %d elements, want about half", names[i], names[j], same, part)
			}
		}
	}
}

func TestDropoutIsDecidedBySeedAndRun(t *testing.T) {
	want := kept(t, layers.Build{Seed: 7}, 1000, 2, 4)
	for i, run := range kept(t, layers.Build{Seed: 7}, 1000, 2, 4) {
		for d := range run {
			sameBits(t, "the same seed", run[d], want[i][d])
		}
	}
	for i, run := range kept(t, layers.Build{Seed: 7, Runs: 2}, 1000, 2, 2) {
		for d := range run {
			sameBits(t, "resumed training", run[d], want[2+i][d])
		}
	}
	numbers := []uint64{3, 0, 1, 2, 2} // the last run has number 3, because setting 2 again changes nothing
	for i, run := range kept(t, layers.Build{Seed: 7}, 1000, 2, len(numbers), numbers...) {
		n := min(numbers[i]+uint64(max(i-3, 0)), 3)
		for d := range run {
			sameBits(t, "a run with a given number", run[d], want[n][d])
		}
	}
	if other := kept(t, layers.Build{Seed: 8}, 1000, 1, 1); slices.Equal(other[0][0], want[0][0]) {
		t.Error("two seeds draw the same mask")
	}
}
