package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// config returns the configuration of a small model for a rule.
func config(rule data.Rule) *Config {
	return &Config{
		Format: Format, Task: rule, Seed: 1,
		Model: layers.ModelConfig{Dim: 16, Layers: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}},
	}
}

// ruleModel returns an untrained model for one of Heed's own rules, or for text.
func ruleModel(t testing.TB, name string) *Model {
	t.Helper()
	if name == "text" {
		c := config(data.Rule{Name: "text", Kind: data.KindText, Alphabet: " abcdefghijklmnopqrstuvwxyz", MaxLen: 16})
		c.Data.File = "text.txt"
		return must.Get(New(c, nil))(t)
	}
	return must.Get(New(config(must.Get(toy.Named(name, 0))(t)), nil))(t)
}

// Weights of experts stay in float32 in a model with int8 weights, and the memory for them must count so.
func TestBytesOfExperts(t *testing.T) {
	n := 1000 + 2*3*16*4*8 // three matrices of each of the 4 experts in 2 blocks, and others
	m := layers.ModelConfig{Vocab: 10, Dim: 16, Layers: 2, Block: layers.BlockConfig{FeedForward: layers.FeedForwardConfig{Hidden: 8, Gated: true}}}
	for _, want := range []int{n + 8*160, n + 3*(n-1000) + 8*160} {
		if got := (publishedStart{model: pretrained.Config{Model: m}, int8: true}).bytes(n); got != want {
			t.Errorf("experts %v: %d weights take %d bytes, want %d", m.Block.FeedForward.Experts, n, got, want)
		}
		m.Block.FeedForward.Experts = &layers.ExpertsConfig{Count: 4}
	}
}

// labelModel returns an untrained model for the two labels of a file of tokens.
func labelModel(t testing.TB) *Model {
	t.Helper()
	source := must.Get(tokenizer.New(tokenizer.Tokens, func(yield func(string) bool) { yield("a b c d z") }, 0))(t)
	c := config(data.Rule{Name: "classification", Kind: data.KindClassification, Classes: []string{"other", "vowel"}, Source: source, MaxLen: 16})
	c.Data.File, c.Data.SourceUnits = "rows.tsv", tokenizer.Tokens
	return must.Get(New(c, nil))(t)
}

func TestSegments(t *testing.T) {
	b := data.Batch{Inputs: []int{1, 9, 2, 3, 2, 1, 9, 0, 4, 4, 4, 4}, Size: 3, Len: 4}
	if got, want := segments(b, 9), []int{0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Text must end before the first of the stop strings, however it arrives, and only text that may begin one is held
// back.
func TestStopping(t *testing.T) {
	for _, test := range []struct {
		stop    []string
		parts   []string
		written []string // after each part
		want    string   // after the end
		ended   bool
	}{
		{nil, []string{"a", "b"}, []string{"a", "ab"}, "ab", false},
		{[]string{"\n\n"}, []string{"a\n", "b\n", "\nc"}, []string{"a", "a\nb", "a\nb"}, "a\nb", true},
		{[]string{"User:", "Use"}, []string{"Hi U", "ser: x"}, []string{"Hi ", "Hi "}, "Hi ", true},
		{[]string{"aab"}, []string{"aa", "a", "b"}, []string{"", "a", "a"}, "a", true},
		{[]string{"aab"}, []string{"xaa"}, []string{"x"}, "xaa", false},
		{[]string{"é!"}, []string{"cafés", " é"}, []string{"cafés", "cafés "}, "cafés é", false},
		{[]string{"b", "a"}, []string{"xab"}, []string{"x"}, "x", true},
	} {
		var s strings.Builder
		out := &stopping{w: &s, stop: test.stop}
		for i, part := range test.parts {
			if out.write(part); s.String() != test.written[i] {
				t.Errorf("%q: after part %d of %q, %q is written, want %q", test.stop, i, test.parts, s.String(), test.written[i])
			}
		}
		out.flush()
		if s.String() != test.want || out.ended != test.ended || out.err != nil {
			t.Errorf("%q: %q gives %q, ended %v, %v, want %q, ended %v", test.stop, test.parts, s.String(), out.ended, out.err, test.want, test.ended)
		}
	}
}

// An answer has about six digits of the scale, whatever the mean is.
func TestRegressionAnswers(t *testing.T) {
	for _, test := range []struct {
		mean, scale, number float64
		want                string
	}{
		{0, 0, 0.123456789, "0.12346"},
		{1000, 20, 0.123456789, "1002.4691"},
		{1e9, 1, -0.987654321, "999999999.01235"},
		{0, 1e-9, 1.0 / 3, "3.3333e-10"},
		{0, 3e7, 1.0 / 3, "10000000"},
		{-5, 1, 5, "0"},
	} {
		r := regressor{reader{Model: &Model{Config: &Config{Task: data.Rule{Mean: test.mean, Scale: test.scale}}}}}
		var got Answer
		err := r.answer(choice{number: test.number}, &got)
		if parsed, _ := text.Number(got.Text); err != nil || got.Text != test.want || *got.Number != parsed {
			t.Errorf("%+v: got %s, %v", test, got.Text, err)
		}
	}
	if err := (regressor{reader{Model: &Model{Config: &Config{}}}}).answer(choice{number: math.NaN()}, &Answer{}); err == nil {
		t.Error("NaN: got no error")
	}
}

// A folder may come from someone else: what it claims is judged before memory is spent.
func TestHugeModel(t *testing.T) {
	c := config(must.Get(toy.Named("copy", 0))(t))
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads = 1<<14, 128, 1
	must.Refuse(New(c, nil))(t, "the model needs at least 1.28e+03 GiB of memory, but only")
}
