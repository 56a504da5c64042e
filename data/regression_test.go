package data

import (
	"math"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestRegressionCoder(t *testing.T) {
	rule := Rule{Name: "r", Kind: KindRegression, Alphabet: "ab", MaxLen: 3, Mean: 10, Scale: 2}
	c := must.Get(NewCoder(rule))(t)
	b := must.Get(c.Batch([]Example{{"ab", " 13 "}, {"b", ""}, {"aba", "-1e1"}}))(t)
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
	if _, err := b.Resize(Layout{Start: -1}, 4, 5, 0); err == nil {
		t.Error("Resize with a Layout without Number: got no error")
	}
	if _, err := c.Batch([]Example{{"ab", "many"}}); err == nil {
		t.Error("the answer many: got no error")
	}
	if _, err := c.Answer([]int{0}); err == nil {
		t.Error("Answer: got no error")
	}
	rule.Scale = math.Inf(1)
	if _, err := NewCoder(rule); err == nil {
		t.Error("a Scale of infinity: got no error")
	}
	if _, err := NewCoder(Rule{Name: "r", Kind: KindTagging, Alphabet: "ab", MaxLen: 3, Mean: 1}); err == nil {
		t.Error("a tagging rule with a Mean: got no error")
	}
}
