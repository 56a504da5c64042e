package data

import (
	"slices"
	"testing"
)

func TestLabelerIDs(t *testing.T) {
	l := newLabeler(t, "add", 0)
	if l.Vocab().Symbols() != "0123456789+" || l.End() != 11 || l.Pad() != 12 || l.Tokens() != 13 || l.Labels() != 12 || l.Len() != 6 {
		t.Errorf("symbols %q, end %d, pad %d, %d tokens, %d labels, length %d",
			l.Vocab().Symbols(), l.End(), l.Pad(), l.Tokens(), l.Labels(), l.Len())
	}
}

func TestBatch(t *testing.T) {
	l := newLabeler(t, "add", 0)
	b, err := l.Batch([]string{"12+34", "7+5", "0+1"}, 4)
	if err != nil {
		t.Fatal(err)
	}
	const plus, end, pad = 10, 11, 12
	if b.Size != 4 || b.Len != 6 {
		t.Errorf("size %d, length %d", b.Size, b.Len)
	}
	if want := []int{6, 4, 4, 0}; !slices.Equal(b.Lengths, want) {
		t.Errorf("lengths %v, want %v", b.Lengths, want)
	}
	if want := []int{
		1, 2, plus, 3, 4, end,
		7, plus, 5, end, pad, pad,
		0, plus, 1, end, pad, pad,
		pad, pad, pad, pad, pad, pad,
	}; !slices.Equal(b.Inputs, want) {
		t.Errorf("inputs\n%v, want\n%v", b.Inputs, want)
	}
	if want := []int{
		4, 6, end, end, end, end,
		1, 2, end, end, Ignore, Ignore,
		1, end, end, end, Ignore, Ignore,
		Ignore, Ignore, Ignore, Ignore, Ignore, Ignore,
	}; !slices.Equal(b.Targets, want) {
		t.Errorf("targets\n%v, want\n%v", b.Targets, want)
	}
	if b.Counted() != 6+4+4 {
		t.Errorf("%d targets count", b.Counted())
	}
}

func TestBatchOfNone(t *testing.T) {
	b, err := newLabeler(t, "copy", 3).Batch(nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	if b.Counted() != 0 || !slices.Equal(b.Lengths, []int{0, 0}) || len(b.Inputs) != 8 {
		t.Errorf("got %+v", b)
	}
}

func TestBatchErrors(t *testing.T) {
	tests := []struct {
		name    string
		sources []string
		size    int
		want    string
	}{
		{"too many", []string{"a", "b", "c"}, 2, "2 rows has no room for 3 sources"},
		{"no rows", nil, 0, "at least one row and one position, got a size of 0"},
		{"negative", nil, -1, "-1"},
		{"too large", nil, 1 << 30, "at most 2147483647 ids"},
		{"a bad source", []string{"a", "B"}, 2, `source "B": symbol 'B' at position 0`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := newLabeler(t, "copy", 0).Batch(tc.sources, tc.size)
			wantError(t, err, tc.want)
		})
	}
}

// The targets of every row spell the answer, and the counted ones are those of valid positions.
func TestBatchSpellsAnswers(t *testing.T) {
	for _, name := range TaskNames() {
		l, s := newLabeler(t, name, 0), newSplit(t, name, 0, 5, 300)
		for sources := range slices.Chunk(s.Validation(), 64) {
			b, err := l.Batch(sources, 64)
			if err != nil {
				t.Fatal(err)
			}
			counted := 0
			for r, source := range sources {
				row := b.Targets[r*b.Len:][:b.Lengths[r]]
				counted += len(row)
				want, err := l.task.Answer(source)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := l.Answer(row); err != nil || got != want {
					t.Errorf("%s: the targets of %q spell %q, %v; want %q", name, source, got, err, want)
				}
				if slices.Max(row) >= l.Labels() || slices.Max(b.Inputs) >= l.Tokens() {
					t.Errorf("%s: ids of %q are out of range: %v", name, source, row)
				}
			}
			if b.Counted() != counted {
				t.Errorf("%s: %d targets count, want %d", name, b.Counted(), counted)
			}
		}
	}
}

func TestLabelerAnswer(t *testing.T) {
	l := newLabeler(t, "copy", 0)
	end, pad := l.End(), l.Pad()
	tests := []struct {
		name    string
		labels  []int
		want    string
		wantErr string
	}{
		{"to the end token", []int{0, 1, end, end}, "ab", ""},
		{"what follows it doesn't count", []int{0, end, 1}, "a", ""},
		{"not even an id", []int{0, end, -7}, "a", ""},
		{"without an end token", []int{0, 1, 2}, "abc", ""},
		{"to padding", []int{0, pad, 1}, "a", ""},
		{"at once", []int{end}, "", ""},
		{"nothing", nil, "", ""},
		{"an ignored target", []int{0, Ignore}, "", "id -1 at position 1"},
		{"no token", []int{99}, "", "id 99 at position 0"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := l.Answer(tc.labels)
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

func newLabeler(t testing.TB, task string, maxLen int) *Labeler {
	t.Helper()
	l, err := NewLabeler(named(t, task, maxLen))
	if err != nil {
		t.Fatal(err)
	}
	return l
}
