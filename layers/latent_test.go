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

func TestGradientsOfLatentAttention(t *testing.T) {
	var cases []gradientCase
	for name, config := range map[string]layers.AttentionConfig{
		"plain":          {Latent: &layers.LatentConfig{Rank: 3, RotaryDim: 2}},
		"latent queries": {HeadDim: 3, ValueDim: 5, NoBias: true, Latent: &layers.LatentConfig{Rank: 2, RotaryDim: 4, QueryRank: 3}},
		"everything":     {Window: &layers.Window{Left: 2, Right: 1}, Softcap: 2, Scale: 0.7, Sinks: true, OutputGate: true, NormEps: 0.1, Latent: &layers.LatentConfig{Rank: 3, RotaryDim: 2, QueryRank: 5}},
	} {
		config.Heads = 2
		for _, shape := range [][]int{{2, 4, 4}, {3, 4}} {
			cases = append(cases, gradientCase{fmt.Sprintf("%s, of %v", name, tensor.Shape(shape)), func(c *bench) *G.Node {
				a, x := c.multiHead(4, config), c.in("x", shape...)
				a.Positions = layers.Rotary{Base: 20, Interleaved: name == "plain"}
				randomise(c.p)
				return c.node(a.Forward(c.b, x, x, x, layers.Mask{Causal: name != "everything"}))
			}})
		}
		cases = append(cases, gradientCase{name + ", to a memory, with rows that see nothing", func(c *bench) *G.Node {
			memory := c.in("memory", 2, 3, 4)
			a := c.multiHead(4, config)
			randomise(c.p)
			return c.node(a.Forward(c.b, c.in("x", 2, 4, 4), memory, memory, layers.Mask{KeyLengths: c.lengths(3, 0)}))
		}})
	}
	checkGradients(t, cases, mayVanish)
}

// TestLatentAttentionSeesNothing checks a query without keys: its output is the bias of the output.
func TestLatentAttentionSeesNothing(t *testing.T) {
	c := newBench(t)
	a, x := c.multiHead(4, layers.AttentionConfig{Heads: 2, Latent: &layers.LatentConfig{Rank: 3, RotaryDim: 2}}), c.in("x", 1, 3, 4)
	randomise(c.p)
	y := read(t, c.node(a.Forward(c.b, x, x, x, layers.Mask{Causal: true, Offset: -1})))[0]
	near(t, "the first query", y[:4], a.Output.Bias.Value.Float64s(), 0)
}

// TestLatentCacheIsSmall checks what the Cache of latent attention keeps: unlike keys and values, it doesn't grow with
// the number of heads. The cache's error about memory names the widths.
func TestLatentCacheIsSmall(t *testing.T) {
	p := newParams(t)
	b := must.Get(layers.NewDecoderBlock(p, 8, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4, Latent: &layers.LatentConfig{Rank: 5, RotaryDim: 3}}}))(t)
	cache := must.Get(layers.NewCache(1, 6))(t)
	build := &layers.Build{Cache: cache, CaptureWeights: true}
	must.Get(b.Forward(build, input(G.NewGraph(), "x", random(1, 1, 2, 8)), layers.Mask{}))(t)
	if got, want := cache.Bytes(), 6*(5+3)*8; got != want {
		t.Errorf("the cache has %d bytes, want %d", got, want)
	}
	if w := build.AttentionWeights(); len(w) != 1 || !w[0].Weights.Shape().Eq(tensor.Shape{1, 4, 2, 6}) {
		t.Errorf("captured weights %+v", w)
	}
}

// TestSizesOfAttention compares Sizes with the matrices of layers, and with what a Cache keeps.
func TestSizesOfAttention(t *testing.T) {
	for _, c := range []layers.AttentionConfig{
		{}, {Heads: 4, KeyValueHeads: 2, ValueDim: 5, DistanceKeys: true, DistanceQueries: true}, {Heads: 2, HeadDim: 3, Latent: &layers.LatentConfig{Rank: 5, RotaryDim: 2}},
		{Heads: 4, ValueDim: 7, Latent: &layers.LatentConfig{Rank: 5, RotaryDim: 4, QueryRank: 3}},
	} {
		p := newParams(t)
		b := must.Get(layers.NewDecoderBlock(p, 8, layers.BlockConfig{Attention: c}))(t)
		cache := must.Get(layers.NewCache(1, 3))(t)
		must.Get(b.Attention.Cached(&layers.Build{Cache: cache}, input(G.NewGraph(), "x", random(1, 1, 2, 8)), layers.Mask{}))(t)
		numbers := 0
		for _, q := range p.All() {
			if s := q.Value.Shape(); len(s) == 2 && strings.Contains(q.Name, "attention") {
				numbers += s.TotalSize()
			}
		}
		if weights, perToken := c.Sizes(8); weights != numbers || perToken*3*8 != cache.Bytes() {
			t.Errorf("%+v: Sizes returns %d and %d, want %d and %d", c, weights, perToken, numbers, cache.Bytes()/24)
		}
	}
	if weights, perToken := (layers.AttentionConfig{Heads: math.MaxInt, HeadDim: 2}).Sizes(8); weights != math.MaxInt || perToken != math.MaxInt {
		t.Errorf("huge sizes are %d and %d", weights, perToken)
	}
}

// TestLatentCacheWithOtherWeights continues sequences with an adapter and with int8 weights, for which keys and values
// are computed, and in bfloat16, one token after the other.
func TestLatentCacheWithOtherWeights(t *testing.T) {
	ids := []int{1, 5, 2, 2, 0, 6}
	config := layers.ModelConfig{Vocab: 7, Dim: 8, Layers: 2, Positions: layers.Rotary{}, Block: layers.BlockConfig{
		Attention: layers.AttentionConfig{Heads: 2, ValueDim: 3, Latent: &layers.LatentConfig{Rank: 4, RotaryDim: 2, QueryRank: 5}}, FeedForward: layers.FeedForwardConfig{Hidden: 12}}}
	for name, tolerance := range map[string]float64{"adapter": 1e-5, "int8": 1e-5, "bfloat16": 0.1} {
		t.Run(name, func(t *testing.T) {
			p := newFloats(t)
			d := must.Get(layers.NewDecoder(p, config))(t)
			build := layers.Build{}
			switch name {
			case "adapter":
				build.Adapter = must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 2, Targets: []string{"key", "value"}}, 1))(t)
				for i, q := range build.Adapter.Params.All() {
					copy(q.Value.Float32s(), as(tensor.Float32, random(uint64(i), q.Value.Shape()...)).Float32s())
				}
			case "int8":
				must.Do(t, p.Quantize())
			case "bfloat16":
				build.Precision = layers.BFloat16
			}
			whole, cached := build, build
			want := read(t, must.Get(d.Forward(&whole, input(G.NewGraph(), "ids", dense(ids, 1, len(ids))), layers.Mask{}))(t))[0]
			cache := must.Get(layers.NewCache(1, 8))(t)
			cached.Cache = cache
			graph := newCachedGraph(t, 1, 1, &cached, func(_ *G.ExprGraph, b *layers.Build, ids *G.Node) (*G.Node, error) {
				return d.Forward(b, ids, layers.Mask{})
			})
			for i, id := range ids {
				near(t, fmt.Sprint("token ", i), graph.step(t, cache, [][]int{{id}})[0], want[7*i:][:7], tolerance)
			}
		})
	}
}

// TestLatentCacheHides puts NaN into the Cache behind a sequence. It must not reach the next token.
func TestLatentCacheHides(t *testing.T) {
	for _, rank := range []int{3, 60} { // 4 tokens of rank 60 have keys and values
		p := newParams(t)
		d := must.Get(layers.NewDecoderBlock(p, 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, Latent: &layers.LatentConfig{Rank: rank, RotaryDim: 2}}}))(t)
		cache := must.Get(layers.NewCache(1, 6))(t)
		x := random(1, 1, 4, 4)
		run := runner(t, must.Get(d.Forward(&layers.Build{Cache: cache}, input(G.NewGraph(), "x", x), layers.Mask{}))(t))
		step := func(n int) []float64 {
			must.Do(t, cache.Extend(n))
			y := must.Get(run())(t)[0]
			cache.Commit()
			return slices.Clone(y[:4*n])
		}
		want := step(4)
		cache.Reset()
		for i := range x.Float64s()[8:] {
			x.Float64s()[8+i] = math.NaN()
		}
		step(4)
		must.Do(t, cache.Truncate(0))
		near(t, fmt.Sprint("the first tokens, rank ", rank), step(2), want[:8], 0)
	}
}

func TestLatentErrors(t *testing.T) {
	latent := layers.LatentConfig{Rank: 3, RotaryDim: 2}
	for _, tc := range []struct {
		change func(c *layers.AttentionConfig)
		want   []string
	}{
		{func(c *layers.AttentionConfig) { c.Latent.Rank = 0 }, []string{"Latent.Rank must be at least 1", "0"}},
		{func(c *layers.AttentionConfig) { c.Latent.RotaryDim = -1 }, []string{"Latent.RotaryDim must be at least 1", "-1"}},
		{func(c *layers.AttentionConfig) { c.Latent.QueryRank = -2 }, []string{"QueryRank", "-2"}},
		{func(c *layers.AttentionConfig) { c.KeyValueHeads = 1 }, []string{"Latent can't have", "KeyValueHeads"}},
		{func(c *layers.AttentionConfig) { c.QKNorm = true }, []string{"Latent can't have", "QKNorm"}},
		{func(c *layers.AttentionConfig) { c.DistanceKeys = true }, []string{"Latent can't have", "DistanceKeys"}},
		{func(c *layers.AttentionConfig) { c.TieQueryKey = true }, []string{"Latent can't have", "TieQueryKey"}},
		{func(c *layers.AttentionConfig) { c.KeyInput, c.ValueInput = 5, 6 }, []string{"same input", "6", "5"}},
		{func(c *layers.AttentionConfig) { c.HeadDim = math.MaxInt }, []string{"memory"}},
		{func(c *layers.AttentionConfig) { c.Latent.RotaryDim = math.MaxInt }, []string{"memory"}},
	} {
		l := latent
		c := layers.AttentionConfig{Heads: 2, Latent: &l}
		tc.change(&c)
		must.Refuse(layers.NewMultiHeadAttention(newParams(t), 4, c))(t, tc.want...)
	}
	c := newBench(t)
	a := c.multiHead(4, layers.AttentionConfig{Heads: 2, KeyInput: 5, Latent: &latent})
	x, y := c.in("x", 2, 3, 4), c.in("y", 2, 3, 5)
	must.Refuse(a.Forward(c.b, x, y, c.in("z", 2, 3, 5), layers.Mask{}))(t, "the same node")
	must.Refuse(a.Forward(c.b, y, y, y, layers.Mask{}))(t, "the query", "4", "(2, 3, 5)")
	must.Refuse(a.Forward(c.b, x, x, x, layers.Mask{}))(t, "the key", "5", "(2, 3, 4)")
	must.Refuse(layers.Rotary{}.New(c.p, 8, layers.AttentionConfig{Heads: 2, Latent: &layers.LatentConfig{Rank: 2, RotaryDim: 3}}))(t, "even width", "3")
	must.Refuse(layers.Disentangled{}.New(c.p, 8, layers.AttentionConfig{Latent: &latent}))(t, "disentangled positions", "Latent")
}
