package layers_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// cachedGraph holds a graph that extends each sequence of a cache, by up to a fixed number of tokens.
type cachedGraph struct {
	ids    []int
	run    func() ([][]float64, error)
	tokens int
}

// newCachedGraph builds a cachedGraph. The argument batch is the number of sequences.
func newCachedGraph(t *testing.T, batch, tokens int, b *layers.Build, forward func(g *G.ExprGraph, b *layers.Build, ids *G.Node) (*G.Node, error)) *cachedGraph {
	t.Helper()
	c := &cachedGraph{ids: make([]int, batch*tokens), tokens: tokens}
	g := G.NewGraph()
	c.run = runner(t, must.Get(forward(g, b, input(g, "ids", dense(c.ids, batch, tokens))))(t))
	return c
}

// step runs the graph with new tokens for each sequence. It returns the logits of the last new token of each sequence.
func (c *cachedGraph) step(t *testing.T, cache *layers.Cache, tokens [][]int) [][]float64 {
	t.Helper()
	counts := make([]int, len(tokens))
	for b, row := range tokens {
		copy(c.ids[b*c.tokens:][:c.tokens], row)
		counts[b] = len(row)
	}
	must.Do(t, cache.Extend(counts...))
	logits := must.Get(c.run())(t)[0]
	cache.Commit()
	width := len(logits) / len(c.ids)
	last := make([][]float64, len(tokens))
	for b, n := range counts {
		if n > 0 {
			last[b] = slices.Clone(logits[(b*c.tokens+n-1)*width:][:width])
		}
	}
	return last
}

const cacheVocab, cacheCapacity = 7, 12

// schemes returns every position scheme in the table, by name, and variants. If a scheme has one of the fields listed
// here, it is set: its default may be invalid, or too large for short sequences. A new scheme may need another field.
func schemes() map[string]layers.PositionsConfig {
	found := map[string]layers.PositionsConfig{"one's own": nearby{reach: 3}, "rotary, interleaved": layers.Rotary{Interleaved: true, Base: 50, Dim: 2}}
	for _, s := range rotaryScalings {
		found["rotary, "+s.Kind] = layers.Rotary{Base: 9, Scaling: s}
	}
	table := layers.Choices()["positions"]
	for name := range table.All {
		text := name
		for _, field := range []string{fmt.Sprint("max_len=", cacheCapacity), "buckets=8", "max_distance=7", `norm={"eps":0.01}`, `init={"kind":"normal","scale":1}`} {
			if _, err := table.Parse(text + "," + field); err == nil {
				text += "," + field
			}
		}
		scheme, _ := table.Parse(text)
		found[name], _ = scheme.(layers.PositionsConfig)
	}
	return found
}

// cacheConfigs describes decoders with every position scheme, and with other options.
func cacheConfigs() map[string]layers.ModelConfig {
	base := layers.ModelConfig{Vocab: cacheVocab, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 12}}, Layers: 2}
	configs := map[string]layers.ModelConfig{}
	with := func(name string, positions layers.PositionsConfig, change func(c *layers.ModelConfig, b *layers.BlockConfig)) {
		c := base
		c.Positions = positions
		change(&c, &c.Block)
		configs[name] = c
	}
	for name, scheme := range schemes() {
		with(name, scheme, func(*layers.ModelConfig, *layers.BlockConfig) {})
	}
	with("learned and relative bias, as in MPNet", layers.PositionsList{Schemes: []layers.PositionsConfig{layers.Learned{MaxLen: cacheCapacity}, layers.RelativeBias{Buckets: 8, MaxDistance: 7}}}, func(*layers.ModelConfig, *layers.BlockConfig) {})
	with("sinusoidal, rotary and alibi", layers.PositionsList{Schemes: []layers.PositionsConfig{layers.Sinusoidal{}, layers.Rotary{Base: 50}, layers.ALiBi{}}}, func(*layers.ModelConfig, *layers.BlockConfig) {})
	with("grouped heads", layers.Rotary{}, func(_ *layers.ModelConfig, b *layers.BlockConfig) {
		b.Attention.Heads, b.Attention.KeyValueHeads = 4, 2
	})
	with("one head of keys", layers.ALiBi{}, func(_ *layers.ModelConfig, b *layers.BlockConfig) {
		b.Attention.Heads, b.Attention.KeyValueHeads = 4, 1
	})
	with("own window", layers.Rotary{}, func(_ *layers.ModelConfig, b *layers.BlockConfig) {
		b.Attention.Window = &window{Left: 3, Right: 1}
	})
	with("output norms", layers.Rotary{}, func(_ *layers.ModelConfig, b *layers.BlockConfig) {
		b.OutputNorm, b.Norm.Kind = true, "rms"
	})
	with("parallel", layers.Rotary{Dim: 2}, func(_ *layers.ModelConfig, b *layers.BlockConfig) { b.Parallel = true })
	with("variants", layers.Rotary{}, func(c *layers.ModelConfig, b *layers.BlockConfig) {
		b.Attention.Window = &window{Left: 1, Right: 0}
		c.Variants = []layers.BlockVariant{{Blocks: []int{1}, Positions: layers.Rotary{Base: 50}, NoNorm1: true}}
	})
	with("variants of positions", layers.Learned{MaxLen: cacheCapacity}, func(c *layers.ModelConfig, _ *layers.BlockConfig) {
		c.Variants = []layers.BlockVariant{{Blocks: []int{0}, Window: &window{Left: 2, Right: -1}, Positions: layers.ALiBi{}}}
	})
	with("shared blocks", layers.Disentangled{MaxDistance: 5}, func(c *layers.ModelConfig, _ *layers.BlockConfig) { c.Shared = 1 })
	with("narrow embeddings", layers.Learned{MaxLen: cacheCapacity}, func(c *layers.ModelConfig, _ *layers.BlockConfig) {
		c.Projection, c.Tied, c.Transform = &layers.ProjectionConfig{Dim: 6}, true, &layers.TransformConfig{Activation: layers.GELU}
	})
	with("everything", layers.Rotary{}, func(c *layers.ModelConfig, b *layers.BlockConfig) {
		b.Attention = layers.AttentionConfig{Heads: 4, KeyValueHeads: 2, Softcap: 1.5, QKNorm: true, JointNorm: true, Sinks: true, OutputGate: true}
		c.Tied, b.Norm.Kind, b.FeedForward.Gated, b.FeedForward.Activation = true, "rms", true, layers.SiLU
	})
	for _, rank := range []int{3, 32} { // 5 new tokens of rank 32 have keys and values
		with(fmt.Sprint("latent vectors of ", rank), layers.Rotary{Interleaved: true, Base: 50}, func(_ *layers.ModelConfig, b *layers.BlockConfig) {
			b.Attention = layers.AttentionConfig{Heads: 2, ValueDim: 3, Latent: &layers.LatentConfig{Rank: rank, RotaryDim: 2, QueryRank: 5}}
		})
		with(fmt.Sprint("latent vectors of ", rank, ", everything"), layers.ALiBi{}, func(_ *layers.ModelConfig, b *layers.BlockConfig) {
			b.Attention = layers.AttentionConfig{Heads: 2, Softcap: 1.5, Sinks: true, OutputGate: true, Window: &window{Left: 3, Right: 1}, Latent: &layers.LatentConfig{Rank: rank, RotaryDim: 1}}
		})
	}
	with("shared norm, scaled", layers.Rotary{}, func(c *layers.ModelConfig, b *layers.BlockConfig) {
		b.Parallel, b.SharedNorm, b.ResidualScale, c.HeadScale, c.Tied = true, true, 0.4, 3, true
	})
	with("experts", layers.Rotary{}, func(_ *layers.ModelConfig, b *layers.BlockConfig) {
		b.FeedForward = layers.FeedForwardConfig{Hidden: 6, Gated: true, Activation: layers.SiLU, Experts: &layers.ExpertsConfig{Count: 4, Sigmoid: true, Shared: 3}}
	})
	with("experts after a dense block", layers.Rotary{}, func(c *layers.ModelConfig, b *layers.BlockConfig) {
		c.Variants = []layers.BlockVariant{{Blocks: []int{0}, FeedForward: &layers.FeedForwardConfig{Hidden: 5}}}
		b.FeedForward = layers.FeedForwardConfig{Hidden: 6, Experts: &layers.ExpertsConfig{Count: 4, Groups: 2, TopGroups: 1}}
	})
	with("post-norm, tied", layers.Learned{MaxLen: cacheCapacity}, func(c *layers.ModelConfig, b *layers.BlockConfig) {
		b.PostNorm, c.Tied, c.EmbeddingScale = true, true, 1
		c.EmbeddingNorm, c.Segments = true, 2
		c.TiedBias, c.Transform, c.LogitSoftcap = true, &layers.TransformConfig{Activation: layers.Tanh, Norm: true}, 0.5
	})
	return configs
}

// TestCachedDecodingIsTheFullPass continues sequences of different lengths, a few tokens at a time. The logits equal
// the logits that a causal graph computes for each whole sequence.
func TestCachedDecodingIsTheFullPass(t *testing.T) {
	testseed.Slow(t)
	sequences := [][]int{{1, 2, 3, 4, 5, 6, 0, 1, 3, 5, 2, 2}, {6, 5, 4, 0, 0, 2, 1, 6, 3, 3}}
	steps := [][]int{{5, 3}, {1, 1}, {1, 1}, {1, 3}, {1, 0}, {3, 2}} // new tokens per step, for each sequence
	t.Parallel()
	for name, config := range cacheConfigs() {
		for maskName, mask := range map[string]layers.Mask{"": {}, ", window": {Window: &layers.Window{Left: 2, Right: -1}}} {
			for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
				for _, composed := range []bool{false, true} {
					name := fmt.Sprintf("%s%s/%v/composed %t", name, maskName, dt, composed)
					if testseed.LeftOut(name) {
						continue
					}
					t.Run(name, func(t *testing.T) {
						p := must.Get(layers.NewParams(dt, 3))(t)
						model := must.Get(layers.NewDecoder(p, config))(t)
						if dt == tensor.Float64 {
							randomise(p) // biases too
						}
						cache := must.Get(layers.NewCache(2, cacheCapacity))(t)
						graphs := map[int]*cachedGraph{}
						for _, tokens := range []int{1, 5} {
							graphs[tokens] = newCachedGraph(t, 2, tokens, &layers.Build{Cache: cache, Composed: composed}, func(g *G.ExprGraph, b *layers.Build, ids *G.Node) (*G.Node, error) {
								if tokens == 1 && !composed {
									return model.Next(b, ids, mask)
								}
								return model.Forward(b, ids, mask)
							})
						}
						var full [2][]float64
						for b, ids := range sequences {
							full[b] = read(t, must.Get(model.Forward(&layers.Build{Composed: true}, input(G.NewGraph(), "ids", dense(ids, 1, len(ids))), mask))(t))[0]
						}
						done := []int{0, 0}
						for _, counts := range steps {
							rows := [][]int{sequences[0][done[0]:][:counts[0]], sequences[1][done[1]:][:counts[1]]}
							graph := graphs[5]
							if max(counts[0], counts[1]) == 1 {
								graph = graphs[1]
							}
							got := graph.step(t, cache, rows)
							for b := range done {
								done[b] += counts[b]
								if counts[b] == 0 {
									continue
								}
								near(t, fmt.Sprintf("sequence %d, %d tokens", b, done[b]), got[b], full[b][(done[b]-1)*cacheVocab:][:cacheVocab], formTolerance(dt))
							}
						}
						if got := cache.Lengths(); !slices.Equal(got, done) {
							t.Errorf("the cache has %v tokens, want %v", got, done)
						}
					})
				}
			}
		}
	}
}

// TestCachedEncoderDecoder generates targets for two sources token by token. Cross-attention reads the sources' keys
// and values from the cache.
func TestCachedEncoderDecoder(t *testing.T) {
	for i := range 4 {
		composed, window := i%2 == 1, (*layers.Window)(nil)
		if i > 1 {
			window = &layers.Window{Left: 1, Right: 0} // target token i sees source tokens i−1 and i
		}
		m := must.Get(layers.NewEncoderDecoder(newParams(t), layers.EncoderDecoderConfig{
			Model: layers.ModelConfig{Vocab: cacheVocab, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, KeyValueHeads: 1}}, Layers: 2, Positions: layers.ALiBi{}}, Shared: true,
		}))(t)
		source, target := []int{1, 2, 3, 4, 5, 6, 1, 0}, [][]int{{1, 4, 2, 6}, {3, 3, 0, 5}}
		lengths := []int{4, 2}
		mask := func(g *G.ExprGraph) layers.Mask {
			return layers.Mask{KeyLengths: input(g, "lengths", dense(lengths, 2)), Window: window}
		}
		g := G.NewGraph()
		full := read(t, must.Get(m.Forward(&layers.Build{Composed: true}, input(g, "source", dense(source, 2, 4)), input(g, "target", dense(slices.Concat(target...), 2, 4)), mask(g)))(t))[0]

		cache := must.Get(layers.NewCache(2, 4))(t)
		first := newCachedGraph(t, 2, 1, &layers.Build{Cache: cache, Composed: composed}, func(g *G.ExprGraph, b *layers.Build, ids *G.Node) (*G.Node, error) {
			memory, err := m.Encode(b, input(g, "source", dense(source, 2, 4)), mask(g))
			if err != nil {
				return nil, err
			}
			return m.Decode(b, ids, memory, layers.Mask{}, mask(g))
		})
		next := newCachedGraph(t, 2, 1, &layers.Build{Cache: cache, Composed: composed}, func(g *G.ExprGraph, b *layers.Build, ids *G.Node) (*G.Node, error) {
			return m.Decode(b, ids, nil, layers.Mask{}, mask(g))
		})
		for i := range 4 {
			graph := next
			if i == 0 {
				graph = first
			}
			got := graph.step(t, cache, [][]int{target[0][i:][:1], target[1][i:][:1]})
			for range 2 { // the second swap restores the order; the sources' keys and values move too
				must.Do(t, cache.Reorder(1, 0))
			}
			for b := range 2 {
				near(t, fmt.Sprintf("target %d, token %d", b, i), got[b], full[(b*4+i)*cacheVocab:][:cacheVocab], 1e-12)
			}
		}
	}
}

// TestCacheKeepsTheLastMemory runs graphs that store memories of two lengths in a cache, and graphs that read the
// stored memory.
func TestCacheKeepsTheLastMemory(t *testing.T) {
	a := must.Get(layers.NewMultiHeadAttention(newParams(t), 4, layers.AttentionConfig{Heads: 2}))(t)
	cache := must.Get(layers.NewCache(1, 3))(t)
	build := func(memory *tensor.Dense) func() ([]float64, error) {
		g := G.NewGraph()
		var m *G.Node
		if memory != nil {
			m = input(g, "memory", memory)
		}
		again := runner(t, must.Get(a.Memory(&layers.Build{Cache: cache}, input(g, "x", random(1, 1, 1, 4)), m, layers.Mask{}))(t))
		return func() ([]float64, error) {
			out, err := again()
			if err != nil {
				return nil, err
			}
			return out[0], nil
		}
	}
	run := func(f func() ([]float64, error)) []float64 { return must.Get(f())(t) }
	fails := func(f func() ([]float64, error), want string) {
		t.Helper()
		must.Refuse(f())(t, want)
	}
	short, other := build(random(2, 1, 3, 4)), build(random(3, 1, 3, 4))
	read := build(nil)
	fails(read, "nothing has been kept")
	for _, f := range []func() ([]float64, error){short, other, short} {
		want := run(f)
		near(t, "kept", run(read), want, 0)
	}
	long := build(random(4, 1, 5, 4))
	readLong := build(nil)
	fails(readLong, "(1, 3, 4), but the graph was built for (1, 5, 4)")
	want := run(long)
	near(t, "longer", run(readLong), want, 0)
	fails(read, "(1, 5, 4), but the graph was built for (1, 3, 4)")
}

// TestCacheReorder replaces each sequence by a copy of another sequence, and continues the copies.
func TestCacheReorder(t *testing.T) {
	model := must.Get(layers.NewDecoder(newParams(t), cacheConfigs()["learned"]))(t)
	forward := func(_ *G.ExprGraph, b *layers.Build, ids *G.Node) (*G.Node, error) {
		return model.Forward(b, ids, layers.Mask{})
	}
	cache := must.Get(layers.NewCache(3, cacheCapacity))(t)
	graph := newCachedGraph(t, 3, 3, &layers.Build{Cache: cache}, forward)
	begun := [][]int{{1, 2, 3}, {4, 5}, {6}}
	graph.step(t, cache, begun)
	parents := []int{1, 2, 1}
	must.Do(t, cache.Reorder(parents...))
	if got, want := cache.Lengths(), []int{2, 1, 2}; !slices.Equal(got, want) {
		t.Fatalf("lengths are %v, want %v", got, want)
	}
	got := graph.step(t, cache, [][]int{{0}, {1}, {3}})
	for b, from := range parents {
		whole := append(slices.Clone(begun[from]), []int{0, 1, 3}[b])
		g := G.NewGraph()
		want := read(t, must.Get(model.Forward(&layers.Build{}, input(g, "ids", dense(whole, 1, len(whole))), layers.Mask{}))(t))[0]
		near(t, fmt.Sprint("sequence ", b), got[b], want[len(want)-cacheVocab:], 1e-12)
	}
	must.Do(t, cache.Truncate(2, 0, 1))
	again := graph.step(t, cache, [][]int{{0}, {2}, {5}})
	near(t, "after a truncation", again[0], got[0], 1e-12)
}

// TestCacheHidesUnusedMemory fills the unused end of the cache with NaN or infinity: no result may change.
func TestCacheHidesUnusedMemory(t *testing.T) {
	for _, composed := range []bool{false, true} {
		p := newParams(t)
		a := must.Get(layers.NewMultiHeadAttention(p, 4, layers.AttentionConfig{Heads: 2}))(t)
		run := func(poison float64) []float64 {
			cache := must.Get(layers.NewCache(1, 6))(t)
			x := random(7, 1, 4, 4)
			again := runner(t, must.Get(a.Cached(&layers.Build{Cache: cache, Composed: composed}, input(G.NewGraph(), "x", x), layers.Mask{}))(t))
			var got []float64
			for i, step := range []struct{ count, kept int }{{4, 1}, {2, 2}} { // after the first step, three tokens are cut off
				copy(x.Float64s(), random(7+uint64(i), 4, 4).Float64s())
				for j := 4 * (1 + i); j < 16; j++ {
					x.Float64s()[j] = poison
				}
				must.Do(t, cache.Extend(step.count))
				got = append(got, must.Get(again())(t)[0][:4*step.kept]...)
				cache.Commit()
				if i == 0 {
					must.Do(t, cache.Truncate(1))
				}
			}
			return got
		}
		want := run(0.5)
		for _, poison := range []float64{1e6, math.NaN(), inf} {
			sameBits(t, fmt.Sprintf("with %v", poison), run(poison), want)
		}
	}
}

func TestCacheErrors(t *testing.T) {
	_, noSequences := layers.NewCache(0, 3)
	c := newBench(t)
	cache := must.Get(layers.NewCache(2, 3))(t)
	a := c.multiHead(4, layers.AttentionConfig{Heads: 2})
	cross := must.Get(layers.NewCrossDecoderBlock(c.p.Scope("block"), 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}))(t)
	with := func(x *G.Node, b *layers.Build, m layers.Mask) error {
		_, err := a.Cached(b, x, m)
		return err
	}
	build := func() *layers.Build { return &layers.Build{Cache: cache} }
	other := newBench(t)
	_, noMemory := cross.ForwardCross(build(), other.in("x", 2, 1, 4), nil, layers.Mask{}, layers.Mask{})
	third := newBench(t)
	_, wrongMemory := cross.ForwardCross(build(), third.in("x", 2, 1, 4), third.in("memory", 3, 2, 4), layers.Mask{}, layers.Mask{})
	fourth := newBench(t)
	_, memoryOffsets := a.Memory(build(), fourth.in("x", 2, 1, 4), fourth.in("memory", 2, 2, 4), layers.Mask{Offsets: input(fourth.g, "offsets", dense([]int{1, 1}, 2))})
	wantErrors(t, []errorCase{
		{"no sequences", noSequences, []string{"at least 1, got 0"}},
		{"no cache", with(c.in("x", 2, 1, 4), &layers.Build{}, layers.Mask{}), []string{"attention", "no Cache"}},
		{"training", with(c.in("x", 2, 1, 4), &layers.Build{Cache: cache, Training: true}, layers.Mask{}), []string{"attention", "evaluation"}},
		{"offset", with(c.in("x", 2, 1, 4), build(), layers.Mask{Offset: 1}), []string{"attention", "can't have an offset"}},
		{"batch", with(c.in("y", 3, 1, 4), build(), layers.Mask{}), []string{"attention", "2 sequences", "(3, 1)"}},
		{"no batch", with(c.in("v", 1, 4), build(), layers.Mask{}), []string{"attention", "2 sequences"}},
		{"memory offsets", memoryOffsets, []string{"attention", "can't have Offsets"}},
		{"too many", with(c.in("z", 2, 4, 4), build(), layers.Mask{}), []string{"attention", "at most 3", "(2, 4)"}},
		{"width", with(c.in("u", 2, 1, 5), build(), layers.Mask{}), []string{"attention", "(…, 4)", "(2, 1, 5)"}},
		{"no memory", noMemory, []string{"cross", "holds no", "encoder's output"}},
		{"another batch of memory", wrongMemory, []string{"cross", "2 sequences", "(3, 2, 4)"}},
		{"counts", cache.Extend(1), []string{"2 sequences need one", "got 1"}},
		{"negative count", cache.Extend(1, -1), []string{"sequence 1", "-1"}},
		{"no counts", cache.Extend(0, 0), []string{"no sequence gets a new token"}},
		{"no room at all", cache.Extend(1, math.MaxInt), []string{"sequence 1", "at most 3"}},
		{"no room", cache.Extend(4, 0), []string{"sequence 0", "at most 3", "4 more"}},
		{"parents", cache.Reorder(0), []string{"2 sequences need one", "got 1"}},
		{"parent", cache.Reorder(0, 2), []string{"sequence 1", "got 2"}},
		{"truncated to more", cache.Truncate(0, 1), []string{"sequence 1", "shortened to 1"}},
		{"lengths", cache.Truncate(0), []string{"2 sequences need one", "got 1"}},
	})

	t.Run("another model", func(t *testing.T) {
		cache := must.Get(layers.NewCache(2, 3))(t)
		forward := func() (*G.Node, error) {
			c := newBench(t) // with the same seed and names
			a := c.multiHead(4, layers.AttentionConfig{Heads: 2})
			return a.Cached(&layers.Build{Cache: cache}, c.in("x", 2, 1, 4), layers.Mask{})
		}
		must.Get(forward())(t)
		must.Refuse(forward())(t, "another model")
	})
	t.Run("a layer twice", func(t *testing.T) {
		c := newBench(t)
		b := &layers.Build{Cache: must.Get(layers.NewCache(2, 3))(t)}
		y := must.Get(a.Cached(b, c.in("x", 2, 1, 4), layers.Mask{}))(t)
		must.Refuse(a.Cached(b, y, layers.Mask{}))(t, "applies the layer twice")
	})
	t.Run("two caches", func(t *testing.T) {
		c := newBench(t)
		forward := func() (*G.Node, error) {
			b := &layers.Build{Cache: must.Get(layers.NewCache(2, 3))(t)}
			return a.Cached(b, c.in("x", 2, 1, 4), layers.Mask{})
		}
		must.Get(forward())(t)
		must.Refuse(forward())(t, "another Cache")
	})
	t.Run("too large", func(t *testing.T) {
		largest := 1
		for _, err := layers.NewCache(1, largest); err == nil; _, err = layers.NewCache(1, largest) {
			largest *= 2
		}
		b := &layers.Build{Cache: must.Get(layers.NewCache(1, largest/2))(t)} // a smaller model could use this cache
		must.Refuse(a.Cached(b, newBench(t).in("x", 1, 1, 4), layers.Mask{}))(t, "attention", ".keys", fmt.Sprintf("1 sequences of %d tokens with 4 numbers", largest/2), "memory")
	})
	t.Run("before Commit", func(t *testing.T) {
		cache := must.Get(layers.NewCache(2, 3))(t)
		must.Do(t, cache.Extend(1, 1))
		must.Fail(t, cache.Reorder(1, 0), "Commit or Cancel")
		must.Fail(t, cache.Truncate(0, 0), "Commit or Cancel")
		cache.Cancel()
		must.Do(t, cache.Reorder(1, 0))
		cache.Reset()
	})
	t.Run("runs", func(t *testing.T) {
		c := newBench(t)
		cache := must.Get(layers.NewCache(2, 3))(t)
		must.Get(a.Cached(&layers.Build{Cache: cache}, c.in("x", 2, 2, 4), layers.Mask{}))(t)
		vm := G.NewTapeMachine(c.g)
		defer vm.Close()
		must.Fail(t, vm.RunAll(), "before the run") // without Extend
		vm.Reset()
		must.Do(t, cache.Extend(3, 1))
		must.Fail(t, vm.RunAll(), "3 of 2 new vectors") // more than the input has
	})
}
