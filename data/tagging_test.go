package data

import (
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestTaggingBatch(t *testing.T) {
	rule := named(t, "reverse", 4)
	b := must.Get(newCoderOf(t, rule).Batch(examplesOf(t, rule, "abcd", "ba", "c")))(t)
	const end, pad = 26, 27
	if b.Size != 3 || b.Len != 5 {
		t.Errorf("got size %d and length %d, want 3 and 5", b.Size, b.Len)
	}
	wantIDs(t, "lengths", b.Lengths, []int{5, 3, 2})
	wantIDs(t, "inputs", b.Inputs, []int{
		0, 1, 2, 3, end,
		1, 0, end, pad, pad,
		2, end, pad, pad, pad,
	})
	wantIDs(t, "targets", b.Targets, []int{
		3, 2, 1, 0, end,
		0, 1, end, Ignore, Ignore,
		2, end, Ignore, Ignore, Ignore,
	})
	if b.Counted() != 5+3+2 {
		t.Errorf("got %d counted targets, want 10", b.Counted())
	}
}

// Numbers are padded with zeros, and answers have no leading zeros.
func TestTaggingSums(t *testing.T) {
	rule := named(t, "add", 0)
	l := newCoderOf(t, rule)
	const plus, end = 10, 11
	if want := (Layout{Tokens: 13, Classes: 12, Len: 6, TargetLen: 6, Start: -1, End: end, Pad: 12}); l.Layout() != want {
		t.Errorf("got %+v, want %+v", l.Layout(), want)
	}
	for _, c := range []struct {
		source string
		input  []int
		target []int
		answer string
	}{
		{"12+34", []int{1, 2, plus, 3, 4, end}, []int{0, 0, 0, 4, 6, end}, "46"},
		{"7+35", []int{0, 7, plus, 3, 5, end}, []int{0, 0, 0, 4, 2, end}, "42"},
		{"99+1", []int{9, 9, plus, 0, 1, end}, []int{0, 0, 1, 0, 0, end}, "100"},
		{"0+0", []int{0, 0, plus, 0, 0, end}, []int{0, 0, 0, 0, 0, end}, "0"},
	} {
		b := must.Get(l.Batch(examplesOf(t, rule, c.source)))(t)
		wantIDs(t, c.source+": inputs", b.Inputs, c.input)
		wantIDs(t, c.source+": targets", b.Targets, c.target)
		if got, err := l.Answer(b.Targets); got != c.answer || err != nil {
			t.Errorf("%s: the targets spell %q, %v, want %q", c.source, got, err, c.answer)
		}
	}
	if got, err := l.Answer([]int{end}); got != "" || err != nil {
		t.Errorf("an end token spells %q, %v, want nothing", got, err)
	}
}

func TestTaggingErrors(t *testing.T) {
	checkBatchErrors(t, named(t, "copy", 0), map[string][]Example{
		"at least one row and one position, got a size of 0": nil,
		`task copy: source "B": symbol 'B' at position 0`:    {{Source: "a", Answer: "a"}, {Source: "B", Answer: "B"}},
		`task copy: answer "B": symbol 'B' at position 0`:    {{Source: "a", Answer: "B"}},
		`task copy: for kind tagging, an answer can't be longer than its source: the answer to "a" has at most 1 symbols, got "aa"; for longer answers`: {{Source: "a", Answer: "aa"}},
	})
}

// checkBatchErrors checks the errors that Batch returns for examples.
func checkBatchErrors(t *testing.T, rule Rule, tests map[string][]Example) {
	t.Helper()
	for want, examples := range tests {
		must.Refuse(newCoderOf(t, rule).Batch(examples))(t, want)
	}
}
