package data

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// newTokenizer returns a tokenizer that has learned from texts. It has at most size ids; if size is 0, there is no
// limit.
func newTokenizer(t testing.TB, units tokenizer.Units, size int, texts ...string) tokenizer.Tokenizer {
	t.Helper()
	return must.Get(tokenizer.New(units, slices.Values(texts), size))(t)
}

// With two tokenizers, sources and answers have different ids. Each tokenizer encodes an unknown symbol as its unknown
// id.
func TestTokenizedSeq2Seq(t *testing.T) {
	c := newCoderOf(t, Rule{
		Name: "seq2seq", Kind: KindSeq2Seq, MaxLen: 4, MaxAnswer: 3,
		Source: newTokenizer(t, tokenizer.Characters, 0, "abc"), Target: newTokenizer(t, tokenizer.Tokens, 0, "X Y X"),
	})
	// Source ids: a, b, c, unknown, padding. Answer ids: X, Y, unknown, end, padding, start.
	want := Layout{Tokens: 5, TargetTokens: 6, Classes: 6, Len: 4, TargetLen: 4, Start: 5, End: 3, Pad: 4, TargetPad: 4}
	if got := c.Layout(); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	b := must.Get(c.Batch([]Example{{Source: "abz", Answer: "Y X"}, {Source: "c", Answer: "Q"}}))(t)
	const no = Ignore
	wantIDs(t, "inputs", b.Inputs, []int{0, 1, 3, 4, 2, 4, 4, 4})
	wantIDs(t, "before", b.DecoderInputs, []int{5, 1, 0, 4, 5, 2, 4, 4})
	wantIDs(t, "targets", b.Targets, []int{1, 0, 3, no, 2, 3, no, no})
	for _, targets := range [][]int{{1, 0, 3, 0}, {1, 0}, {1, 0, 4, 0}, {1, 0, 5}} {
		if got, err := c.Answer(targets); err != nil || got != "Y X" {
			t.Errorf("Answer(%v) = %q, %v; want Y X", targets, got, err)
		}
	}
	for source, want := range map[string]string{
		"abcab": `task seq2seq: a source must have 1 to 4 symbols, got 5`,
		"":      "the source is empty",
	} {
		must.Refuse(c.Batch([]Example{{Source: source}}))(t, want)
	}
	must.Refuse(c.Batch([]Example{{Source: "a", Answer: "X X X X"}}))(t, "an answer must have at most 3 symbols")
	// Without a Target, sources and answers share one vocabulary.
	both := newTokenizer(t, tokenizer.Characters, 0, "ab")
	c = newCoderOf(t, Rule{Name: "seq2seq", Kind: KindSeq2Seq, MaxLen: 4, MaxAnswer: 3, Source: both})
	want = Layout{Tokens: 6, TargetTokens: 6, Classes: 6, Len: 4, TargetLen: 4, Start: 5, End: 3, Pad: 4, TargetPad: 4}
	if got := c.Layout(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s, a := c.Tokenizers(); s != both || a != both {
		t.Error("sources and answers must have the same tokenizer")
	}
}

// In classification, a text that is too long is cut.
func TestTokenizedClassification(t *testing.T) {
	c := newCoderOf(t, Rule{Name: "classification", Kind: KindClassification, MaxLen: 2, Classes: []string{"x", "y"}, Source: newTokenizer(t, tokenizer.Tokens, 0, "one two")})
	b := must.Get(c.Batch([]Example{{Source: "two one two", Answer: "y"}, {Source: "one", Answer: "x"}}))(t)
	if want := []int{1, 0, 0, 3}; !slices.Equal(b.Inputs, want) || !slices.Equal(b.Targets, []int{1, 0}) || b.Lengths[0] != 2 {
		t.Errorf("got %+v, want the inputs %v", b, want)
	}
}

// Each token has one tag, and there is no end token.
func TestTokenizedTagging(t *testing.T) {
	c := newCoderOf(t, Rule{Name: "tagging", Kind: KindTagging, MaxLen: 3, Source: newTokenizer(t, tokenizer.Tokens, 0, "the the dog"), Target: newTokenizer(t, tokenizer.Tokens, 0, "D D N")})
	b := must.Get(c.Batch([]Example{{Source: "dog", Answer: "N"}, {Source: "the cat the", Answer: "D N D"}, {Source: "the"}}))(t)
	const no = Ignore
	wantIDs(t, "targets", b.Targets, []int{1, no, no, 0, 1, 0, 0, no, no}) // without an answer, 0 for each tag
	wantIDs(t, "inputs", b.Inputs, []int{1, 3, 3, 0, 2, 0, 0, 3, 3})
	wantIDs(t, "lengths", b.Lengths, []int{1, 3, 1})
	if got, err := c.Answer([]int{0, 1}); err != nil || got != "D N" {
		t.Errorf("got %q, %v, want D N", got, err)
	}
	must.Refuse(c.Batch([]Example{{Source: "the dog", Answer: "D"}}))(t, `each symbol of a source needs one tag, but "the dog" has 2 symbols and "D" has 1 tags`)
}

// Resize only removes or adds padding.
func TestResize(t *testing.T) {
	c := newCoderOf(t, Rule{
		Name: "seq2seq", Kind: KindSeq2Seq, MaxLen: 5, MaxAnswer: 4,
		Source: newTokenizer(t, tokenizer.Characters, 0, "ab"), Target: newTokenizer(t, tokenizer.Tokens, 0, "X Y"),
	})
	few := must.Get(c.Batch([]Example{{Source: "ab", Answer: "X"}, {Source: "b", Answer: "Y"}}))(t)
	b := must.Get(few.Resize(c.Layout(), 3, 2, 2))(t)
	const no = Ignore
	wantIDs(t, "inputs", b.Inputs, []int{0, 1, 1, 3, 3, 3})
	wantIDs(t, "lengths", b.Lengths, []int{2, 1, 1})
	wantIDs(t, "before", b.DecoderInputs, []int{5, 0, 5, 1, 4, 4})
	wantIDs(t, "targets", b.Targets, []int{0, 3, 1, 3, no, no})
	if wide, err := b.Resize(c.Layout(), 3, 5, 5); err != nil || wide.Counted() != few.Counted() || !slices.Equal(wide.Inputs[:10], few.Inputs) {
		t.Errorf("resized to the old width: got %+v, %v", wide, err)
	}
	for _, size := range [][3]int{{1, 2, 2}, {2, 1, 2}, {2, 2, 1}, {2, 2, 0}, {0, 2, 2}} {
		must.Refuse(few.Resize(c.Layout(), size[0], size[1], size[2]))(t)
	}
}
