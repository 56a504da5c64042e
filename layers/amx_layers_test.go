//go:build amxmodel

package layers_test

import (
	"math/rand/v2"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// A unitLayer builds an expression with one layer, of sizes and with options that it draws.
type unitLayer struct {
	name  string
	build func(c *bench, r *rand.Rand) *G.Node
}

// unitLayers lists the layers. Models stand for their position schemes, embeddings and heads.
var unitLayers = []unitLayer{
	{"linear", func(c *bench, r *rand.Rand) *G.Node {
		s := axes(r, 3, 32)
		l := must.Get(layers.NewLinear(c.p, s[1], s[2], layers.LinearConfig{NoBias: yes(r)}))(c)
		return c.node(l.Forward(c.b, c.in("x", s[0], s[1])))
	}},
	{"feed-forward", unitFeedForward(false)},
	{"gated feed-forward", unitFeedForward(true)},
	{"low-rank adapter", func(c *bench, r *rand.Rand) *G.Node {
		s := axes(r, 3, 20)
		f := c.feedForward(s[1], layers.FeedForwardConfig{Hidden: s[2], Activation: drawActivation(r)})
		c.b.Adapter = must.Get(layers.NewAdapter(c.p, layers.LowRank{Rank: upTo(r, 8), Alpha: 2}, 1))(c)
		return c.node(f.Forward(c.b, c.in("x", s[0], s[1])))
	}},
	{"activation", func(c *bench, r *rand.Rand) *G.Node {
		return c.node(drawActivation(r).Forward(c.b, c.in("x", upTo(r, 20), upTo(r, 20))))
	}},
	{"embedding", func(c *bench, r *rand.Rand) *G.Node {
		vocab := upTo(r, 20)
		e := must.Get(layers.NewEmbedding(c.p, vocab, upTo(r, 20), layers.Init{}))(c)
		return c.node(e.Forward(c.b, c.drawIDs("ids", r, vocab, upTo(r, 40))))
	}},
	{"layer norm", func(c *bench, r *rand.Rand) *G.Node {
		dim := 3 + upTo(r, 40)
		l := must.Get(layers.NewNorm(c.p, dim, layers.NormConfig{NoBias: yes(r)}))(c)
		return c.node(l.Forward(c.b, c.in("x", upTo(r, 20), dim)))
	}},
	{"RMS norm", func(c *bench, r *rand.Rand) *G.Node {
		dim := 3 + upTo(r, 40)
		l := must.Get(layers.NewNorm(c.p, dim, layers.NormConfig{Kind: "rms"}))(c)
		return c.node(l.Forward(c.b, c.in("x", upTo(r, 20), dim)))
	}},
	{"rotary positions", func(c *bench, r *rand.Rand) *G.Node {
		x := c.in("x", 1+r.IntN(2), upTo(r, 20), 2*upTo(r, 10))
		return c.node(layers.Rotary{Interleaved: yes(r)}.Rotate(c.b, x, 1, nil))
	}},
	{"pool and normalize", func(c *bench, r *rand.Rand) *G.Node {
		batch, length := 1+r.IntN(3), upTo(r, 12)
		x := c.in("x", batch, length, upTo(r, 12))
		pooled := c.node(layers.Pool(c.b, x, c.drawLengths(r, batch, length), poolings[r.IntN(len(poolings))]))
		return c.node(layers.Normalize(c.b, pooled))
	}},
	{"scaled dot-product attention", unitDotProduct(false)},
	{"scaled dot-product attention, composed", unitDotProduct(true)},
	{"multi-head attention", unitMultiHead(false)},
	{"multi-head attention, composed", unitMultiHead(true)},
	{"cross-attention", func(c *bench, r *rand.Rand) *G.Node {
		batch, length, dim, heads := sequences(r)
		keys, config := upTo(r, 16), drawAttention(r, heads)
		config.KeyInput, config.ValueInput = upTo(r, 16), upTo(r, 16)
		q, k, v := c.in("query", batch, length, dim), c.in("key", batch, keys, config.KeyInput), c.in("value", batch, keys, config.ValueInput)
		return c.node(c.multiHead(dim, config).Forward(c.b, q, k, v, c.drawMask(r, batch, heads, length, keys)))
	}},
	{"additive attention", func(c *bench, r *rand.Rand) *G.Node {
		s := axes(r, 3, 16)
		batch, keys := 1+r.IntN(2), upTo(r, 16)
		config := layers.AdditiveConfig{KeyInput: upTo(r, 16), Hidden: s[2], NoScale: r.IntN(4) == 0}
		c.b.Composed = yes(r)
		q, k, v := c.in("query", batch, s[0], s[1]), c.in("key", batch, keys, config.KeyInput), c.in("value", batch, keys, upTo(r, 16))
		return c.node(c.additive(s[1], config).Forward(c.b, q, k, v, c.drawMask(r, batch, 1, s[0], keys)))
	}},
	{"encoder block", func(c *bench, r *rand.Rand) *G.Node {
		batch, length, dim, heads := sequences(r)
		block := must.Get(layers.NewEncoderBlock(c.p, dim, drawBlock(r, heads)))(c)
		return c.node(block.Forward(c.b, c.in("x", batch, length, dim), layers.Mask{KeyLengths: c.drawLengths(r, batch, length)}))
	}},
	{"decoder block", func(c *bench, r *rand.Rand) *G.Node {
		batch, length, dim, heads := sequences(r)
		config := drawBlock(r, heads)
		config.Parallel = !config.PostNorm && r.IntN(3) == 0
		block := must.Get(layers.NewDecoderBlock(c.p, dim, config))(c)
		return c.node(block.Forward(c.b, c.in("x", batch, length, dim), layers.Mask{}))
	}},
	{"decoder block with cross-attention", func(c *bench, r *rand.Rand) *G.Node {
		batch, length, dim, heads := sequences(r)
		block := must.Get(layers.NewCrossDecoderBlock(c.p, dim, drawBlock(r, heads)))(c)
		x, memory := c.in("x", batch, length, dim), c.in("memory", batch, upTo(r, 16), dim)
		return c.node(block.ForwardCross(c.b, x, memory, layers.Mask{}, layers.Mask{}))
	}},
	{"encoder", func(c *bench, r *rand.Rand) *G.Node {
		config := drawModel(r)
		e := must.Get(layers.NewEncoder(c.p, config))(c)
		return c.node(e.Forward(c.b, c.drawIDs("ids", r, config.Vocab, 1+r.IntN(2), upTo(r, 12)), layers.Mask{}))
	}},
	{"decoder", func(c *bench, r *rand.Rand) *G.Node {
		config := drawModel(r)
		d := must.Get(layers.NewDecoder(c.p, config))(c)
		return c.node(d.Forward(c.b, c.drawIDs("ids", r, config.Vocab, 1+r.IntN(2), upTo(r, 12)), layers.Mask{}))
	}},
	{"encoder-decoder", func(c *bench, r *rand.Rand) *G.Node {
		config, batch := drawModel(r), 1+r.IntN(2)
		config.Layers = 1
		m := must.Get(layers.NewEncoderDecoder(c.p, layers.EncoderDecoderConfig{Model: config}))(c)
		source, target := c.drawIDs("source", r, config.Vocab, batch, upTo(r, 12)), c.drawIDs("target", r, config.Vocab, batch, upTo(r, 12))
		return c.node(m.Forward(c.b, source, target, layers.Mask{}))
	}},
	{"sequence classifier", func(c *bench, r *rand.Rand) *G.Node {
		config := drawModel(r)
		config.Tied, config.Outputs = false, 1+r.IntN(8)
		s := must.Get(layers.NewSequenceClassifier(c.p, layers.SequenceClassifierConfig{Model: config, Pooling: poolings[r.IntN(len(poolings))]}))(c)
		return c.node(s.Forward(c.b, c.drawIDs("ids", r, config.Vocab, 1+r.IntN(2), upTo(r, 12)), layers.Mask{}))
	}},
	{"head with cross-entropy", unitHead(false)},
	{"head with cross-entropy, composed", unitHead(true)},
	{"contrastive loss", func(c *bench, r *rand.Rand) *G.Node {
		n, each := upTo(r, 12), 2+r.IntN(2)
		x := c.node(layers.Normalize(c.b, c.in("vectors", n*each, axes(r, 1, 20)[0])))
		logits, targets, err := layers.Contrastive(c.b, x, c.drawIDs("ids", r, 1000, n, each), 0.1)
		return c.node(mean(layers.CrossEntropy(c.b, c.node(logits, err), targets, layers.CrossEntropyOptions{})))
	}},
	{"errors of numbers", func(c *bench, r *rand.Rand) *G.Node {
		shape := []int{upTo(r, 20), upTo(r, 20)}
		x, y := c.in("x", shape...), c.in("y", shape...)
		if yes(r) {
			return c.node(mean(layers.MeanSquaredError(c.b, x, y, nil)))
		}
		return c.node(mean(layers.MeanAbsoluteError(c.b, x, y, nil)))
	}},
}

func unitFeedForward(gated bool) func(c *bench, r *rand.Rand) *G.Node {
	return func(c *bench, r *rand.Rand) *G.Node {
		s := axes(r, 3, 20)
		c.b.Composed = r.IntN(4) == 0
		f := c.feedForward(s[1], layers.FeedForwardConfig{Hidden: s[2], Gated: gated, NoBias: yes(r), Activation: drawActivation(r)})
		return c.node(f.Forward(c.b, c.in("x", s[0], s[1])))
	}
}

func unitDotProduct(composed bool) func(c *bench, r *rand.Rand) *G.Node {
	return func(c *bench, r *rand.Rand) *G.Node {
		batch, heads, s := 1+r.IntN(2), 1+r.IntN(3), axes(r, 3, 16) // T, S and K
		c.b.Composed = composed
		q, k, v := c.in("query", batch, heads, s[0], s[2]), c.in("key", batch, heads, s[1], s[2]), c.in("value", batch, heads, s[1], s[2])
		o := layers.AttentionOptions{Softcap: float64(r.IntN(3)), Mask: c.drawMask(r, batch, heads, s[0], s[1])}
		return c.node(layers.ScaledDotProduct(c.b, q, k, v, o))
	}
}

func unitMultiHead(composed bool) func(c *bench, r *rand.Rand) *G.Node {
	return func(c *bench, r *rand.Rand) *G.Node {
		batch, length, dim, heads := sequences(r)
		c.b.Composed = composed
		a := c.multiHead(dim, drawAttention(r, heads))
		if dim/heads%2 == 0 && yes(r) {
			a.Positions = layers.Rotary{}
		}
		x := c.in("x", batch, length, dim)
		return c.node(a.Forward(c.b, x, x, x, c.drawMask(r, batch, heads, length, length)))
	}
}

func unitHead(composed bool) func(c *bench, r *rand.Rand) *G.Node {
	return func(c *bench, r *rand.Rand) *G.Node {
		s := axes(r, 3, 24)
		vocab, softcap := 1+s[2], float64(r.IntN(2)*r.IntN(20))
		c.b.Composed = composed
		states, head := c.in("states", s[0], s[1]), c.head(s[1], vocab, yes(r))
		loss, _, err := layers.HeadCrossEntropy(c.b, states, head, softcap, c.drawIDs("ids", r, vocab, s[0]), layers.CrossEntropyOptions{})
		return c.node(loss.Mean, err)
	}
}

// yes returns true for half the draws.
func yes(r *rand.Rand) bool { return r.IntN(2) == 0 }

// upTo returns a number from 1 to limit. Half the draws are at most 4.
func upTo(r *rand.Rand, limit int) int {
	if yes(r) {
		limit = min(limit, 4)
	}
	return 1 + r.IntN(limit)
}

// axes draws n sizes up to limit. In one of eight draws, one of them is from 100 to 200, and the others are small.
func axes(r *rand.Rand, n, limit int) []int {
	s, long := make([]int, n), r.IntN(8*n)
	for i := range s {
		switch {
		case i == long:
			s[i] = 100 + r.IntN(100)
		case long < n:
			s[i] = upTo(r, 4)
		default:
			s[i] = upTo(r, limit)
		}
	}
	return s
}

// sequences draws a batch of sequences: B, T and D, and the number of heads. Heads are at least 4 wide, because
// normalising fewer numbers loses most of their digits. One batch in 32 is long, and one is wide.
func sequences(r *rand.Rand) (batch, length, dim, heads int) {
	batch, length, heads = 1+r.IntN(2), upTo(r, 16), 1+r.IntN(3)
	width := 3 + upTo(r, 5)
	switch r.IntN(32) {
	case 0:
		batch, length, heads = 1, 129+r.IntN(60), 1
	case 1:
		length, width = upTo(r, 4), (129+r.IntN(60))/heads
	}
	return batch, length, heads * width, heads
}

func drawActivation(r *rand.Rand) layers.Activation {
	return everyActivation[r.IntN(len(everyActivation))]
}

func drawAttention(r *rand.Rand, heads int) layers.AttentionConfig {
	config := layers.AttentionConfig{Heads: heads, NoBias: yes(r), QKNorm: r.IntN(4) == 0, Softcap: float64(r.IntN(3))}
	if yes(r) {
		config.KeyValueHeads = 1
	}
	return config
}

func drawBlock(r *rand.Rand, heads int) layers.BlockConfig {
	config := layers.BlockConfig{
		Attention:   layers.AttentionConfig{Heads: heads, NoBias: yes(r), QKNorm: r.IntN(4) == 0},
		FeedForward: layers.FeedForwardConfig{Hidden: axes(r, 1, 24)[0], Gated: yes(r), Activation: drawActivation(r)},
		PostNorm:    r.IntN(3) == 0,
	}
	if yes(r) {
		config.Norm.Kind = "rms"
	}
	return config
}

func drawModel(r *rand.Rand) layers.ModelConfig {
	heads := 1 + r.IntN(2)
	config := layers.ModelConfig{Vocab: 2 + r.IntN(12), Dim: heads * 2 * (1 + upTo(r, 5)), Layers: 1 + r.IntN(2), Block: drawBlock(r, heads)}
	positions := []layers.PositionsConfig{layers.Rotary{}, layers.Learned{MaxLen: 16}, layers.Sinusoidal{}, layers.ALiBi{}, layers.RelativeBias{Buckets: 4, MaxDistance: 5}}
	config.Positions = positions[r.IntN(len(positions))]
	if config.Tied = yes(r); !config.Tied {
		config.Outputs = 1 + r.IntN(8)
	}
	if r.IntN(4) == 0 {
		config.Transform = &layers.TransformConfig{Activation: layers.GELU, Norm: true}
	}
	return config
}

// drawIDs returns an input of ids from 0 to limit − 1.
func (c *bench) drawIDs(name string, r *rand.Rand, limit int, shape ...int) *G.Node {
	n := 1
	for _, size := range shape {
		n *= size
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = r.IntN(limit)
	}
	return c.ints(name, ids, shape...)
}

// drawLengths returns a length from 1 to limit for each sequence of a batch.
func (c *bench) drawLengths(r *rand.Rand, batch, limit int) *G.Node {
	lengths := make([]int, batch)
	for i := range lengths {
		lengths[i] = 1 + r.IntN(limit)
	}
	return c.lengths(lengths...)
}

func (c *bench) drawMask(r *rand.Rand, batch, heads, queries, keys int) layers.Mask {
	m := layers.Mask{Causal: yes(r)}
	if r.IntN(4) == 0 {
		m.Window = &window{Left: r.IntN(5), Right: r.IntN(5)}
	}
	if r.IntN(4) == 0 {
		m.KeyLengths = c.drawLengths(r, batch, keys)
	}
	if r.IntN(4) == 0 {
		m.Bias = c.bias(heads, queries, keys)
	}
	return m
}
