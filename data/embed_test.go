package data

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestEmbeddingCoder(t *testing.T) {
	rule := Rule{Name: "e", Kind: KindEmbed, Alphabet: "abc", MaxLen: 3, Texts: 3}
	c := must.Get(NewCoder(rule))(t)
	b, err := c.Batch([]Example{{Source: "a", Answer: "ab\tc"}, {Source: "b", Answer: "c\tabc"}})
	if err != nil || b.Size != 6 || !slices.Equal(b.Lengths, []int{1, 2, 1, 1, 1, 3}) || !slices.Equal(b.Targets, []int{0, 1, 2, 3, 2, 5}) {
		t.Errorf("the batch is %+v, %v, want six rows, of which two have the number 2", b, err)
	}
	wide, err := b.Resize(c.Layout(), 9, 4, 0)
	if err != nil || !slices.Equal(wide.Targets, []int{0, 1, 2, 3, 2, 5, -1, -1, -1}) || wide.Counted() != b.Counted() {
		t.Errorf("Resize: the targets are %v, %v, want three more to ignore", wide.Targets, err)
	}
	if b, err = c.Batch([]Example{{Source: "a"}, {Source: "abc"}}); err != nil || b.Size != 2 || b.Counted() != 0 {
		t.Errorf("without answers, the batch is %+v, %v, want two rows without targets", b, err)
	}
	long := rule
	long.MaxLen = longest // as of a published T5, which would otherwise take 128 MB per text
	b, err = must.Get(NewCoder(long))(t).Batch([]Example{{Source: "a"}, {Source: "abc"}})
	if err != nil || !slices.Equal(b.Inputs, []int{0, 3, 3, 0, 1, 2}) {
		t.Errorf("with a length of 2²⁴, the batch has the ids %v, %v, want rows as long as the longest", b.Inputs, err)
	}
	must.Refuse(c.Batch([]Example{{Source: "a", Answer: "ab"}}))(t, `must have 2 texts with tabs between them, got "ab"`)
	rule.Texts, rule.Scored = 2, true
	c = must.Get(NewCoder(rule))(t)
	b, err = c.Batch([]Example{{Source: "a", Answer: "ab\t-0.5"}, {Source: "b", Answer: "c\t1"}})
	if err != nil || b.Numbers[0] != -0.5 || b.Numbers[2] != 1 || !math.IsNaN(float64(b.Numbers[1])) {
		t.Errorf("the numbers are %v, %v, want -0.5 and 1 for the sources", b.Numbers, err)
	}
	must.Refuse(c.Batch([]Example{{Source: "a", Answer: "ab\tc"}}))(t, `the score of "a": `)
	for _, wrong := range []Rule{
		{Kind: KindEmbed, Texts: 1}, {Kind: KindEmbed, Texts: -2}, {Kind: KindEmbed, Texts: 3, Scored: true}, {Kind: KindEmbed, Scored: true},
		{Kind: KindRegression, Texts: 2}, {Kind: KindEmbed, Texts: maxTexts + 1},
	} {
		wrong.Name, wrong.Alphabet, wrong.MaxLen = "e", "abc", 3
		must.Refuse(NewCoder(wrong))(t, "Texts")
	}
}
