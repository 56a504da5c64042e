package data

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// asSeq2Seq returns the rule, changed to kind seq2seq.
func asSeq2Seq(rule Rule) Rule {
	rule.Kind, rule.MaxAnswer = KindSeq2Seq, rule.MaxLen
	return rule
}

func TestSeq2Seq(t *testing.T) {
	rule := asSeq2Seq(named(t, "reverse", 4))
	b := must.Get(newCoderOf(t, rule).Batch(examplesOf(t, rule, "abcd", "ba", "c")))(t)
	const end, pad, start, no = 26, 27, 28, Ignore
	if b.Size != 3 || b.Len != 4 || b.TargetLen != 5 || b.Counted() != 5+3+2 {
		t.Errorf("got size %d, lengths %d and %d, and %d counted targets, want 3, 4, 5 and 10", b.Size, b.Len, b.TargetLen, b.Counted())
	}
	wantIDs(t, "inputs", b.Inputs, []int{0, 1, 2, 3, 1, 0, pad, pad, 2, pad, pad, pad})
	wantIDs(t, "lengths", b.Lengths, []int{4, 2, 1})
	wantIDs(t, "before", b.DecoderInputs, []int{start, 3, 2, 1, 0, start, 0, 1, pad, pad, start, 2, pad, pad, pad})
	wantIDs(t, "targets", b.Targets, []int{3, 2, 1, 0, end, 0, 1, end, no, no, 2, end, no, no, no})
}

// Capital and small letters give the same inputs.
func TestSeq2SeqOfDates(t *testing.T) {
	c := newCoderOf(t, named(t, "dates", 0))
	if want := (Layout{Tokens: 44, TargetTokens: 44, Classes: 44, Len: 29, TargetLen: 11, Start: 43, End: 41, Pad: 42, TargetPad: 42}); c.Layout() != want {
		t.Errorf("got %+v, want %+v", c.Layout(), want)
	}
	b := must.Get(c.Batch([]Example{{Source: "7 MAR 2024"}, {Source: "7 mar 2024"}}))(t)
	if !slices.Equal(b.Inputs[:b.Len], b.Inputs[b.Len:]) {
		t.Errorf("got\n%v\n%v", b.Inputs[:b.Len], b.Inputs[b.Len:])
	}
}

func TestSeq2SeqErrors(t *testing.T) {
	checkBatchErrors(t, named(t, "dates", 0), map[string][]Example{
		"at least one row and one position, got a size of 0":                      nil,
		`source "7:3:2024": symbol ':' at position 1`:                             {{Source: "7:3:2024"}},
		`task dates: an answer must have at most 10 symbols, got "2024-03-07-12"`: {{Source: "7.3.2024", Answer: "2024-03-07-12"}},
	})
}

// The two kinds differ only in what they make of padding and of a start token.
func TestAnswerOfTargets(t *testing.T) {
	const end, pad, start = 26, 27, 28
	copied := named(t, "copy", 0)
	for _, rule := range []Rule{copied, asSeq2Seq(copied)} {
		c := newCoderOf(t, rule)
		for _, tc := range []struct {
			name          string
			targets       []int
			want, wantErr string
			kind          Kind // if only one has this answer
		}{
			{"to the end token", []int{0, 1, end, 2}, "ab", "", ""},
			{"any id after the end token", []int{0, end, -7}, "a", "", ""},
			{"without an end token", []int{0, 1, 2}, "abc", "", ""},
			{"only an end token", []int{end}, "", "", ""},
			{"nothing", nil, "", "", ""},
			{"an ignored target", []int{0, Ignore}, "", "id -1 at position 1", ""},
			{"no token", []int{99}, "", "id 99 at position 0", ""},
			{"padding", []int{0, pad, 1}, "", "id 27 at position 1", KindTagging},
			{"to padding", []int{0, pad, 1}, "a", "", KindSeq2Seq},
			{"to a start token", []int{0, start, 1}, "a", "", KindSeq2Seq},
		} {
			if tc.kind != "" && tc.kind != rule.Kind {
				continue
			}
			got, err := c.Answer(tc.targets)
			if !must.Match(t, err, tc.wantErr) && got != tc.want {
				t.Errorf("%s, %s: got %q, %v; want %q", rule.Kind, tc.name, got, err, tc.want)
			}
		}
	}
}
