package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// newSeq2Seq makes a small EncoderDecoder with vocabularies of 7 and 6, for sources up to length 5 and targets up to
// length 4.
func newSeq2Seq(t testing.TB, p *layers.Params, change func(c *layers.EncoderDecoderConfig)) *layers.EncoderDecoder {
	t.Helper()
	c := layers.EncoderDecoderConfig{
		Model: layers.ModelConfig{
			Vocab: 7, Dim: 4, Layers: 2,
			Positions: layers.Learned{MaxLen: 5},
			Block:     layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}},
		},
		TargetVocab: 6, TargetPositions: layers.Learned{MaxLen: 4}, DecoderLayers: 1,
	}
	if change != nil {
		change(&c)
	}
	if _, learned := c.Model.Positions.(layers.Learned); !learned {
		c.TargetPositions = nil
	}
	return must.Get(layers.NewEncoderDecoder(p, c))(t)
}

func shared(c *layers.EncoderDecoderConfig) { c.Shared, c.Model.Tied, c.TargetVocab = true, true, 0 }

func TestGradientsOfEncoderDecoder(t *testing.T) {
	var cases []gradientCase
	for name, change := range map[string]func(c *layers.EncoderDecoderConfig){
		"pre-norm": func(c *layers.EncoderDecoderConfig) { c.Model.Block.FeedForward.Activation = layers.GELU },
		"post-norm, sinusoidal": func(c *layers.EncoderDecoderConfig) {
			c.Model.Block.PostNorm, c.Model.Positions = true, layers.Sinusoidal{}
		},
		"shared, with a head of its own": func(c *layers.EncoderDecoderConfig) { shared(c); c.Model.Tied, c.Model.HeadScale = false, 0.5 },
		"shared":                         func(c *layers.EncoderDecoderConfig) { shared(c); c.Model.Block.FeedForward.Activation = layers.GELU },
		"shared, gated, RMSNorm, no positions": func(c *layers.EncoderDecoderConfig) {
			shared(c)
			c.Model.Block.FeedForward.Activation, c.Model.Block.FeedForward.Gated, c.Model.Block.Norm.Kind, c.Model.Positions = layers.GELU, true, "rms", layers.NoPositions{}
		},
	} {
		cases = append(cases, gradientCase{name, func(c *bench) *G.Node {
			m := newSeq2Seq(c, c.p, change)
			source, target := c.ints("source", []int{4, 1, 1, 0, 0, 3, 4, 6, 1, 5}, 2, 5), c.ints("target", []int{5, 0, 3, 5, 2, 2}, 2, 3)
			logits := c.node(m.Forward(c.b, source, target, layers.Mask{KeyLengths: c.ints("lengths", []int{3, 5}, 2)}))
			return c.node(mean(layers.CrossEntropy(&layers.Build{}, logits, c.ints("next", []int{0, 3, layers.Ignore, 2, 2, 1}, 2, 3), layers.CrossEntropyOptions{})))
		}})
	}
	cases = append(cases, gradientCase{"without a batch axis", func(c *bench) *G.Node {
		m := newSeq2Seq(c, c.p, nil)
		return c.node(m.Forward(c.b, c.ints("source", []int{4, 1, 1}, 3), c.ints("target", []int{5, 0}, 2), layers.Mask{}))
	}}, gradientCase{"a decoder's memory", func(c *bench) *G.Node {
		m := newSeq2Seq(c, c.p, nil)
		mask := layers.Mask{Allow: c.allow(nil, 2, 1, 1, 4)}
		return c.node(m.Decode(c.b, c.ints("target", []int{5, 0, 3, 5}, 2, 2), c.in("memory", 2, 4, 4), layers.Mask{}, mask))
	}})
	checkGradients(t, cases)
}

func seq2seqSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	m := newSeq2Seq(t, p, func(c *layers.EncoderDecoderConfig) {
		if c.Model.Block.PostNorm = f.Config.PostNorm; f.Config.Shared {
			shared(c)
		}
	})
	f.fill(t, p)
	return one(must.Get(m.Forward(b, inputs["source"], inputs["target"], f.mask(inputs)))(t))
}

// TestEncoderDecoderHides changes the source's padding and the target's future tokens. The new tokens include one whose
// embedding is NaN or infinite. No bit of the other logits or of a gradient may change.
func TestEncoderDecoderHides(t *testing.T) {
	const poisoned = 3 // occurs nowhere else in sources and targets
	lengths := []int{5, 2}
	run := func(t *testing.T, dt tensor.Dtype, change func(c *layers.EncoderDecoderConfig), hidden int, value float64) [][]float64 {
		p := must.Get(layers.NewParams(dt, 5))(t)
		m := newSeq2Seq(t, p, change)
		for _, q := range []*layers.Param{m.Encoder.Embedding.Weight, m.Decoder.Embedding.Weight} {
			setRow(q, poisoned, value)
		}
		c := &bench{T: t, g: G.NewGraph(), p: p, b: &layers.Build{Training: true}, dt: dt}
		h := hidden
		source := c.ints("source", []int{4, 1, 1, 0, 6, 6, 4, h, h, h}, 2, 5)
		target := c.ints("target", []int{5, 0, h, h, 2, 4, h, h}, 2, 4)
		logits := c.node(m.Forward(c.b, source, target, layers.Mask{KeyLengths: c.lengths(lengths...)}))
		no := layers.Ignore
		loss := c.node(mean(layers.CrossEntropy(&layers.Build{}, logits, c.ints("next", []int{0, 2, no, no, 4, 1, no, no}, 2, 4), layers.CrossEntropyOptions{})))
		got := read(t, append(G.Nodes{logits, loss}, gradients(t, loss, c.b.Learnables()...)...)...)
		seen := append([]float64(nil), got[0][:2*6]...)
		got[0] = append(seen, got[0][4*6:][:2*6]...)
		return got
	}
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		for _, post := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, post-norm %t", dt, post), func(t *testing.T) {
				change := func(c *layers.EncoderDecoderConfig) {
					c.Model.Block.PostNorm, c.Model.Dropout, c.Model.Block.Dropout, c.Model.Block.Attention.Dropout, c.Model.Block.FeedForward.Dropout = post, 0.2, 0.2, 0.2, 0.2
				}
				want := run(t, dt, change, 0, 1)
				for _, value := range []float64{1, -3.25, 1e6, math.NaN(), inf, -inf} {
					for i, got := range run(t, dt, change, poisoned, value) {
						sameBits(t, fmt.Sprintf("with %v in hidden rows: value %d", value, i), got, want[i])
					}
				}
			})
		}
	}
}

// setRow sets every element in a row of a matrix to one value.
func setRow(q *layers.Param, row int, value float64) {
	width := q.Value.Shape()[1]
	for i := row * width; i < (row+1)*width; i++ {
		if q.Value.Dtype() == tensor.Float64 {
			q.Value.Float64s()[i] = value
		} else {
			q.Value.Float32s()[i] = float32(value)
		}
	}
}

// TestDecodersMemoryPaddingCannotMatter changes the encoder's output for padding. One source is all padding. No result
// may change.
func TestDecodersMemoryPaddingCannotMatter(t *testing.T) {
	var cases []hidingCase
	for name, m := range map[string]func(c *bench) layers.Mask{
		"lengths": func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(4, 0)} },
		"allow":   func(c *bench) layers.Mask { return layers.Mask{Allow: c.allowBefore(6, 4, 0)} },
		"bias":    func(c *bench) layers.Mask { return layers.Mask{Bias: c.biasBefore(6, 4, 0)} },
	} {
		cases = append(cases, hidingCase{
			name: name, shape: []int{2, 6, 4}, hidden: past(4, 0), selected: everything, build: func(c *bench, memory *G.Node) *G.Node {
				model := newSeq2Seq(c, c.p, nil)
				return c.node(model.Decode(c.b, c.ints("target", []int{5, 0, 3, 1, 2, 4}, 2, 3), memory, layers.Mask{}, m(c)))
			},
		})
	}
	hide(t, cases)
}

// TestEncodeOnce encodes once, and decodes targets of growing length, each in its own graph. Forward returns the same
// logits.
func TestEncodeOnce(t *testing.T) {
	for name, change := range map[string]func(c *layers.EncoderDecoderConfig){"own tables": nil, "shared": shared} {
		t.Run(name, func(t *testing.T) {
			p := newParams(t)
			m := newSeq2Seq(t, p, change)
			randomise(p)
			source, target := []int{4, 1, 1, 0, 0, 3, 2, 6, 1, 5}, []int{5, 0, 3, 1, 2, 2, 4, 0}
			inputs := func(c *bench) (*G.Node, layers.Mask) {
				return c.ints("source", source, 2, 5), layers.Mask{KeyLengths: c.lengths(3, 5)}
			}
			c := &bench{T: t, g: G.NewGraph(), p: p, b: &layers.Build{}}
			ids, mask := inputs(c)
			want := read(t, c.node(m.Forward(c.b, ids, c.ints("target", target, 2, 4), mask)))[0]
			vocab := len(want) / 8

			c = &bench{T: t, g: G.NewGraph(), p: p, b: &layers.Build{}}
			ids, mask = inputs(c)
			memory := dense(read(t, c.node(m.Encode(c.b, ids, mask)))[0], 2, 5, 4)
			for n := 1; n <= 4; n++ {
				c = &bench{T: t, g: G.NewGraph(), p: p, b: &layers.Build{}}
				begun := append(append([]int(nil), target[:n]...), target[4:4+n]...)
				got := read(t, c.node(m.Decode(c.b, c.ints("target", begun, 2, n), input(c.g, "memory", memory), layers.Mask{}, layers.Mask{KeyLengths: c.lengths(3, 5)})))[0]
				for r := range 2 {
					near(t, fmt.Sprintf("logits of target %d, %d tokens", r, n), got[r*n*vocab:][:n*vocab], want[r*4*vocab:][:n*vocab], 1e-14)
				}
			}
		})
	}
}

func TestEncoderDecoderParams(t *testing.T) {
	names := func(change func(c *layers.EncoderDecoderConfig)) map[string]string {
		p := newParams(t)
		newSeq2Seq(t, p.Scope("s"), change)
		shapes := map[string]string{}
		for _, q := range p.All() {
			shapes[q.Name] = fmt.Sprint(q.Value.Shape())
		}
		return shapes
	}
	own, one := names(nil), names(shared)
	for name, want := range map[string]string{
		"s.encoder.embedding.weight":                "(7, 4)",
		"s.encoder.positions.weight":                "(5, 4)",
		"s.encoder.blocks.1.attention.query.weight": "(4, 4)",
		"s.encoder.norm.weight":                     "(4)",
		"s.decoder.embedding.weight":                "(6, 4)",
		"s.decoder.positions.weight":                "(4, 4)",
		"s.decoder.blocks.0.cross.key.bias":         "(4)",
		"s.decoder.norm.bias":                       "(4)",
		"s.decoder.head.weight":                     "(6, 4)",
		"s.decoder.head.bias":                       "(6)",
		"s.embedding.weight":                        "",
		"s.encoder.head.weight":                     "",
		"s.decoder.blocks.1.attention.query.weight": "",
		"s.encoder.blocks.0.cross.query.weight":     "",
	} {
		if own[name] != want {
			t.Errorf("%s has shape %q, want %q", name, own[name], want)
		}
	}
	if one["s.embedding.weight"] != "(7, 4)" || len(one) != len(own)-3 {
		t.Errorf("shared: got the parameters %v, want s.embedding.weight of shape (7, 4) and %d in all", one, len(own)-3)
	}
	for _, name := range []string{"s.encoder.embedding.weight", "s.decoder.embedding.weight", "s.decoder.head.weight", "s.decoder.head.bias"} {
		if one[name] != "" {
			t.Errorf("shared: unexpected parameter %s", name)
		}
	}
	p := newParams(t)
	m := newSeq2Seq(t, p, shared)
	if m.Encoder.Embedding.Weight != m.Decoder.Embedding.Weight || m.Decoder.Head.Weight != m.Encoder.Embedding.Weight || m.Decoder.Head.Bias != nil {
		t.Error("shared: the encoder's table, the decoder's table and the head's weight aren't the same parameter")
	}
}

func TestEncoderDecoderErrors(t *testing.T) {
	make := func(change func(c *layers.EncoderDecoderConfig)) error {
		c := layers.EncoderDecoderConfig{Model: layers.ModelConfig{Vocab: 7, Positions: layers.Learned{MaxLen: 5}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 2}}
		change(&c)
		_, err := layers.NewEncoderDecoder(newParams(t).Scope("s"), c)
		return err
	}
	type config = layers.EncoderDecoderConfig
	c := newBench(t)
	m := newSeq2Seq(t, c.p.Scope("s"), nil)
	err := func(_ *G.Node, err error) error { return err }
	source, target, memory := c.ints("source", []int{1, 2, 3, 4}, 2, 2), c.ints("target", []int{1, 2, 3, 4}, 2, 2), c.in("memory", 2, 5, 4)
	wantErrors(t, []errorCase{
		{"TargetVocab", make(func(c *config) { c.TargetVocab = -1 }), []string{"decoder s.decoder", "Vocab", "-1"}},
		{"TargetMaxLen", make(func(c *config) { c.TargetPositions = layers.Learned{MaxLen: -1} }), []string{"s.decoder.positions", "MaxLen", "-1"}},
		{"DecoderLayers", make(func(c *config) { c.DecoderLayers = -2 }), []string{"decoder s.decoder", "Layers", "-2"}},
		{"heads", make(func(c *config) { c.Model.Block.Attention.Heads = 3 }), []string{"s.encoder.blocks.0.attention", "4", "3"}},
		{"shared with two vocabularies", make(func(c *config) { c.Shared, c.TargetVocab = true, 6 }), []string{"encoder-decoder s", "with Shared", "0 or equal to Vocab (7), got 6"}},
		{"shared with Outputs", make(func(c *config) { shared(c); c.Model.Outputs = 6 }), []string{"decoder s", "Outputs must be 0 or 7, got 6"}},
		{"shared without a vocabulary", make(func(c *config) { c.Shared, c.Model.Vocab = true, 0 }), []string{"encoder-decoder s", "Vocab", "at least 1"}},
		{"shared dropout", make(func(c *config) {
			c.Shared, c.Model.Dropout, c.Model.Block.Dropout, c.Model.Block.Attention.Dropout, c.Model.Block.FeedForward.Dropout = true, 1, 1, 1, 1
		}), []string{"encoder s.encoder", "below 1"}},

		{"causal source", err(m.Forward(c.b, source, target, layers.Mask{Causal: true})), []string{"encoder-decoder s", "can't be Causal"}},
		{"batches", err(m.Forward(c.b, source, c.ints("one", []int{1, 2}, 1, 2), layers.Mask{})), []string{"s.decoder.blocks.0.cross", "(1, 2, 4)", "(2, 2, 4)"}},
		{"ranks", err(m.Forward(c.b, source, c.ints("vector", []int{1, 2}, 2), layers.Mask{})), []string{"s.decoder.blocks.0.cross", "(2, 4)", "(2, 2, 4)"}},
		{"long source", err(m.Encode(c.b, c.ints("long", []int{1, 2, 3, 4, 5, 6}, 1, 6), layers.Mask{})), []string{"s.encoder.positions", "at most 5", "6"}},
		{"long target", err(m.Decode(c.b, c.ints("long target", []int{1, 2, 3, 4, 5}, 1, 5), memory, layers.Mask{}, layers.Mask{})), []string{"s.decoder.positions", "at most 4", "5"}},
		{"memory's width", err(m.Decode(c.b, target, c.in("narrow", 2, 5, 3), layers.Mask{}, layers.Mask{})), []string{"s.decoder.blocks.0.cross", "(…, 4)", "(2, 5, 3)"}},
		{"the decoder alone", err(m.Decoder.Forward(c.b, target, layers.Mask{})), []string{"s.decoder.blocks.0", "encoder's output"}},
	})
}
