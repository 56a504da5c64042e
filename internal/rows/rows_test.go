package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
)

// pairs is the format of sources and answers, both split into units.
var pairs = Format{
	Columns:     []table.Column{{Role: "source", Names: []string{"source"}}, {Role: "answer", Names: []string{"answer"}}},
	AnswerUnits: true, Sequences: true,
}

// encoded returns the set of these rows, and its rule.
func encoded(t *testing.T, f Format, content string) (*Set, data.Rule) {
	t.Helper()
	s := must.Get(divided(t, f, content))(t)
	rule := data.Rule{Name: "rows", Kind: data.KindSeq2Seq}
	must.Do(t, s.Encode(&rule))
	return s, rule
}

// divided returns the set of these rows after Divide.
func divided(t *testing.T, f Format, content string) (*Set, error) {
	t.Helper()
	settings := data.Settings{File: filepath.Join(t.TempDir(), "rows.tsv"), Validation: -1}
	must.Do(t, os.WriteFile(settings.File, []byte(content), 0o600))
	s := must.Get(Open(&settings, f, 1, ""))(t)
	return s, s.Divide()
}

// No source may have rows for both training and validation. A batch has the rows that it was asked for, and padding.
func TestSet(t *testing.T) {
	var content strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&content, "%d\tX %d\n", i%300, i)
	}
	s, rule := encoded(t, pairs, content.String())
	trains, validates := slices.Collect(s.Train.Sources()), slices.Collect(s.Validation.Sources())
	for _, source := range validates {
		if slices.Contains(trains, source) {
			t.Fatalf("%q is both in the training and in the validation rows", source)
		}
	}
	if len(validates) < 50 || len(validates) > 200 || len(trains)+len(validates) != 1000 {
		t.Errorf("got %d training and %d validation rows, want 1000 together, about a tenth for validation", len(trains), len(validates))
	}
	b, err := s.Batch(must.Get(data.NewCoder(rule))(t), s.Train, []int{2}, 4)
	if err != nil || b.Size != 4 || b.Lengths[0] != len(s.Train.Example(2).Source) || b.Len > rule.MaxLen {
		t.Errorf("got the batch %+v, %v, want 4 rows of at most %d symbols, the first like %v", b, err, rule.MaxLen, s.Train.Example(2))
	}
	if batches := s.Batches(16); batches < len(trains)/16 || batches > len(trains)/16+mostBuckets {
		t.Errorf("got %d batches for %d rows", batches, len(trains))
	}
}

// labels is the format of sources with a label each.
var labels = Format{Columns: pairs.Columns, Labels: true}

// If answers have no units, batches have the number of targets that the Coder wants.
func TestFixedTargets(t *testing.T) {
	s := must.Get(divided(t, labels, strings.Repeat("ab\tb\nbb\ta\nba\tb\n", 10)))(t)
	rule := data.Rule{Name: "rows", Kind: data.KindSeq2Seq, MaxAnswer: 4}
	must.Do(t, s.Encode(&rule))
	coder := must.Get(data.NewCoder(rule))(t)
	if b, err := s.Batch(coder, s.Train, []int{0}, 2); err != nil || b.TargetLen != coder.Layout().TargetLen {
		t.Errorf("got %d targets per row, %v, want %d", b.TargetLen, err, coder.Layout().TargetLen)
	}
}

// The example of a file with only long sources is still a source.
func TestLongExample(t *testing.T) {
	long, rule := strings.Repeat("x", 61), data.Rule{Name: "rows", Kind: data.KindRegression, Pairs: true}
	three := Format{Columns: []table.Column{{Role: "first"}, {Role: "second"}, {Role: "answer"}}}
	s := must.Get(divided(t, three, long+"\tx\t1\n"+long+"\ty\t2\n"+long+"\tz\t3\n"))(t)
	must.Do(t, s.Encode(&rule))
	if len(rule.Parts(rule.Example)) != 2 {
		t.Errorf("the example of pairs is %q, want two texts with a tab between them", rule.Example)
	}
}

// Each label has its share of the held-out sources, whatever the order of the rows. All rows of a source stay together,
// and each label keeps a source for training.
func TestStratified(t *testing.T) {
	var lines []string
	add := func(sources int, label string) {
		for i := range sources {
			lines = append(lines, fmt.Sprintf("%s %d\t%s\n", label, i, label))
		}
	}
	add(960, "ok")
	add(30, "fraud")
	add(6, "odd")
	add(1, "once")
	lines = append(lines, "ok 1\tfraud\n", "fraud 1\tfraud\n", "fraud 1\tok\n") // "ok 1" counts for fraud
	heldOut := func() (map[string]int, []string) {
		s := must.Get(divided(t, labels, strings.Join(lines, "")))(t)
		counts, sources := map[string]int{}, slices.Sorted(s.Validation.Sources())
		trains := slices.Collect(s.Train.Sources())
		for _, source := range slices.Compact(sources) {
			label, _, _ := strings.Cut(source, " ")
			counts[label]++
			if slices.Contains(trains, source) {
				t.Errorf("%q is both in the training and in the validation rows", source)
			}
		}
		if !s.settings.Stratified || s.Description.Held != counts["ok"]+counts["fraud"]+counts["odd"] {
			t.Errorf("Stratified is %v and %d sources are held out, want true and the sum of %v", s.settings.Stratified, s.Description.Held, counts)
		}
		return counts, sources
	}
	counts, sources := heldOut()
	if counts["ok"] < 95 || counts["ok"] > 97 || counts["fraud"] < 2 || counts["fraud"] > 4 || counts["odd"] != 1 || counts["once"] != 0 {
		t.Errorf("held out are %v, want a tenth of 960 ok, 30 fraud and 6 odd, and not once", counts)
	}
	slices.Reverse(lines)
	if _, other := heldOut(); !slices.Equal(other, sources) {
		t.Errorf("with the rows reversed, other sources are held out: %q, not %q", other, sources)
	}
	// Few rows, and a file in which no label has two sources.
	for content, want := range map[string]int{"a\tx\nb\tx\nc\ty\n": 1, "a\tx\nb\ty\nc\tz\nd\tw\n": 1} {
		s, err := divided(t, labels, content)
		if err != nil || s.Validation.Len() < want || s.Train.Len() == 0 {
			t.Errorf("%q: %d training and %d validation rows, %v, want at least %d", content, s.Train.Len(), s.Validation.Len(), err, want)
		}
	}
	if s, err := divided(t, pairs, "a\tx\nb\tx\nc\ty\n"); err != nil || s.settings.Stratified {
		t.Errorf("answers that aren't labels are stratified: %v", err)
	}
}

// A run that was begun without Stratified keeps its division.
func TestEarlierSplit(t *testing.T) {
	s := must.Get(divided(t, labels, strings.Repeat("a\tx\nb\tx\nc\ty\nd\ty\n", 9)))(t)
	settings := *s.settings
	settings.Stratified = false
	again, err := Open(&settings, labels, 1, "")
	if err != nil || settings.Stratified || s.settings.SHA256 != settings.SHA256 {
		t.Errorf("opened again, Stratified is %v, %v, want false", again.settings.Stratified, err)
	}
}

// TestBounds compares the padding of bounds with the least padding of all possible bounds.
func TestBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	padded := func(counts []int, bounds []int) (sum int) {
		for size, n := range counts {
			bucket, _ := slices.BinarySearch(bounds, size)
			sum += n * bounds[bucket]
		}
		return sum
	}
	for range 50 {
		counts := make([]int, 2+rng.IntN(12))
		for i := range counts {
			counts[i] = rng.IntN(20) * rng.IntN(2)
		}
		counts[0] = 0
		last := len(counts) - 1
		least := math.MaxInt
		for a := 1; a <= last; a++ {
			for b := a; b <= last; b++ {
				least = min(least, padded(counts, []int{a, b, last}))
			}
		}
		got := Bounds(counts, 3)
		if len(got) > 3 || got[len(got)-1] != last || !slices.IsSorted(got) || padded(counts, got) != least {
			t.Fatalf("for the counts %v, the bounds are %v with a total width of %d, want %d", counts, got, padded(counts, got), least)
		}
	}
	many := make([]int, 5000)
	for i := range many {
		many[i] = 3
	}
	if got := Bounds(many, 4); len(got) != 4 || got[3] != 4999 || got[0] < 1000 || got[0] > 1500 {
		t.Errorf("for 5000 sizes, the bounds are %v, want 4 spread to 4999", got)
	}
}

func TestGuess(t *testing.T) {
	for name, test := range map[string]struct {
		texts []string
		want  tokenizer.Units
	}{
		"phonemes":              {slices.Repeat([]string{"B AW T", "K AH Z", "T"}, 20), tokenizer.Tokens},
		"words":                 {slices.Repeat([]string{"house", "tree"}, 50), tokenizer.Characters},
		"sentences":             {[]string{"A fine film.", "Not my cup of tea", "never again!"}, tokenizer.Characters},
		"few texts with spaces": {append(slices.Repeat([]string{"house"}, 50), slices.Repeat([]string{"new york"}, 20)...), tokenizer.Characters},
	} {
		if got := guess(slices.Values(test.texts)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	texts := []string{"a, b a", "b c,"}
	if got := frequent(slices.Values(texts), strings.FieldsSeq); got != 2 {
		t.Errorf("frequent returns %d, want 2: b and the unknown token", got)
	}
	if got := frequent(slices.Values(texts), text.Words); got != 4 {
		t.Errorf("frequent returns %d, want 4: a, b, the comma and the unknown word", got)
	}
}

// Validation rows that are training rows too are counted.
func TestRepeatedRows(t *testing.T) {
	dir := t.TempDir()
	s := data.Settings{File: filepath.Join(dir, "a.tsv"), ValidationFile: filepath.Join(dir, "b.tsv"), Validation: 4}
	for file, content := range map[string]string{s.File: "a\tx\nb\ty\nb\ty\nc\tz\n", s.ValidationFile: "a\ty\nb\ty\nb\ty\nc\tz\nd\tz\n"} {
		must.Do(t, os.WriteFile(file, []byte(content), 0o600))
	}
	set := must.Get(Open(&s, pairs, 1, ""))(t)
	must.Do(t, set.Divide())
	if got := strings.Join(set.Description.Warnings, "\n"); !strings.HasPrefix(got, "repeated: 3 of 4 validation rows are training rows too") {
		t.Errorf("got the warnings %q, want 3 of 4 rows repeated", got)
	}
}

// A long row becomes several, one for each of its windows. The held-out rows stay whole.
func TestWindows(t *testing.T) {
	var content strings.Builder
	for i := range 50 {
		fmt.Fprintf(&content, "which %d?\tthe %send %d\t%d\n", i, strings.Repeat("long ", 200*(i%2)), i, i)
	}
	f := Format{Columns: []table.Column{{Role: "question"}, {Role: "context"}, {Role: "answer"}}, Windows: true}
	s, rule := must.Get(divided(t, f, content.String()))(t), data.Rule{Name: "rows", Kind: data.KindQA, Pairs: true, MaxLen: 64}
	s.settings.SourceUnits = tokenizer.Words
	must.Do(t, s.Encode(&rule))
	coder, rows, found := must.Get(data.NewCoder(rule))(t), 0, 0
	for _, part := range []Part{s.Train, s.Validation} {
		for i := range part.Len() {
			b := must.Get(s.Batch(coder, part, []int{i}, 1))(t)
			if rows++; b.Targets[0] > 0 {
				found++
			}
			if b.Lengths[0] > 64 {
				t.Errorf("a window of %.20q has %d ids", part.Example(i).Source, b.Lengths[0])
			}
		}
	}
	if want := len(must.Get(rule.Windows(s.Held.Example(0).Source))(t)); s.Description.Windows != 25 || found != 50 || rows != 25+25*7 || want != 1 && want != 7 {
		t.Errorf("got %d rows, the answer in %d of them, and %d long rows", rows, found, s.Description.Windows)
	}
	if s.Held.Len() >= s.Validation.Len() && s.Held.Len() > 1 || !strings.Contains(s.Description.String(), "windows: 25 rows longer than 64 symbols, in parts that overlap") {
		t.Errorf("%d held-out rows in %d windows, described as %s", s.Held.Len(), s.Validation.Len(), s.Description)
	}
}
