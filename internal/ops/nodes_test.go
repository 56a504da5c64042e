package ops_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers/gradcheck"
)

// rotary is an ops.Rotary with only the required fields.
var rotary = ops.Rotary{Name: "rotary", Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: 1}

// TestEqualNodesAreOne builds the same expressions twice in one graph, which gives one node. Ops that keep state, or
// that compute several outputs, must still give the right values.
func TestEqualNodesAreOne(t *testing.T) {
	e := func() *ops.Env { return &ops.Env{} }
	for name, build := range map[string]func(g *graph, x, w *G.Node) (*G.Node, error){
		"layer norm": func(_ *graph, x, w *G.Node) (*G.Node, error) { return ops.LayerNorm(e(), x, w, w, 1e-5) },
		"rms norm":   func(_ *graph, x, w *G.Node) (*G.Node, error) { return ops.RMSNorm(e(), x, w, 1e-5) },
		"softmax":    func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Softmax(e(), "", x, ops.Mask{Causal: true}) },
		"add":        func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Add(e(), x, x) },
		"gelu":       func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Activate(e(), x, ops.GELU) },
		"silu":       func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Activate(e(), x, ops.SiLU) },
		"gate":       func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Gate(e(), x, x, ops.SiLU) },
		"rotary":     func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Rotate(e(), x, nil, rotary) },
		"matmul":     func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.MatMul(e(), x, x, false, true, 1, true) },
		"pool":       func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Pool(e(), x, nil, ops.LastPooling) },
		"attention": func(_ *graph, x, w *G.Node) (*G.Node, error) {
			return ops.Attention(e(), x, x, x, ops.AttentionConfig{Heads: 2, Scale: 1, Mask: ops.Mask{Bias: w}})
		},
		"attention with sinks": func(_ *graph, x, w *G.Node) (*G.Node, error) {
			return ops.Attention(e(), x, x, x, ops.AttentionConfig{Heads: 4, Sinks: w})
		},
		"attention with distances": func(g *graph, x, _ *G.Node) (*G.Node, error) {
			return ops.Attention(e(), x, x, x, ops.AttentionConfig{Heads: 2, Scale: 1, Distances: &ops.Distances{Keys: x, Queries: x, DistanceBuckets: ops.DistanceBuckets{MaxDistance: 2}}})
		},
		"additive scores":           func(_ *graph, x, w *G.Node) (*G.Node, error) { return ops.AdditiveScores(e(), x, x, w) },
		"additive scores, unscaled": func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.AdditiveScores(e(), x, x, nil) },
		"cross-entropy": func(g *graph, x, _ *G.Node) (*G.Node, error) {
			return mean(ops.CrossEntropy(e(), x, g.classes, ops.CrossEntropyOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t)
			x, w := g.in(4, 4), g.in(4)
			g.classes = g.ints(4)
			a, b := g.node(build(g, x, w)), g.node(build(g, x, w))
			cost := G.Must(G.Add(a, b))
			if !cost.IsScalar() {
				cost = G.Must(G.Add(g.node(gradcheck.Project(a, 1)), g.node(gradcheck.Project(b, 2))))
			}
			must.Do(t, gradcheck.Expr(cost, x, w))
		})
	}
}

// TestAttributesTellNodesApart builds ops with different attributes on the same input. If an op's name omitted an
// attribute, two of these ops would be one node.
func TestAttributesTellNodesApart(t *testing.T) {
	g, e := newGraph(t), &ops.Env{}
	x, y, w, ints := g.in(4, 4), g.in(4, 4), g.in(4), g.ints(1)
	nodes := map[*G.Node]string{}
	add := func(name string) func(n *G.Node, err error) {
		return func(n *G.Node, err error) {
			t.Helper()
			g.node(n, err)
			if other, ok := nodes[n]; ok {
				t.Errorf("%s and %s are the same node", name, other)
			}
			nodes[n] = name
		}
	}
	for a := ops.ReLU; a.Known(); a++ {
		add(a.String())(ops.Activate(e, x, a))
		add("gate " + a.String())(ops.Gate(e, x, x, a))
	}
	for i := range 8 {
		add(fmt.Sprint("matmul ", i))(ops.MatMul(e, x, x, i&1 != 0, i&2 != 0, 1, i&4 != 0))
	}
	add("matmul scaled")(ops.MatMul(e, x, x, false, false, 1.0000001, false))
	for _, eps := range []float64{1e-5, 1e-6} {
		add(fmt.Sprint("layer norm ", eps))(ops.LayerNorm(e, x, w, nil, eps))
		add(fmt.Sprint("rms norm ", eps))(ops.RMSNorm(e, x, w, eps))
	}
	for seed := range uint64(2) {
		e := &ops.Env{Training: true, Seed: seed}
		for stream := range 2 {
			for _, p := range []float64{0.1, 0.2} {
				add(fmt.Sprint("dropout ", p, seed, stream))(ops.Dropout(e, x, p))
			}
		}
	}
	for _, n := range []int{2, 4} {
		add(fmt.Sprint(n, " heads"))(ops.SplitHeads(e, x, n))
	}
	for _, n := range []int{1, 4} {
		add(fmt.Sprint("rows ", n))(ops.AddRows(e, x, x, n))
	}
	for _, smoothing := range []float64{0, 1e-9, 0.1, 1} {
		o := ops.CrossEntropyOptions{LabelSmoothing: smoothing}
		add(fmt.Sprint("cross-entropy smoothed by ", smoothing))(mean(ops.CrossEntropy(e, x, g.lengths(0, 1, 2, 3), o)))
	}
	for _, c := range []float64{1, 2} {
		add(fmt.Sprint("softcap ", c))(ops.Softcap(e, x, c))
		add(fmt.Sprint("add int ", c))(ops.AddInt(e, ints, int(c)))
	}
	for _, by := range []float64{1, 1.0000001} {
		add(fmt.Sprint("scale ", by))(ops.Scale(e, x, by))
	}
	for _, base := range []float64{100, 1000} {
		add(fmt.Sprint("shift ", base))(ops.Shift(e, g.ints(4), int(base)))
		add(fmt.Sprint("waves ", base))(ops.AddWaves(e, x, g.ints(4), base, false))
		add(fmt.Sprint("waves in halves ", base))(ops.AddWaves(e, x, g.ints(4), base, true))
		add(fmt.Sprint("waves from 0 ", base))(ops.AddWaves(e, x, nil, base, false))
	}
	add("first of all")(ops.Pool(e, x, nil, ops.FirstPooling))
	add("last of all")(ops.Pool(e, x, nil, ops.LastPooling))
	add("first")(ops.Pool(e, x, g.lengths(2), ops.FirstPooling))
	add("x with y")(ops.AdditiveScores(e, x, y, w))
	add("y with x")(ops.AdditiveScores(e, y, x, w))
	add("another scale")(ops.AdditiveScores(e, x, y, g.in(4)))
	add("no scale")(ops.AdditiveScores(e, x, y, nil))
	add("x with itself")(ops.AdditiveScores(e, x, x, w))
	for _, r := range []ops.Rotary{
		rotary,
		{Name: "rotary", Heads: 1, Frequencies: []float64{1}, Magnitude: 1},
		{Name: "rotary", Heads: 2, Frequencies: []float64{1}, Magnitude: 1},
		{Name: "rotary", Heads: 1, Frequencies: []float64{1, math.Nextafter(0.1, 1)}, Magnitude: 1},
		{Name: "rotary", Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: math.Nextafter(1, 2)},
		{Name: "rotary", Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: 1, Offset: 1},
		{Name: "rotary", Heads: 1, Frequencies: rotary.Frequencies, Magnitude: 1, Interleaved: true},
		{Name: "rotary", Heads: 1, Frequencies: rotary.Frequencies, Magnitude: 1, Inverse: true},
	} {
		add(fmt.Sprintf("%+v", r))(ops.Rotate(e, x, nil, r))
		if r.Offset == 0 { // positions replace the offset
			add(fmt.Sprintf("%+v with positions", r))(ops.Rotate(e, x, ints, r))
		}
	}
	for _, r := range []ops.Relative{{MaxDistance: 9}, {MaxDistance: 10}, {MaxDistance: 9, OneWay: true}} {
		for _, size := range [][2]int{{2, 2}, {2, 3}, {3, 3}} {
			for i, positions := range []*G.Node{nil, g.ints(2, size[0]), g.ints(2, size[0])} {
				add(fmt.Sprintf("%+v, queries and keys %v, positions %d", r, size, i))(ops.RelativeBias(e, x, positions, size[0], size[1], r))
			}
		}
	}
	masks(g, add)
}

// masks adds ops with different masks and options of attention.
func masks(g *graph, add func(name string) func(n *G.Node, err error)) {
	e := &ops.Env{}
	x, side, ints, bias, vectors, documents := g.in(2, 4, 3, 4), g.in(2, 3, 8), g.ints(2), g.in(3), g.in(8, 8), g.ints(2, 3)
	distances := func(keys, queries *G.Node, buckets, maxDistance int) *ops.Distances {
		return &ops.Distances{Keys: keys, Queries: queries, DistanceBuckets: ops.DistanceBuckets{Buckets: buckets, MaxDistance: maxDistance}}
	}
	for i, m := range []ops.Mask{
		{}, {Causal: true}, {Bias: bias}, {KeyLengths: ints}, {Causal: true, Offset: 1}, {Causal: true, Offset: -1}, {Causal: true, Offsets: ints},
		{Causal: true, KeyLengths: ints}, {Window: &ops.Window{Left: 1, Right: 1}}, {Window: &ops.Window{Left: 1, Right: -1}}, {Window: &ops.Window{Left: 11}},
		{Slopes: []float64{1, 1, 1, 1}}, {Slopes: []float64{1, 1, 1, 1 + 1e-15}},
	} {
		add(fmt.Sprint("softmax ", i))(ops.Softmax(e, "", x, m))
		add(fmt.Sprint("mask scores ", i))(ops.MaskScores(e, "", x, m))
		add(fmt.Sprint("attention ", i))(ops.Attention(e, x, x, x, ops.AttentionConfig{Mask: m}))
	}
	for i, c := range []ops.AttentionConfig{
		{}, {Heads: 1}, {Heads: 2}, {Heads: 4}, {Heads: 4, Softcap: 1}, {Heads: 4, Softcap: 2}, {Heads: 4, Scale: 1}, {Heads: 4, Scale: 1.0000001},
		{Heads: 4, Sinks: g.in(4)},
		{Heads: 4, Dropout: 0.1}, {Heads: 4, Dropout: 0.2}, {Heads: 4, Mask: ops.Mask{Documents: documents}},
		{Heads: 4, Distances: distances(vectors, nil, 0, 4)}, {Heads: 4, Distances: distances(nil, vectors, 0, 4)},
		{Heads: 4, Distances: distances(vectors, vectors, 0, 4)}, {Heads: 4, Distances: distances(vectors, nil, 4, 9)}, {Heads: 4, Distances: distances(vectors, nil, 4, 10)},
	} {
		add(fmt.Sprint("attention side by side ", i))(ops.Attention(&ops.Env{Training: true, Seed: 1}, side, side, side, c))
	}
	for i, seed := range []uint64{0, 2} {
		e := &ops.Env{Training: true, Seed: seed}
		for j := range 2 { // the first and the second dropout of a graph
			add(fmt.Sprint("attention with dropout ", i, j))(ops.Attention(e, side, side, side, ops.AttentionConfig{Heads: 4, Dropout: 0.1}))
		}
	}
}
