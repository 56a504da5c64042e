package data

import (
	"math"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestRegressionCoder(t *testing.T) {
	rule := Rule{Name: "r", Kind: KindRegression, Alphabet: "ab", MaxLen: 3, Mean: 10, Scale: 2}
	c := must.Get(NewCoder(rule))(t)
	b := must.Get(c.Batch([]Example{{Source: "ab", Answer: " 13 "}, {Source: "b"}, {Source: "aba", Answer: "-1e1"}}))(t)
	if b.Numbers[0] != 1.5 || !math.IsNaN(float64(b.Numbers[1])) || b.Numbers[2] != -10 || b.Counted() != 2 {
		t.Errorf("got the numbers %v, of which %d count, want 1.5, NaN and -10, of which 2 count", b.Numbers, b.Counted())
	}
	wide, err := b.Resize(c.Layout(), 4, 5, 0)
	if err != nil || wide.Numbers[2] != -10 || !math.IsNaN(float64(wide.Numbers[3])) || wide.Counted() != 2 {
		t.Errorf("Resize: got the numbers %v, %v, want one more, NaN", wide.Numbers, err)
	}
	if part := b.Rows(2, 3); part.Counted() != 1 || part.Numbers[0] != -10 {
		t.Errorf("Rows: got the numbers %v, want -10", part.Numbers)
	}
	must.Refuse(b.Resize(Layout{Start: -1}, 4, 5, 0))(t, "a Layout with Number false doesn't fit this batch")
	must.Refuse(c.Batch([]Example{{Source: "ab", Answer: "many"}}))(t, `the answer to "ab": `)
	must.Refuse(c.Answer([]int{0}))(t, "which has no ids")
	rule.Scale = math.Inf(1)
	must.Refuse(NewCoder(rule))(t, "the Scale from 0 to")
	must.Refuse(NewCoder(Rule{Name: "r", Kind: KindTagging, Alphabet: "ab", MaxLen: 3, Mean: 1}))(t, "can't have a Mean or a Scale")
}
