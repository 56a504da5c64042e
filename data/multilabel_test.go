package data_test

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
)

func TestMultiLabel(t *testing.T) {
	rule := data.Rule{Name: "news", Kind: data.KindMultiLabel, Alphabet: "abc", MaxLen: 3, Classes: []string{"art", "law", "war"}, Separator: ";"}
	c := must.Get(data.NewCoder(rule))(t)
	b := must.Get(c.Batch([]data.Example{{Source: "ab", Answer: "war; art;war"}, {Source: "c", Answer: ";"}, {Source: "a"}}))(t)
	if want := []int{1, 0, 1, 0, 0, 0, -1, -1, -1}; !slices.Equal(b.Targets, want) || b.TargetLen != 3 {
		t.Errorf("targets %v of length %d, want %v", b.Targets, b.TargetLen, want)
	}
	for i, want := range []string{"art;war", ""} {
		if got := must.Get(c.Answer(b.Targets[3*i:][:3]))(t); got != want {
			t.Errorf("row %d: answer %q, want %q", i, got, want)
		}
	}
	must.Refuse(c.Answer([]int{1}))(t, "a row has 3 targets, got 1")
	must.Refuse(c.Batch([]data.Example{{Source: "a", Answer: "art;tax"}}))(t, `must be among ["art" "law" "war"], got "tax"`)
	rule.Classes = nil
	must.Refuse(data.NewCoder(rule))(t, "needs at least one of the Classes")
	rule.Kind = data.KindTagging
	must.Refuse(data.NewCoder(rule))(t, "can't have a Separator")
	for separator, want := range map[string][]string{"|": {"a b", "c"}, " ": {"a", "b|", "c", "|||a", "b"}, "": {"a b| c |||a b"}} {
		if labels := (&data.Rule{Separator: separator}).Labels("a b| c |||a b"); !slices.Equal(labels, want) {
			t.Errorf("%q: labels %q, want %q", separator, labels, want)
		}
	}
}
