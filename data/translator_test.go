package data

import (
	"slices"
	"testing"
)

func TestTranslatorIDs(t *testing.T) {
	tr := newTranslator(t, "dates", 0)
	if tr.Vocab().Len() != 41 || tr.End() != 41 || tr.Pad() != 42 || tr.Start() != 43 || tr.Tokens() != 44 || tr.SourceLen() != 29 || tr.TargetLen() != 11 {
		t.Errorf("%d symbols, end %d, pad %d, start %d, %d tokens, lengths %d and %d",
			tr.Vocab().Len(), tr.End(), tr.Pad(), tr.Start(), tr.Tokens(), tr.SourceLen(), tr.TargetLen())
	}
	if tr := newTranslator(t, "add", 0); tr.SourceLen() != 5 || tr.TargetLen() != 4 {
		t.Errorf("lengths of sums are %d and %d, want 5 and 4", tr.SourceLen(), tr.TargetLen())
	}
	_, err := NewTranslator(Task{})
	wantError(t, err, "Named")
}

func TestPairs(t *testing.T) {
	b, err := newTranslator(t, "reverse", 4).Batch([]string{"abcd", "ba", "c"}, 4)
	if err != nil {
		t.Fatal(err)
	}
	const end, pad, start, no = 26, 27, 28, Ignore
	if b.Size != 4 || b.SourceLen != 4 || b.TargetLen != 5 || b.Counted() != 5+3+2 {
		t.Errorf("size %d, lengths %d and %d, %d targets count", b.Size, b.SourceLen, b.TargetLen, b.Counted())
	}
	for _, c := range []struct {
		name      string
		got, want []int
	}{
		{"sources", b.Sources, []int{0, 1, 2, 3, 1, 0, pad, pad, 2, pad, pad, pad, pad, pad, pad, pad}},
		{"lengths", b.Lengths, []int{4, 2, 1, 0}},
		{"inputs", b.Inputs, []int{start, 3, 2, 1, 0, start, 0, 1, pad, pad, start, 2, pad, pad, pad, pad, pad, pad, pad, pad}},
		{"targets", b.Targets, []int{3, 2, 1, 0, end, 0, 1, end, no, no, 2, end, no, no, no, no, no, no, no, no}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s\n%v, want\n%v", c.name, c.got, c.want)
		}
	}
}

// A model sees the same whether letters are capital or small.
func TestPairsOfCapitals(t *testing.T) {
	b, err := newTranslator(t, "dates", 0).Batch([]string{"7 MAR 2024", "7 mar 2024"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.Sources[:b.SourceLen], b.Sources[b.SourceLen:]) {
		t.Errorf("got\n%v\n%v", b.Sources[:b.SourceLen], b.Sources[b.SourceLen:])
	}
}

func TestPairsErrors(t *testing.T) {
	tests := []struct {
		name    string
		sources []string
		size    int
		want    string
	}{
		{"too many", []string{"7.3.2024", "7.3.2024"}, 1, "1 rows has no room for 2 sources"},
		{"no rows", nil, 0, "at least one row and one position, got a size of 0"},
		{"too large", nil, 1 << 30, "at most 2147483647 ids"},
		{"a bad source", []string{"7.3.2024", "30.2.2024"}, 2, "task dates: there is no day 30 in February 2024"},
		{"a bad symbol", []string{"7:3:2024"}, 2, `source "7:3:2024": symbol ':' at position 1`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := newTranslator(t, "dates", 0).Batch(tc.sources, tc.size)
			wantError(t, err, tc.want)
		})
	}
}

// The targets of every task spell the answer, and the inputs are the targets a position later.
func TestPairsSpellAnswers(t *testing.T) {
	for _, name := range append(TaskNames(), "dates") {
		tr, s := newTranslator(t, name, 0), newSplit(t, name, 0, 5, 300)
		for sources := range slices.Chunk(s.Validation(), 64) {
			b, err := tr.Batch(sources, 64)
			if err != nil {
				t.Fatal(err)
			}
			counted := 0
			for r, source := range sources {
				target, input := b.Targets[r*b.TargetLen:][:b.TargetLen], b.Inputs[r*b.TargetLen:][:b.TargetLen]
				n := slices.Index(target, tr.End())
				want, err := tr.task.Answer(source)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := tr.Answer(target); err != nil || got != want || len(got) != n {
					t.Errorf("%s: the targets of %q spell %q, %v; want %q", name, source, got, err, want)
				}
				if input[0] != tr.Start() || !slices.Equal(input[1:n+1], target[:n]) {
					t.Errorf("%s: inputs %v, targets %v", name, input, target)
				}
				if b.Lengths[r] != len(source) || slices.Max(b.Sources) >= tr.Tokens() {
					t.Errorf("%s: length %d of %q, ids %v", name, b.Lengths[r], source, b.Sources[r*b.SourceLen:][:b.SourceLen])
				}
				counted += n + 1
			}
			if b.Counted() != counted {
				t.Errorf("%s: %d targets count, want %d", name, b.Counted(), counted)
			}
		}
	}
}

func TestTranslatorAnswer(t *testing.T) {
	tr := newTranslator(t, "copy", 0)
	end, pad, start := tr.End(), tr.Pad(), tr.Start()
	tests := []struct {
		name    string
		ids     []int
		want    string
		wantErr string
	}{
		{"to the end token", []int{0, 1, end, 2}, "ab", ""},
		{"what follows it doesn't count", []int{0, end, -7}, "a", ""},
		{"without an end token", []int{0, 1, 2}, "abc", ""},
		{"to padding", []int{0, pad, 1}, "a", ""},
		{"to a start token", []int{0, start, 1}, "a", ""},
		{"nothing", nil, "", ""},
		{"an ignored target", []int{0, Ignore}, "", "id -1 at position 1"},
		{"no token", []int{99}, "", "id 99 at position 0"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tr.Answer(tc.ids)
			if tc.wantErr != "" {
				wantError(t, err, tc.wantErr)
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func newTranslator(t testing.TB, task string, maxLen int) *Translator {
	t.Helper()
	tr, err := NewTranslator(named(t, task, maxLen))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
