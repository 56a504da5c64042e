package data

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestSeq2SeqLayout(t *testing.T) {
	want := Layout{Tokens: 44, TargetTokens: 44, Classes: 44, Len: 29, TargetLen: 11, Start: 43, End: 41, Pad: 42, TargetPad: 42}
	if got := newCoderOf(t, named(t, "dates", 0)).Layout(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

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
func TestSeq2SeqOfCapitals(t *testing.T) {
	b := must.Get(newCoderOf(t, named(t, "dates", 0)).Batch([]Example{{Source: "7 MAR 2024"}, {Source: "7 mar 2024"}}))(t)
	if !slices.Equal(b.Inputs[:b.Len], b.Inputs[b.Len:]) {
		t.Errorf("got\n%v\n%v", b.Inputs[:b.Len], b.Inputs[b.Len:])
	}
}

func TestSeq2SeqErrors(t *testing.T) {
	checkBatchErrors(t, named(t, "dates", 0), []batchErrorTest{
		{"none", nil, "at least one row and one position, got a size of 0"},
		{"a bad symbol", []Example{{Source: "7:3:2024"}}, `source "7:3:2024": symbol ':' at position 1`},
		{"a long answer", []Example{{Source: "7.3.2024", Answer: "2024-03-07-12"}}, `task dates: an answer must have at most 10 symbols, got "2024-03-07-12"`},
	})
}

// TestSeq2SeqSpellAnswers checks for several rules that targets spell the answer, and that DecoderInputs has the start
// token and then the targets.
func TestSeq2SeqSpellAnswers(t *testing.T) {
	for _, rule := range []Rule{named(t, "dates", 0), asSeq2Seq(named(t, "sort", 0)), asSeq2Seq(named(t, "reverse", 3))} {
		c := newCoderOf(t, rule)
		for examples := range slices.Chunk(must.Get(NewSplit(rule, 5, 300))(t).Validation(), 64) {
			b := must.Get(c.Batch(examples))(t)
			counted := 0
			for r, e := range examples {
				target, before := b.Targets[r*b.TargetLen:][:b.TargetLen], b.DecoderInputs[r*b.TargetLen:][:b.TargetLen]
				n := slices.Index(target, c.Layout().End)
				if got, err := c.Answer(target); err != nil || got != e.Answer || len(got) != n {
					t.Errorf("%s: the targets of %q spell %q, %v; want %q", rule.Name, e.Source, got, err, e.Answer)
				}
				if before[0] != c.Layout().Start || !slices.Equal(before[1:n+1], target[:n]) {
					t.Errorf("%s: got DecoderInputs %v, want the start token and then the targets %v", rule.Name, before, target)
				}
				if b.Lengths[r] != len(e.Source) {
					t.Errorf("%s: got length %d for %q, want %d", rule.Name, b.Lengths[r], e.Source, len(e.Source))
				}
				counted += n + 1
			}
			if b.Counted() != counted {
				t.Errorf("%s: got %d counted targets, want %d", rule.Name, b.Counted(), counted)
			}
		}
	}
}

func TestSeq2SeqAnswer(t *testing.T) {
	tr := newCoderOf(t, asSeq2Seq(named(t, "copy", 0)))
	end, pad, start := tr.Layout().End, tr.Layout().Pad, tr.Layout().Start
	checkAnswers(t, tr, []answerTest{
		{"to the end token", []int{0, 1, end, 2}, "ab", ""},
		{"any id after the end token", []int{0, end, -7}, "a", ""},
		{"without an end token", []int{0, 1, 2}, "abc", ""},
		{"to padding", []int{0, pad, 1}, "a", ""},
		{"to a start token", []int{0, start, 1}, "a", ""},
		{"nothing", nil, "", ""},
		{"an ignored target", []int{0, Ignore}, "", "id -1 at position 1"},
		{"no token", []int{99}, "", "id 99 at position 0"},
	})
}
