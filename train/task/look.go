package task

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
)

// A look is what there is to see of a file's rows before they are learned. String has it in words.
type look struct {
	File       string
	Columns    string // which are learned, in words
	Rows       int    // without bad ones
	Sources    int    // that differ
	Several    int    // sources with more than one answer
	Duplicates int    // rows that say again what one before them says

	Bad    []string // the first bad rows, by their lines, of the file to validate on too
	Bads   int      // how many there are, which are left out
	Long   int      // rows that are left out, or of labels cut, as they are longer than may be
	MaxLen int      // what a source may have
	Max    int      // what an answer may have, of pairs

	Trains, Validates int    // rows
	Held              int    // sources that are held out, to validate on
	Validation        string // the file to validate on instead

	Source, Answer side    // the latter of labels has nothing but Unknown
	Labels         []count // of the rows to train on, the commonest first: labels, or tags
	Always         float64 // of what is validated on, the share that the commonest of them has right

	kind Kind
	seed uint64
	from bool // there is a model to start from, whose symbols are given
}

// A side is what sources are made of, or answers.
type side struct {
	Units           tokenizer.Units
	Symbols         int // that the vocabulary has; one more stands for all others, but for bpe
	Longest, Median int // symbols of a row
	Unknown         int // rows to validate on with what no row to train on has; of a model to start from, all that it doesn't know
}

// A count is how often there is a label.
type count struct {
	Label string
	N     int
}

// Look says what there is to see of the rows of the file that the task learns from, before they are learned: some lines
// of text, of the form "  name: value" after the first. It is empty if there are no rows, as of text or a rule.
func (t *Task) Look() string {
	if s, ok := t.set.(*rowSet); ok {
		return s.look.String()
	}
	return ""
}

// String returns some lines of text.
func (l *look) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s of %s", l.File, text.Count(l.Rows, "row"), text.Count(l.Sources, "source"))
	if l.Several > 0 {
		fmt.Fprintf(&s, ", %d of them with several answers", l.Several)
	}
	if l.Duplicates > 0 {
		fmt.Fprintf(&s, "; repeated: %s", text.Count(l.Duplicates, "row"))
	}
	fmt.Fprintf(&s, "\n  columns: %s\n", l.Columns)
	if l.Bads > 0 {
		more := ""
		if l.Bads > len(l.Bad) {
			more = "; …"
		}
		fmt.Fprintf(&s, "  left out: %s: %s%s\n", text.Count(l.Bads, "bad row"), strings.Join(l.Bad, "; "), more)
	}
	switch {
	case l.Long > 0 && !l.kind.AnswerUnits:
		fmt.Fprintf(&s, "  cut: %s longer than %d symbols\n", text.Count(l.Long, "row"), l.MaxLen)
	case l.Long > 0 && l.kind.Sequences:
		fmt.Fprintf(&s, "  left out: %s with a source longer than %d symbols or an answer longer than %d\n", text.Count(l.Long, "row"), l.MaxLen, l.Max)
	case l.Long > 0:
		fmt.Fprintf(&s, "  left out: %s longer than %d symbols\n", text.Count(l.Long, "row"), l.MaxLen)
	}
	line := func(what string, of side) {
		fmt.Fprintf(&s, "  %s: %s, a vocabulary of %d; up to %d in a row, half of the rows up to %d\n", what, of.Units, of.Symbols, of.Longest, of.Median)
	}
	line("sources", l.Source)
	if l.kind.AnswerUnits {
		line("answers", l.Answer)
	}
	if l.Labels != nil {
		total := 0
		for _, c := range l.Labels {
			total += c.N
		}
		var parts []string
		for _, c := range l.Labels[:min(len(l.Labels), mostLabels)] {
			parts = append(parts, fmt.Sprintf("%s %d (%.1f %%)", shown(c.Label), c.N, 100*float64(c.N)/float64(total)))
		}
		if n := len(l.Labels) - len(parts); n > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", n))
		}
		fmt.Fprintf(&s, "  %s: %s\n", l.kind.Unit, strings.Join(parts, ", "))
	}
	fmt.Fprintf(&s, "  to train on: %s", text.Count(l.Trains, "row"))
	switch {
	case l.Validates == 0:
		s.WriteString("; none to validate on")
	case l.Validation != "":
		fmt.Fprintf(&s, "; to validate on: %d of %s", l.Validates, l.Validation)
	default:
		fmt.Fprintf(&s, "; to validate on: %d, all of %s that seed %d holds out", l.Validates, text.Count(l.Held, "source"), l.seed)
	}
	s.WriteByte('\n')
	validates := " to validate on"
	if l.from {
		validates = ""
	}
	if n := l.Source.Unknown; n > 0 {
		fmt.Fprintf(&s, "  unknown: %s%s with symbols that the model doesn't know\n", text.Count(n, "source"), validates)
	}
	if n := l.Answer.Unknown; n > 0 && !l.kind.AnswerUnits {
		fmt.Fprintf(&s, "  unknown: %s to validate on with a label that no row to train on has\n", text.Count(n, "row"))
	} else if n > 0 {
		fmt.Fprintf(&s, "  unknown: %s%s with symbols that the model doesn't know, which can't come out right\n", text.Count(n, "answer"), validates)
	}
	if l.Labels != nil && l.Validates > 0 {
		fmt.Fprintf(&s, "  baseline: always %s would be right in %.1f %%\n", shown(l.Labels[0].Label), 100*l.Always)
	}
	return s.String()
}

// shown returns a label, in quotes where it couldn't be told without.
func shown(label string) string {
	if strings.TrimSpace(label) != label || strings.ContainsFunc(label, unicode.IsControl) {
		return strconv.Quote(label)
	}
	return label
}

// mostLabels is how many labels String shows.
const mostLabels = 12

// bad notes the bad rows of a file.
func (l *look) bad(t *table.Table) {
	for _, row := range t.Bad {
		l.Bad = append(l.Bad, row.Error())
	}
	l.Bads += t.LeftOut
}

// rows notes what there is to see of all rows of a file, without a model's view of them.
func (l *look) rows(t *table.Table) {
	first, second := t.Columns[0], t.Columns[1]
	if l.Columns = fmt.Sprintf("%d and %d", first+1, second+1); t.Header != nil {
		l.Columns = fmt.Sprintf("%s and %s, by the header", t.Header[first], t.Header[second])
	} else {
		l.Columns += fmt.Sprintf(", and no header: the first row of data is %.60q, %.60q", t.Field(0, 0), t.Field(0, 1))
	}
	seed := maphash.MakeSeed()
	hashes := make([][2]uint64, t.Len())
	for i := range hashes {
		hashes[i] = [2]uint64{maphash.String(seed, t.Field(i, 0)), maphash.String(seed, t.Field(i, 1))}
	}
	slices.SortFunc(hashes, func(a, b [2]uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	l.Rows = len(hashes)
	answers := 0 // that differ, of a source
	for i, h := range hashes {
		switch {
		case i == 0 || h[0] != hashes[i-1][0]:
			l.Sources, answers = l.Sources+1, 1
		case h[1] == hashes[i-1][1]:
			l.Duplicates++
		default:
			if answers++; answers == 2 {
				l.Several++
			}
		}
	}
}

// measure notes what a side has in the rows to train on and to validate on.
func (o *side) measure(t tokenizer.Tokenizer, units tokenizer.Units, trains, validates measures, side int, from bool) {
	o.Units, o.Symbols = units, t.Len()
	if t.Unknown() >= 0 {
		o.Symbols--
	}
	all := make([]int32, len(trains.rows))
	for i, l := range trains.rows {
		all[i] = l[side]
	}
	slices.Sort(all)
	o.Longest, o.Median = int(all[len(all)-1]), int(all[len(all)/2])
	o.Unknown = validates.unknown[side]
	if from {
		o.Unknown += trains.unknown[side]
	}
}

// labels notes how often the training rows have each label, of its number, and how often those to validate on have the
// commonest.
func (l *look) labels(names []string, trains, validates []int) {
	total := 0
	best := 0
	for i, n := range trains {
		if n > trains[best] {
			best = i
		}
		if n > 0 {
			l.Labels = append(l.Labels, count{names[i], n})
		}
		total += validates[i]
		if n == 0 && !l.kind.AnswerUnits {
			l.Answer.Unknown += validates[i]
		}
	}
	slices.SortStableFunc(l.Labels, func(a, b count) int { return cmp.Compare(b.N, a.N) })
	l.Always = float64(validates[best]) / float64(max(1, total))
}
