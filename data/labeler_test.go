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
	l := newLabeler(t, "reverse", 4)
	b, err := l.Batch([]string{"abcd", "ba", "c"}, 4)
	if err != nil {
		t.Fatal(err)
	}
	const end, pad = 26, 27
	if b.Size != 4 || b.Len != 5 {
		t.Errorf("size %d, length %d", b.Size, b.Len)
	}
	if want := []int{5, 3, 2, 0}; !slices.Equal(b.Lengths, want) {
		t.Errorf("lengths %v, want %v", b.Lengths, want)
	}
	if want := []int{
		0, 1, 2, 3, end,
		1, 0, end, pad, pad,
		2, end, pad, pad, pad,
		pad, pad, pad, pad, pad,
	}; !slices.Equal(b.Inputs, want) {
		t.Errorf("inputs\n%v, want\n%v", b.Inputs, want)
	}
	if want := []int{
		3, 2, 1, 0, end,
		0, 1, end, Ignore, Ignore,
		2, end, Ignore, Ignore, Ignore,
		Ignore, Ignore, Ignore, Ignore, Ignore,
	}; !slices.Equal(b.Targets, want) {
		t.Errorf("targets\n%v, want\n%v", b.Targets, want)
	}
	if b.Counted() != 5+3+2 {
		t.Errorf("%d targets count", b.Counted())
	}
}

// Sums stand in columns, and their answers lose the zeros that fill them.
func TestBatchOfSums(t *testing.T) {
	l := newLabeler(t, "add", 0)
	const plus, end = 10, 11
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
		b, err := l.Batch([]string{c.source}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.Inputs, c.input) || !slices.Equal(b.Targets, c.target) {
			t.Errorf("%s: inputs %v, targets %v, want %v and %v", c.source, b.Inputs, b.Targets, c.input, c.target)
		}
		if got, err := l.Answer(b.Targets); got != c.answer || err != nil {
			t.Errorf("%s: the targets spell %q, %v, want %q", c.source, got, err, c.answer)
		}
	}
	if got, err := l.Answer([]int{end}); got != "" || err != nil {
		t.Errorf("an end alone spells %q, %v", got, err)
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
