package decode_test

import (
	"fmt"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

const sourceVocab, sourceLen = 9, 6

func newEncoderDecoder(t testing.TB, dt tensor.Dtype, c layers.ModelConfig) *layers.EncoderDecoder {
	t.Helper()
	target := c.Vocab
	c.Vocab = sourceVocab
	return must.Get(layers.NewEncoderDecoder(must.Get(layers.NewParams(dt, 5))(t), layers.EncoderDecoderConfig{Model: c, TargetVocab: target}))(t)
}

func newSeq2Seq(t testing.TB, m *layers.EncoderDecoder, c decode.Seq2SeqConfig) *decode.Seq2Seq {
	t.Helper()
	s := must.Get(decode.NewSeq2Seq(m, c))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// wholeAnswers is like wholeDecoder, for an encoder–decoder and one source without padding.
func wholeAnswers(t testing.TB, m *layers.EncoderDecoder, source []int, mask layers.Mask) func(sequence []int) []float64 {
	return whole(t, sessionCapacity, func(tokens *G.Node) (*G.Node, error) {
		return m.Forward(&layers.Build{Composed: true}, ids(tokens.Graph(), "source", source), tokens, mask)
	})
}

// beside combines several models into one model that has all their sequences. Each model has the same number of
// sequences.
type beside []*fake

func (b beside) Step(tokens [][]int) (rows [][]float64, err error) {
	for _, m := range b {
		logits, err := m.Step(tokens[:m.Batch()])
		if err != nil {
			return nil, err
		}
		rows, tokens = append(rows, logits...), tokens[m.Batch():]
	}
	return rows, nil
}
func (b beside) Reorder(parents []int) error {
	for p, m := range b {
		local := slices.Clone(parents[p*m.Batch():][:m.Batch()])
		for i := range local {
			local[i] -= p * m.Batch() // parents must be sequences of the same model
		}
		if err := m.Reorder(local); err != nil {
			return err
		}
	}
	return nil
}

var (
	seq2seqSources = [][]int{{1, 2, 3, 4, 5, 6}, {7, 8}, {5}}
	seq2seqMask    = layers.Mask{Window: &layers.Window{Left: 4, Right: 4}}
)

func eachEncoderDecoder(t *testing.T, dtypes []tensor.Dtype, test func(t *testing.T, m *layers.EncoderDecoder, mask layers.Mask, tol float64)) {
	for name, config := range sessionConfigs() {
		for _, dt := range usual(dtypes) {
			t.Run(fmt.Sprintf("%s/%v", name, dt), func(t *testing.T) {
				mask := layers.Mask{}
				if name == "rotary" {
					mask = seq2seqMask
				}
				test(t, newEncoderDecoder(t, dt, config), mask, tolerance(dt))
			})
		}
	}
}

// TestSeq2SeqIsTheFullPass compares a Seq2Seq with models without a cache. The Seq2Seq has three sources of different
// lengths, with one or two targets each.
func TestSeq2SeqIsTheFullPass(t *testing.T) {
	testseed.Slow(t)
	eachEncoderDecoder(t, bothDtypes, func(t *testing.T, m *layers.EncoderDecoder, mask layers.Mask, tol float64) {
		for _, width := range []int{1, 2} {
			s := newSeq2Seq(t, m, decode.Seq2SeqConfig{Sources: 3, Width: width, SourceLen: sourceLen, Capacity: sessionCapacity, SourceMask: mask})
			if s.Batch() != 3*width || s.Vocab() != sessionVocab {
				t.Errorf("got a Batch of %d and a Vocab of %d, want %d and %d", s.Batch(), s.Vocab(), 3*width, sessionVocab)
			}
			for _, sources := range [][][]int{seq2seqSources, {{8}, {0, 0, 1, 2}, {3, 1, 4, 1, 5, 0}}} {
				must.Do(t, s.Read(sources))
				var want beside
				for _, source := range sources {
					want = append(want, cacheless(width, wholeAnswers(t, m, source, mask)))
				}
				rows := [][]int{{1, 2, 3}, {4}, {5, 6}, {0}, {1, 1}, {2, 2, 2}}[:3*width]
				wantLogits(t, "prompts", must.Get(s.Step(rows))(t), must.Get(want.Step(rows))(t), tol)
				if width == 2 {
					parents := []int{1, 0, 2, 2, 5, 5} // each parent has the same source
					must.Do(t, s.Reorder(parents))
					must.Do(t, want.Reorder(parents))
				}
				rows = [][]int{{1}, {4}, {}, {0}, {1}, {2}}[:3*width]
				wantLogits(t, "one token per sequence", must.Get(s.Step(rows))(t), must.Get(want.Step(rows))(t), tol)
			}
		}
	})
}

// TestSeq2SeqReorderTakesSources checks that Reorder copies a sequence together with its source.
func TestSeq2SeqReorderTakesSources(t *testing.T) {
	m := newEncoderDecoder(t, tensor.Float64, sessionConfigs()["alibi"])
	s := newSeq2Seq(t, m, decode.Seq2SeqConfig{Sources: 3, SourceLen: sourceLen, Capacity: sessionCapacity})
	must.Do(t, s.Read(seq2seqSources))
	begun := [][]int{{1, 2}, {3}, {4, 5, 6}}
	must.Get(s.Step(begun))(t)
	parents := []int{2, 0, 2}
	must.Do(t, s.Reorder(parents))
	must.Fail(t, s.Reorder([]int{0, 1, 3}), "decode: ", "got 3")
	next := func(rows [][]int, held [][]int) {
		t.Helper()
		got := must.Get(s.Step(rows))(t)
		for i, parent := range parents {
			f := cacheless(1, wholeAnswers(t, m, seq2seqSources[parent], layers.Mask{}))
			f.sequences[0] = slices.Clone(held[parent])
			wantLogits(t, fmt.Sprint("sequence ", i), got[i:i+1], must.Get(f.Step(rows[i:i+1]))(t), 1e-10)
		}
	}
	next([][]int{{0}, {1}, {2}}, begun)
	s.Reset()
	next([][]int{{3}, {2, 2}, {1}}, make([][]int, 3))
}

// TestSeq2SeqFewerSources reads fewer sources than Seq2SeqConfig.Sources. The other sources are empty, and no target
// attends to an empty source.
func TestSeq2SeqFewerSources(t *testing.T) {
	m := newEncoderDecoder(t, tensor.Float64, sessionConfigs()["sinusoidal"])
	s := newSeq2Seq(t, m, decode.Seq2SeqConfig{Sources: 3, SourceLen: sourceLen, Capacity: sessionCapacity})
	rows := [][]int{{1}, {2}, {2}}
	must.Do(t, s.Read(seq2seqSources))
	must.Get(s.Step(rows))(t)
	must.Do(t, s.Read([][]int{{7, 8}, {}}))
	got := must.Get(s.Step(rows))(t)
	wantLogits(t, "the only source", got[:1], must.Get(cacheless(1, wholeAnswers(t, m, []int{7, 8}, layers.Mask{})).Step(rows[:1]))(t), 1e-10)

	// An empty source is one token with no valid key.
	want := whole(t, sessionCapacity, func(tokens *G.Node) (*G.Node, error) {
		g := tokens.Graph()
		noSources := tensor.New(tensor.WithShape(1), tensor.WithBacking([]int{0}))
		lengths := G.NewTensor(g, tensor.Int, 1, G.WithShape(1), G.WithName("lengths"), G.WithValue(noSources))
		return m.Forward(&layers.Build{}, ids(g, "source", []int{4}), tokens, layers.Mask{KeyLengths: lengths})
	})(rows[1])
	wantLogits(t, "empty sources", got[1:], [][]float64{want, want}, 1e-10)
}

func TestSeq2SeqLimits(t *testing.T) {
	c := sessionConfigs()["learned"] // with sessionCapacity positions, also in the encoder
	m := newEncoderDecoder(t, tensor.Float32, c)
	s := newSeq2Seq(t, m, decode.Seq2SeqConfig{})
	if s.Batch() != 1 || s.Room(0) != sessionCapacity {
		t.Errorf("got a Batch of %d and room for %d, want 1 and %d", s.Batch(), s.Room(0), sessionCapacity)
	}
	must.Do(t, s.Read([][]int{make([]int, sessionCapacity)}))
	must.Fail(t, s.Read([][]int{make([]int, sessionCapacity+1)}), "decode: ", "source 0 must have at most 14 tokens, got 15")

	s = newSeq2Seq(t, m, decode.Seq2SeqConfig{SourceLen: 3, Capacity: 5})
	must.Fail(t, s.Read([][]int{make([]int, 4)}), "decode: ", "at most 3 tokens, got 4")
	if s.Room(0) != 5 {
		t.Errorf("got room for %d, want 5", s.Room(0))
	}
}

func TestSeq2SeqErrors(t *testing.T) {
	m := newEncoderDecoder(t, tensor.Float64, sessionConfigs()["rotary"])
	lengths := decode.Seq2SeqConfig{SourceLen: 3, Capacity: 4}
	with := func(change func(*decode.Seq2SeqConfig)) decode.Seq2SeqConfig {
		c := lengths
		change(&c)
		return c
	}
	node := G.NewTensor(G.NewGraph(), tensor.Bool, 1, G.WithShape(1), G.WithName("allow"))
	series := sessionConfigs()["rotary"]
	series.Vocab = 0
	spoken := must.Get(layers.NewEncoderDecoder(must.Get(layers.NewParams(tensor.Float64, 5))(t), layers.EncoderDecoderConfig{Model: series, TargetVocab: sessionVocab}))(t)
	for _, tc := range []struct {
		name   string
		model  *layers.EncoderDecoder
		config decode.Seq2SeqConfig
		want   string
	}{
		{"no length", m, decode.Seq2SeqConfig{Capacity: 4}, "SourceLen must be at least 1"},
		{"no capacity", m, decode.Seq2SeqConfig{SourceLen: 4}, "Capacity must be at least 1"},
		{"negative sources", m, with(func(c *decode.Seq2SeqConfig) { c.Sources = -1 }), "got -1 and 0"},
		{"negative width", m, with(func(c *decode.Seq2SeqConfig) { c.Width = -1 }), "got 0 and -1"},
		{"too many sources", m, with(func(c *decode.Seq2SeqConfig) { c.Sources = huge }), fmt.Sprint("decode: ", huge, " sources of 3 tokens, with 1 sequences each: this takes")},
		{"too long sources", m, with(func(c *decode.Seq2SeqConfig) { c.SourceLen = huge }), "this takes an impossible number"},
		{"too large a width", m, with(func(c *decode.Seq2SeqConfig) { c.Sources, c.Width = huge, huge }), "this takes an impossible number"},
		{"too large a capacity", m, with(func(c *decode.Seq2SeqConfig) { c.Capacity = huge }), fmt.Sprint("decode: cache: 1 sequences of ", huge, " tokens")},
		{"a source of embeddings", spoken, lengths, "decode: the encoder or the decoder has no vocabulary"},
		{"a mask with nodes", m, with(func(c *decode.Seq2SeqConfig) { c.Mask.Allow = node }), "decode: Mask can't contain nodes"},
		{"a source mask with nodes", m, with(func(c *decode.Seq2SeqConfig) { c.SourceMask.Allow = node }), "decode: SourceMask can't contain nodes"},
		{"a causal source", m, with(func(c *decode.Seq2SeqConfig) { c.SourceMask.Causal = true }), "can't be Causal"},
		{"a wrong window", m, with(func(c *decode.Seq2SeqConfig) { c.Mask.Window = &layers.Window{Left: -3} }), "Window"},
	} {
		s, err := decode.NewSeq2Seq(tc.model, tc.config)
		must.Fail(t, err, "decode: ", tc.want)
		if s != nil {
			t.Errorf("%s: got a Seq2Seq despite the error", tc.name)
		}
	}
	// Without its encoder, the decoder has no memory to attend to.
	must.Refuse(decode.New(m.Decoder, decode.Config{Capacity: 3}))(t, "decode: ", "encoder's output: call NewSeq2Seq")

	s := newSeq2Seq(t, m, with(func(c *decode.Seq2SeqConfig) { c.Sources = 2 }))
	must.Refuse(s.Step([][]int{{1}, {2}}))(t, "decode: no sources have been read: call Read first")
	must.Do(t, s.Read([][]int{{1, 2}, {3}}))
	want := slices.Clone(must.Get(s.Step([][]int{{1}, nil}))(t)[0])
	s.Reset()
	must.Fail(t, s.Read(make([][]int, 3)), "decode: ", "at most 2 sources, got 3")
	must.Fail(t, s.Read([][]int{{3}, {1, 9}}), "decode: ", "source 1: the token at position 1 must be from 0 to 8, got 9")
	must.Fail(t, s.Read([][]int{{1, 2, 3, 4}}), "decode: ", "source 0 must have at most 3 tokens, got 4")
	wantLogits(t, "after errors", must.Get(s.Step([][]int{{1}, nil}))(t), [][]float64{want, nil}, 0)

	for range 2 {
		must.Do(t, s.Close())
	}
	must.Fail(t, s.Read([][]int{{1}}), "decode: ", "the session is closed")
	must.Refuse(s.Step([][]int{{1}, {1}}))(t, "decode: ", "the session is closed")
}
