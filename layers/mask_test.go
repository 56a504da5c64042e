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

// A hidingCase is an expression of an input x, of shape (B, T, D), with hidden rows. Hidden rows must change neither
// the selected outputs, of shape (B, T, classes), nor any gradient of a loss on these outputs.
type hidingCase struct {
	name     string
	shape    []int               // the shape of x
	hidden   func(b, t int) bool // reports whether a row of x is hidden
	selected func(b, t int) bool // reports whether an output is selected; nil selects the outputs of rows that aren't hidden
	build    func(c *bench, x *G.Node) *G.Node
}

var inf = math.Inf(1)

// hide checks that outputs and gradients are finite and have the same bits for all contents of the hidden rows.
func hide(t *testing.T, cases []hidingCase) {
	t.Parallel()
	for _, tc := range cases {
		if tc.selected == nil {
			tc.selected = func(b, t int) bool { return !tc.hidden(b, t) }
		}
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			for form, build := range map[string]layers.Build{"fused": {}, "composed": {Composed: true}, "captured": {CaptureWeights: true}, "bfloat16": {Precision: layers.BFloat16}} {
				if dt == tensor.Float64 && build.Precision == layers.BFloat16 {
					continue
				}
				name := fmt.Sprintf("%s/%v/%s", tc.name, dt, form)
				if testseed.LeftOut(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					build.Training = true
					names, run := tc.graph(t, dt, build)
					want := run(0)
					for _, fill := range []float64{-3.25, 1e6, math.NaN(), inf, -inf} {
						got := run(fill)
						for i, name := range names {
							sameBits(t, fmt.Sprintf("with %v in hidden rows: %s", fill, name), got[i], want[i])
						}
					}
				})
			}
		}
	}
}

// graph builds the expression. run(fill) sets every element of the hidden rows to fill. It returns the selected
// outputs, the loss and all gradients, whose names are in names.
func (tc hidingCase) graph(t *testing.T, dt tensor.Dtype, build layers.Build) (names []string, run func(fill float64) [][]float64) {
	t.Helper()
	g := G.NewGraph()
	c := &bench{T: t, g: g, p: must.Get(layers.NewParams(dt, 5))(t), b: &build, dt: dt}
	x := input(g, "x", as(dt, random(9, tc.shape...)))
	y := tc.build(c, x)

	ys := y.Shape()
	targets := make([]int, ys[0]*ys[1])
	eachRow(ys, func(r, b, i int) {
		if targets[r] = r % ys[2]; !tc.selected(b, i) {
			targets[r] = layers.Ignore
		}
	})
	loss := c.node(mean(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", targets, ys[0], ys[1]), layers.CrossEntropyOptions{})))
	wrt := append(G.Nodes{x}, append(c.wrt, c.b.Learnables()...)...)
	names = []string{"output", "loss"}
	for _, n := range wrt {
		names = append(names, "gradient of "+n.Name())
	}
	again := runner(t, append(G.Nodes{y, loss}, gradients(t, loss, wrt...)...)...)
	return names, func(fill float64) [][]float64 {
		t.Helper()
		values, width := random(9, tc.shape...), tc.shape[2]
		eachRow(tc.shape, func(r, b, i int) {
			if tc.hidden(b, i) {
				for j := range width {
					values.Float64s()[r*width+j] = fill
				}
			}
		})
		must.Do(t, G.Let(x, as(dt, values)))
		var got [][]float64
		for _, c.b.Runs = range []uint64{1, 0} { // setting Runs restarts the count, so dropout is the same for every fill
			got = must.Get(again())(t)
		}
		var seen []float64
		eachRow(ys, func(r, b, i int) {
			if tc.selected(b, i) {
				seen = append(seen, got[0][r*ys[2]:][:ys[2]]...)
			}
		})
		eachRow(tc.shape, func(r, b, i int) {
			if row := got[2][r*width:][:width]; tc.hidden(b, i) && !allZero(row) {
				t.Errorf("with %v in hidden rows: the gradient of x at (%d, %d) is %v, want 0", fill, b, i, row)
			}
		})
		got[0] = seen
		return got
	}
}

func eachRow(shape []int, f func(r, b, i int)) {
	for r := range shape[0] * shape[1] {
		f(r, r/shape[1], r%shape[1])
	}
}

// from(t) hides the rows from position t on. past(lengths) hides the rows after the length of each batch element.
func from(t int) func(b, i int) bool            { return func(_, i int) bool { return i >= t } }
func past(lengths ...int) func(b, i int) bool   { return func(b, i int) bool { return i >= lengths[b] } }
func everything(int, int) bool                  { return true }
func (c *bench) lengths(lengths ...int) *G.Node { return c.ints("lengths", lengths, len(lengths)) }

// allowBefore returns a mask of shape (B, 1, 1, S) that is true for keys before each batch element's length.
func (c *bench) allowBefore(s int, lengths ...int) *G.Node {
	values := make([]bool, len(lengths)*s)
	eachRow([]int{len(lengths), s}, func(r, b, i int) { values[r] = i < lengths[b] })
	return input(c.g, "allow", dense(values, len(lengths), 1, 1, s))
}

// biasBefore returns a bias of shape (B, 1, 1, S): 0.1·i for keys before each batch element's length, −Inf after it.
func (c *bench) biasBefore(s int, lengths ...int) *G.Node {
	values := make([]float64, len(lengths)*s)
	eachRow([]int{len(lengths), s}, func(r, b, i int) {
		if values[r] = 0.1 * float64(i); i >= lengths[b] {
			values[r] = -inf
		}
	})
	n := input(c.g, "bias", as(c.dt, dense(values, len(lengths), 1, 1, s)))
	c.wrt = append(c.wrt, n)
	return n
}

func (c *bench) multiHead(dim int, config layers.AttentionConfig) *layers.MultiHeadAttention {
	return must.Get(layers.NewMultiHeadAttention(c.p, dim, config))(c)
}

// TestTheFutureCannotLeak changes the rows after a position, for every kind of causal attention. Outputs up to that
// position must not change.
func TestTheFutureCannotLeak(t *testing.T) {
	var cases []hidingCase
	// Query i sees no key after i + ahead.
	for name, tc := range map[string]struct {
		ahead  int
		mask   func(c *bench) layers.Mask
		config layers.AttentionConfig
	}{
		"plain":   {0, func(*bench) layers.Mask { return layers.Mask{} }, layers.AttentionConfig{}},
		"lengths": {0, func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(7, 2)} }, layers.AttentionConfig{}},
		"allow":   {0, func(c *bench) layers.Mask { return layers.Mask{Allow: c.allow(nil, 7, 7)} }, layers.AttentionConfig{}},
		"bias":    {0, func(c *bench) layers.Mask { return layers.Mask{Bias: c.biasBefore(7, 7, 5)} }, layers.AttentionConfig{}},
		"lengths, allow and bias": {0, func(c *bench) layers.Mask {
			return layers.Mask{KeyLengths: c.lengths(6, 3), Allow: c.allow([]int{1}, 7, 7), Bias: c.biasBefore(7, 7, 5)}
		}, layers.AttentionConfig{}},
		"window":          {0, func(*bench) layers.Mask { return layers.Mask{Window: &layers.Window{Left: 2, Right: -1}} }, layers.AttentionConfig{}},
		"own window":      {0, func(*bench) layers.Mask { return layers.Mask{} }, layers.AttentionConfig{Window: &layers.Window{Left: 2, Right: 3}}},
		"open window":     {0, func(*bench) layers.Mask { return layers.Mask{Window: &layers.Window{Left: -1, Right: 3}} }, layers.AttentionConfig{}},
		"slopes":          {0, func(*bench) layers.Mask { return layers.Mask{Slopes: []float64{0.5, 0.25, 1, 2}} }, layers.AttentionConfig{}},
		"offset":          {2, func(*bench) layers.Mask { return layers.Mask{Offset: 2} }, layers.AttentionConfig{}},
		"negative offset": {-1, func(*bench) layers.Mask { return layers.Mask{Offset: -1} }, layers.AttentionConfig{}},
		"offsets":         {1, func(c *bench) layers.Mask { return layers.Mask{Offsets: c.ints("offsets", []int{1, -2}, 2)} }, layers.AttentionConfig{}},
		"grouped heads":   {0, func(*bench) layers.Mask { return layers.Mask{} }, layers.AttentionConfig{KeyValueHeads: 2}},
		"documents": {0, func(c *bench) layers.Mask {
			return layers.Mask{Documents: c.ints("documents", []int{0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3}, 2, 7)}
		}, layers.AttentionConfig{}},
		"blocks":         {0, func(c *bench) layers.Mask { return layers.Mask{Blocks: c.blocks(7, 7)} }, layers.AttentionConfig{}},
		"softcap":        {0, func(*bench) layers.Mask { return layers.Mask{} }, layers.AttentionConfig{Softcap: 0.5}},
		"dropout":        {0, func(*bench) layers.Mask { return layers.Mask{} }, layers.AttentionConfig{Dropout: 0.3}},
		"latent":         {0, func(*bench) layers.Mask { return layers.Mask{} }, layers.AttentionConfig{Latent: &layers.LatentConfig{Rank: 3, RotaryDim: 2, QueryRank: 5}}},
		"sinks and gate": {0, func(*bench) layers.Mask { return layers.Mask{} }, layers.AttentionConfig{Sinks: true, OutputGate: true}},
		"all": {1, func(c *bench) layers.Mask {
			return layers.Mask{
				Window: &layers.Window{Left: 3, Right: 2}, Slopes: []float64{0.5, 0.25, 1, 2}, Offsets: c.ints("offsets", []int{1, 0}, 2),
				KeyLengths: c.lengths(7, 6), Allow: c.allow([]int{1}, 7, 7), Bias: c.biasBefore(7, 7, 6),
			}
		}, layers.AttentionConfig{KeyValueHeads: 1, Softcap: 2, Dropout: 0.3, QKNorm: true}},
	} {
		config := tc.config
		config.Heads = 4
		cases = append(cases, hidingCase{
			name: "causal, " + name, shape: []int{2, 7, 8}, hidden: from(4), selected: func(_, i int) bool { return i < 4 && i+tc.ahead < 4 },
			build: func(c *bench, x *G.Node) *G.Node {
				m := tc.mask(c)
				m.Causal = true
				a := c.multiHead(8, config)
				if config.QKNorm {
					a.Positions = layers.Rotary{}
				}
				return c.node(a.Forward(c.b, x, x, x, m))
			},
		})
	}
	cases = append(cases, hidingCase{
		name: "scaled dot product", shape: []int{2, 7, 8}, hidden: from(3),
		build: func(c *bench, x *G.Node) *G.Node {
			return c.node(layers.ScaledDotProduct(c.b, x, x, x, layers.AttentionOptions{Mask: layers.Mask{Causal: true}}))
		},
	})
	for _, post := range []bool{false, true} {
		config := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 12, Activation: layers.GELU}, PostNorm: post, OutputNorm: post}
		cases = append(cases, hidingCase{
			name: fmt.Sprintf("decoder block, post-norm and output norm %t", post), shape: []int{2, 7, 8}, hidden: from(5),
			build: func(c *bench, x *G.Node) *G.Node {
				d := must.Get(layers.NewDecoderBlock(c.p, 8, config))(c)
				return c.node(d.Forward(c.b, x, layers.Mask{}))
			},
		}, hidingCase{
			name: fmt.Sprintf("decoder block with cross-attention, post-norm and output norm %t", post), shape: []int{2, 7, 8}, hidden: from(1),
			build: func(c *bench, x *G.Node) *G.Node {
				d := must.Get(layers.NewCrossDecoderBlock(c.p, 8, config))(c)
				memory := input(c.g, "memory", as(c.dt, random(3, 2, 3, 8)))
				return c.node(d.ForwardCross(c.b, x, memory, layers.Mask{}, layers.Mask{}))
			},
		})
	}
	cases = append(cases, hidingCase{
		name: "large", shape: []int{2, 50, 32}, hidden: from(33), build: func(c *bench, x *G.Node) *G.Node {
			d := must.Get(layers.NewDecoderBlock(c.p, 32, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}))(c)
			return c.node(d.Forward(c.b, x, layers.Mask{}))
		},
	})
	hide(t, cases)
}

// TestOwnWindow compares attention that has a Window of its own with attention whose mask has the Window.
func TestOwnWindow(t *testing.T) {
	for _, tc := range []struct{ own, mask, want *window }{
		{nil, nil, nil},
		{&window{Left: 1, Right: -1}, nil, &window{Left: 1, Right: -1}},
		{&window{Left: 2, Right: 0}, &window{Left: 0, Right: 1}, &window{}},
		{&window{Left: -1, Right: 1}, &window{Left: 1, Right: -1}, &window{Left: 1, Right: 1}},
	} {
		for _, composed := range []bool{false, true} {
			for _, cached := range []bool{false, true} {
				run := func(own, mask *window) []float64 {
					c := newBench(t)
					a, x, m := c.multiHead(8, layers.AttentionConfig{Heads: 2, Window: own}), c.in("x", 2, 5, 8), layers.Mask{Window: mask}
					if !cached {
						return read(t, c.node(a.Forward(&layers.Build{Composed: composed}, x, x, x, m)))[0]
					}
					cache := must.Get(layers.NewCache(2, 5))(t)
					must.Do(t, cache.Extend(2, 1))
					cache.Commit() // the positions of the queries begin with 2 and 1
					return read(t, c.node(a.Memory(&layers.Build{Composed: composed, Cache: cache}, x, x, m)))[0]
				}
				sameBits(t, fmt.Sprintf("composed %t, cached %t, %v and the mask's %v", composed, cached, tc.own, tc.mask), run(tc.own, tc.mask), run(nil, tc.want))
			}
		}
	}
	run := func(own *window) []float64 {
		d := must.Get(layers.NewCrossDecoderBlock(newParams(t), 8, layers.BlockConfig{Attention: layers.AttentionConfig{Window: own}}))(t)
		c := newBench(t)
		return read(t, c.node(d.ForwardCross(c.b, c.in("x", 1, 1, 8), c.in("memory", 1, 5, 8), layers.Mask{}, layers.Mask{})))[0]
	}
	sameBits(t, "attention to an encoder's output", run(&window{}), run(nil))
}

// TestOtherDocumentsCannotLeak changes the rows of other documents. Outputs of a document must not change.
func TestOtherDocumentsCannotLeak(t *testing.T) {
	var cases []hidingCase
	for name, numbers := range map[string][]int{
		"adjoining": {0, 0, 1, 1, 1, 2, 2, 4, 4, 4, 1, 1, 1, 1},
		"scattered": {1, 0, 1, 0, 2, 1, 2, 0, 1, 1, 0, 1, 0, 0},
	} {
		for i, causal := range []bool{false, true} {
			for _, config := range []layers.AttentionConfig{{Heads: 2}, {Heads: 4, KeyValueHeads: 2, Softcap: 0.5, Dropout: 0.3}} {
				cases = append(cases, hidingCase{
					name: fmt.Sprintf("%s, causal %t, %d heads", name, causal, config.Heads), shape: []int{2, 7, 8},
					hidden: func(b, i int) bool { return numbers[b*7+i] != 1 },
					build: func(c *bench, x *G.Node) *G.Node {
						a := c.multiHead(8, config)
						a.Score = []layers.ScoreFunc{nil, wavy}[i]
						return c.node(a.Forward(c.b, x, x, x, layers.Mask{Causal: causal, Documents: c.ints("documents", numbers, 2, 7)}))
					},
				})
			}
		}
	}
	hide(t, cases)
}

// TestBlocksCannotLeak changes the rows of keys that a BlockMask hides from all queries but their own.
func TestBlocksCannotLeak(t *testing.T) {
	var cases []hidingCase
	for _, config := range []layers.AttentionConfig{{Heads: 2}, {Heads: 4, KeyValueHeads: 2, Softcap: 0.5, Dropout: 0.3}} {
		cases = append(cases, hidingCase{
			name: fmt.Sprintf("%d heads", config.Heads), shape: []int{2, 7, 8}, hidden: func(_, i int) bool { return i%3 == 1 },
			build: func(c *bench, x *G.Node) *G.Node {
				m := must.Get(layers.NewBlockMask(7, 7, func(query, key int) bool { return key%3 != 1 || query == key }))(c)
				return c.node(c.multiHead(8, config).Forward(c.b, x, x, x, layers.Mask{Blocks: m}))
			},
		})
	}
	hide(t, cases)
}

// blocks returns a BlockMask in which each query sees all keys.
func (c *bench) blocks(T, S int) *layers.BlockMask {
	return must.Get(layers.NewBlockMask(T, S, func(int, int) bool { return true }))(c)
}

// TestPaddingCannotMatter changes padding, also to NaN and infinity: no result may change.
func TestPaddingCannotMatter(t *testing.T) {
	var cases []hidingCase
	for name, m := range map[string]func(c *bench) layers.Mask{
		"lengths": func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(5, 3)} },
		"allow":   func(c *bench) layers.Mask { return layers.Mask{Allow: c.allowBefore(6, 5, 3)} },
		"bias":    func(c *bench) layers.Mask { return layers.Mask{Bias: c.biasBefore(6, 5, 3)} },
	} {
		cases = append(cases, hidingCase{
			name: "self-attention, " + name, shape: []int{2, 6, 8}, hidden: past(5, 3), build: func(c *bench, x *G.Node) *G.Node {
				return c.node(c.multiHead(8, layers.AttentionConfig{Heads: 2}).Forward(c.b, x, x, x, m(c)))
			},
		}, hidingCase{
			name: "cross-attention, " + name, shape: []int{2, 6, 5}, hidden: past(5, 3), selected: everything, build: func(c *bench, x *G.Node) *G.Node {
				query := input(c.g, "query", as(c.dt, random(3, 2, 4, 8)))
				return c.node(c.multiHead(8, layers.AttentionConfig{Heads: 2, KeyInput: 5}).Forward(c.b, query, x, x, m(c)))
			},
		}, hidingCase{
			name: "encoder blocks, " + name, shape: []int{2, 6, 8}, hidden: past(5, 3), build: func(c *bench, x *G.Node) *G.Node {
				mask := m(c)
				for i, post := range []bool{false, true} {
					config := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 12, Activation: layers.Activation(1 + i)}, PostNorm: post}
					e := must.Get(layers.NewEncoderBlock(c.p.Scope(fmt.Sprint(i)), 8, config))(c)
					x = c.node(e.Forward(c.b, x, mask))
				}
				return x
			},
		})
	}
	for name, config := range map[string]layers.AttentionConfig{
		"latent": {Latent: &layers.LatentConfig{Rank: 3, RotaryDim: 2}}, "grouped heads": {KeyValueHeads: 2}, "softcap": {Softcap: 0.5}, "dropout": {Dropout: 0.3}, "all": {KeyValueHeads: 1, Softcap: 2, Dropout: 0.3},
	} {
		config.Heads = 4
		cases = append(cases, hidingCase{
			name: "self-attention, " + name, shape: []int{2, 6, 8}, hidden: past(5, 3), build: func(c *bench, x *G.Node) *G.Node {
				m := layers.Mask{KeyLengths: c.lengths(5, 3)}
				if name == "all" {
					m.Window, m.Slopes, m.Offset = &layers.Window{Left: 2, Right: 2}, []float64{0.5, 0.25, 1, 2}, 1
				}
				return c.node(c.multiHead(8, config).Forward(c.b, x, x, x, m))
			},
		})
	}
	cases = append(cases, hidingCase{
		name: "past keys", shape: []int{2, 6, 8}, hidden: past(5, 3), selected: everything, build: func(c *bench, x *G.Node) *G.Node {
			// The new keys are padded. Every query sees the 2 past keys.
			return c.node(layers.ScaledDotProduct(c.b, c.in("query", 2, 4, 8), x, x, layers.AttentionOptions{
				Mask: layers.Mask{KeyLengths: c.lengths(7, 5)}, PastKey: c.in("past key", 2, 2, 8), PastValue: c.in("past value", 2, 2, 8), Dropout: 0.2,
			}))
		},
	}, hidingCase{
		name: "large", shape: []int{2, 70, 32}, hidden: past(70, 33), build: func(c *bench, x *G.Node) *G.Node {
			e := must.Get(layers.NewEncoderBlock(c.p, 32, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}))(c)
			return c.node(e.Forward(c.b, x, layers.Mask{KeyLengths: c.lengths(70, 33)}))
		},
	}, hidingCase{
		name: "dropout", shape: []int{2, 6, 8}, hidden: past(5, 3), build: func(c *bench, x *G.Node) *G.Node {
			e := must.Get(layers.NewEncoderBlock(c.p, 8, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, Dropout: 0.3}, Dropout: 0.3, FeedForward: layers.FeedForwardConfig{Dropout: 0.3}}))(c)
			return c.node(e.Forward(c.b, x, layers.Mask{KeyLengths: c.lengths(5, 3)}))
		},
	})
	hide(t, cases)
}

// TestTokensThatCannotMatter changes padded and future ids in whole models: no result may change.
func TestTokensThatCannotMatter(t *testing.T) {
	config := layers.ModelConfig{Vocab: 9, Positions: layers.Learned{MaxLen: 8}, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, Dropout: 0.2}, FeedForward: layers.FeedForwardConfig{Activation: layers.GELU, Dropout: 0.2}, Dropout: 0.2}, Layers: 2, Outputs: 9, Dropout: 0.2}
	lengths := []int{5, 3}
	encoder := func(c *bench, ids *G.Node) *G.Node {
		e := must.Get(layers.NewEncoder(c.p, config))(c)
		return c.node(e.Forward(c.b, ids, layers.Mask{KeyLengths: c.lengths(lengths...)}))
	}
	decoder := func(c *bench, ids *G.Node) *G.Node {
		d := must.Get(layers.NewDecoder(c.p, config))(c)
		return c.node(d.Forward(c.b, ids, layers.Mask{}))
	}
	for name, model := range map[string]func(c *bench, ids *G.Node) *G.Node{"encoder's padding": encoder, "decoder's future": decoder} {
		t.Run(name, func(t *testing.T) {
			run := func(filler int) [][]float64 {
				c := &bench{T: t, g: G.NewGraph(), p: newParams(t), b: &layers.Build{Training: true, Seed: 4}}
				ids := []int{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4}
				targets := slices.Clone(ids)
				eachRow([]int{2, 6}, func(r, b, i int) {
					if i >= lengths[b] {
						ids[r], targets[r] = filler, layers.Ignore
					}
				})
				y := model(c, c.ints("ids", ids, 2, 6))
				loss := c.node(mean(layers.CrossEntropy(&layers.Build{}, y, c.ints("targets", targets, 2, 6), layers.CrossEntropyOptions{})))
				got := read(t, append(G.Nodes{y, loss}, gradients(t, loss, c.b.Learnables()...)...)...)
				eachRow([]int{2, 6}, func(r, b, i int) {
					if i >= lengths[b] {
						clear(got[0][r*9:][:9])
					}
				})
				return got
			}
			want := run(0)
			for _, filler := range []int{3, 8} {
				for i, got := range run(filler) {
					sameBits(t, fmt.Sprintf("filler %d: output, loss or gradient %d", filler, i), got, want[i])
				}
			}
		})
	}
}
