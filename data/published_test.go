package data

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// wordPieces returns the tokenizer of a BERT with the words a, b and c, and the piece b within a word.
func wordPieces(t *testing.T) *tokenizer.Pipeline {
	t.Helper()
	return must.Get(tokenizer.Open(writeAll(t, map[string]string{"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n##b\n"})))(t)
}

// Coders must give a published model its special tokens, and its own ids for padding, and cut texts so that these
// tokens stay.
func TestPublished(t *testing.T) {
	known := Published{Tokens: 9, Start: 5, Pad: 0, Segments: 2, Tabs: true}
	rule := func(kind Kind) Rule {
		r := Rule{Name: "bert", Kind: kind, Source: wordPieces(t), Published: known, MaxLen: 6}
		if kind == KindClassification {
			r.Classes = []string{"yes", "no"}
		}
		return r
	}
	for _, test := range []struct {
		kind   Kind
		source string
		want   []int
	}{
		{KindClassification, "a b", []int{2, 4, 5, 3}},
		{KindClassification, "a b c a b c", []int{2, 4, 5, 6, 4, 3}},
		{KindClassification, "a b c\tc", []int{2, 4, 5, 3, 6, 3}},
		{KindRegression, "", []int{2, 3}},
		{KindEmbed, "a\tb [SEP]", []int{2, 4, 5, 1, 1, 3}},
		{KindText, "a", []int{2, 4, 3}},
	} {
		c := must.Get(NewCoder(rule(test.kind)))(t)
		b, err := c.Batch([]Example{{Source: test.source}, {Source: "a"}})
		if err != nil || !slices.Equal(b.Inputs[:b.Lengths[0]], test.want) {
			t.Fatalf("%s, %q: got %v, %v, want %v", test.kind, test.source, b.Inputs, err, test.want)
		}
		for row, length := range b.Lengths {
			if padding := b.Inputs[row*b.Len:][length:b.Len]; !slices.Equal(padding, make([]int, len(padding))) {
				t.Errorf("%s, %q: row %d is padded with %v, want 0", test.kind, test.source, row, padding)
			}
		}
		l := c.Layout()
		if pairs := test.kind != KindText; l.Tokens != 9 || pairs && (l.Segments != 2 || l.Separator != 3) {
			t.Errorf("%s: the layout is %+v, want 9 tokens, and two segments after id 3", test.kind, l)
		}
	}
	one := rule(KindClassification) // as for a run that learned one text per row
	one.Published.Tabs = false
	if ids := must.Get(one.SourceTokenizer().Encode("a b\tc"))(t); !slices.Equal(ids, []int{2, 4, 5, 6, 3}) {
		t.Errorf("without Tabs: got %v, want one text", ids)
	}
	c := must.Get(NewCoder(rule(KindText)))(t)
	must.Refuse(c.Batch([]Example{{Source: "a b c a b c"}}))(t, "8 tokens, but the model reads at most 6 (max_position_embeddings)")
	small := rule(KindEmbed)
	small.Published = Published{Tokens: 5}
	c = must.Get(NewCoder(small))(t)
	must.Refuse(c.Batch([]Example{{Source: "a b"}}))(t, "id 5 is beyond the model's 5 ids")
	for _, wrong := range []Published{{Tokens: -1}, {Tokens: 9, Start: 9}, {Tokens: 9, Pad: -2}} {
		r := rule(KindEmbed)
		r.Published = wrong
		must.Refuse(NewCoder(r))(t, "a rule with Published needs")
	}
}

// A word's tag is the target of the word's first piece, whatever white space or mark separates the words.
func TestPublishedTagging(t *testing.T) {
	tags := must.Get(tokenizer.New(tokenizer.Tokens, slices.Values([]string{"D D D N N V"}), 0))(t)
	rule := Rule{Name: "bert", Kind: KindTagging, Source: wordPieces(t), Target: tags, Published: Published{Tokens: 9, Start: -1, Pad: 0, Segments: 2}, MaxLen: 9}
	c := must.Get(NewCoder(rule))(t)
	b := must.Get(c.Batch([]Example{{Source: "abb c\t\u00a0a,b ", Answer: "N V D D N"}, {Source: "a [SEP]"}}))(t)
	const no = Ignore
	wantIDs(t, "inputs", b.Inputs, []int{2, 4, 7, 7, 6, 4, 1, 5, 3, 2, 4, 1, 1, 1, 3, 0, 0, 0})
	wantIDs(t, "targets", b.Targets, []int{no, 1, no, no, 2, 0, 0, 1, no, no, 0, 0, 0, 0, no, no, no, no})
	if l := c.Layout(); l.Tokens != 9 || l.Classes != tags.Len() || l.TargetLen != 9 || l.End >= 0 || l.Segments != 2 {
		t.Errorf("the layout is %+v", l)
	}
	symbols, places, err := rule.Tagged("abb c\t\u00a0a,b ")
	if want := []tokenizer.Token{{ID: 4, Start: 0, End: 3}, {ID: 6, Start: 4, End: 5}, {ID: 4, Start: 8, End: 9}, {ID: 1, Start: 9, End: 10}, {ID: 5, Start: 10, End: 11}}; err != nil || !slices.Equal(symbols, want) {
		t.Errorf("got the tokens %+v, %v, want %+v", symbols, err, want)
	}
	wantIDs(t, "places", places, []int{1, 4, 5, 6, 7})
	own := rule
	own.Source = tags
	_, _, err = own.Tagged("D")
	must.Fail(t, err, "needs a Source of type *tokenizer.Pipeline")
	checkBatchErrors(t, rule, map[string][]Example{
		`each symbol of a source needs one tag, but "a b" has 2 symbols and "D" has 1 tags`: {{Source: "a b", Answer: "D"}},
		"there are no words in it":                                   {{Source: " \t"}},
		`the tokenizer has no piece for word 2, "\u200b": remove it`: {{Source: "a \u200b b", Answer: "D D N"}},
		"a source must have 1 to 9 symbols, got 10":                  {{Source: "a a a a a a a a"}},
	})
}

// The answers of a published model that translates have the special tokens of their tokenizer. Sources are cut.
func TestPublishedSeq2Seq(t *testing.T) {
	rule := Rule{Name: "mt", Kind: KindSeq2Seq, Source: wordPieces(t), Target: wordPieces(t), Published: Published{Tokens: 9, Start: 8, Pad: 0}, MaxLen: 4, MaxAnswer: 5}
	c := must.Get(NewCoder(rule))(t)
	if want := (Layout{Tokens: 9, TargetTokens: 9, Classes: 9, Len: 4, TargetLen: 5, Start: 8, End: -1}); c.Layout() != want {
		t.Errorf("got %+v, want %+v", c.Layout(), want)
	}
	b := must.Get(c.Batch([]Example{{Source: "a b c", Answer: "b a c"}, {Source: "a", Answer: "c"}, {Source: "a"}}))(t)
	const no = Ignore
	wantIDs(t, "inputs", b.Inputs, []int{2, 4, 5, 3, 2, 4, 3, 0, 2, 4, 3, 0})
	wantIDs(t, "before", b.DecoderInputs, []int{8, 2, 5, 4, 6, 8, 2, 6, 3, 0, 8, 2, 3, 0, 0})
	wantIDs(t, "targets", b.Targets, []int{2, 5, 4, 6, 3, 2, 6, 3, no, no, 2, 3, no, no, no})
	if answer := must.Get(c.Answer([]int{2, 5, 4, 8, 3, 6, 0}))(t); answer != "b a c" {
		t.Errorf("got the answer %q, want b a c", answer)
	}
	must.Refuse(c.Batch([]Example{{Source: "a", Answer: "b a c b"}}))(t, "an answer must have at most 5 symbols")
	rule.Published.Targets = 5
	must.Refuse(must.Get(NewCoder(rule))(t).Batch([]Example{{Source: "a b c", Answer: "b"}}))(t, "id 5 is beyond the model's 5 ids")
	rule.Target = nil
	must.Refuse(NewCoder(rule))(t, "needs a Target of type *tokenizer.Pipeline")
}
