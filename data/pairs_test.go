package data

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

func TestPairs(t *testing.T) {
	words := must.Get(tokenizer.New(tokenizer.Tokens, slices.Values([]string{"a b c"}), 0))(t)
	n := words.Len()
	rule := Rule{Name: "r", Kind: KindClassification, Pairs: true, Source: words, Classes: []string{"x", "y"}, MaxLen: 6}
	c := must.Get(NewCoder(rule))(t)
	l := c.Layout()
	if l.Separator != n || l.Segments != 2 || l.Pad != n+1 || l.Tokens != n+2 {
		t.Errorf("the layout is %+v, want the separator %d and the padding after it", l, n)
	}
	source, _ := c.Tokenizers()
	for text, whole := range map[string]string{ // cut to 6 ids
		"a\tb": "a\tb", "a b c\tc b": "a b c\tc b", "a b c a b c\tb": "a b c a\tb",
		"a\tb b b b b b": "a\tb b b b", "a a a a a\tb b b b b": "a a a\tb b",
	} {
		b := must.Get(c.Batch([]Example{{Source: text, Answer: "x"}}))(t)
		ids := b.Inputs[:b.Lengths[0]]
		if got, err := source.Decode(ids); err != nil || got != whole {
			t.Errorf("%q is read as %q, %v, want %q", text, got, err, whole)
		}
	}
	for _, text := range []string{"a b", "\tb", "a\t ", "a\tb\tc"} {
		must.Refuse(c.Batch([]Example{{Source: text, Answer: "x"}}))(t, "two texts with one tab between them")
	}
	if got := rule.Parts("a b\tc"); !slices.Equal(got, []string{"a b", "c"}) {
		t.Errorf("the parts are %q, want two", got)
	}
	if got := (&Rule{}).Parts("a\tb"); !slices.Equal(got, []string{"a\tb"}) {
		t.Errorf("without Pairs, the parts are %q, want one", got)
	}
	rule.MaxLen = 2
	must.Refuse(NewCoder(rule))(t, "needs a MaxLen of at least 3")
}
