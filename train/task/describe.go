package task

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
)

// A dataDescription describes a file's rows before training. String returns it in words.
type dataDescription struct {
	File       string
	Columns    string // columns of sources and answers, in words
	Rows       int    // number of rows without bad rows
	Sources    int    // number of different sources
	Several    int    // number of sources with more than one answer
	Duplicates int    // number of rows that are equal to an earlier row

	Bad    []string // bad rows of each file that has some, all left out: their number and the first ones
	Long   int      // number of rows that are too long; for classification they are cut, otherwise left out
	MaxLen int      // longest allowed source
	Max    int      // for seq2seq: longest allowed answer

	Trains, Validates int    // number of training rows and of validation rows
	Held              int    // number of sources held out for validation
	Validation        string // validation file; if empty, sources are held out

	Source, Answer side      // for classification, Answer has only Unknown
	Notes          []string  // what a kind adds, each as "name: text"
	Alike          [][]count // labels that differ only in case or surrounding spaces, in all files; the commonest spellings first
	Labels         []count   // labels or tags of the training rows, the commonest first
	Always         float64   // share of the validation labels or tags that are equal to the commonest one

	kind   Kind
	seed   uint64
	merged bool // whether each element of Alike has become one label
	from   bool // whether the run starts from another model, which fixes the known symbols
}

// A side describes the sources, or the answers.
type side struct {
	Units           tokenizer.Units
	Symbols         int // size of the vocabulary, without the unknown symbol
	Longest, Median int // length of the longest row and median length, in symbols
	Unknown         int // number of validation rows with unknown symbols or labels; if from is true, training rows count too

	Unseen float64 // share of held-out rows with unknown words, if the Units are byte pairs for this reason; otherwise 0
}

// A count is the number of occurrences of a label.
type count struct {
	Label string
	N     int
}

// DescribeData describes the rows of the file that the task learns from. It returns lines of text. The lines after the
// first have the form " name: value". Without rows, as for text or a rule, it returns "".
func (t *Task) DescribeData() string {
	if s, ok := t.set.(*rowSet); ok {
		return s.description.String()
	}
	return ""
}

// String returns the description as lines of text.
func (d *dataDescription) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s with %s", d.File, text.Count(d.Rows, "row"), text.Count(d.Sources, "different source"))
	if d.Several > 0 {
		fmt.Fprintf(&s, ", %d of them with several answers", d.Several)
	}
	if d.Duplicates > 0 {
		fmt.Fprintf(&s, "; %s", text.Count(d.Duplicates, "repeated row"))
	}
	fmt.Fprintf(&s, "\n  columns: %s\n", d.Columns)
	for _, bad := range d.Bad {
		fmt.Fprintf(&s, "  left out: %s\n", bad)
	}
	switch {
	case d.Long > 0 && !d.kind.AnswerUnits:
		fmt.Fprintf(&s, "  cut: %s longer than %d symbols\n", text.Count(d.Long, "row"), d.MaxLen)
	case d.Long > 0 && d.kind.Sequences:
		fmt.Fprintf(&s, "  left out: %s with a source longer than %d symbols or an answer longer than %d\n", text.Count(d.Long, "row"), d.MaxLen, d.Max)
	case d.Long > 0:
		fmt.Fprintf(&s, "  left out: %s longer than %d symbols\n", text.Count(d.Long, "row"), d.MaxLen)
	}
	line := func(name string, o side) {
		why := ""
		if o.Unseen > 0 {
			why = fmt.Sprintf(", because %.0f %% of the held-out %s have unknown words", 100*o.Unseen, name)
		}
		fmt.Fprintf(&s, "  %s: %s%s; vocabulary of %d; length at most %d, median %d\n", name, o.Units, why, o.Symbols, o.Longest, o.Median)
	}
	line("sources", d.Source)
	if d.kind.AnswerUnits {
		line("answers", d.Answer)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(&s, "  %s\n", note)
	}
	if len(d.Alike) > 0 {
		name, about := "alike", "; --merge-labels merges them"
		if d.merged {
			name, about = "merged", ""
		}
		groups := text.List(len(d.Alike), mostLabels, "; ", func(i int) string {
			spellings := d.Alike[i]
			return text.List(len(spellings), len(spellings), ", ", func(j int) string { return fmt.Sprintf("%s %d", shown(spellings[j].Label), spellings[j].N) })
		})
		fmt.Fprintf(&s, "  %s: %s (counts of all rows; the labels differ only in case or surrounding spaces%s)\n", name, groups, about)
	}
	if d.Labels != nil {
		total := 0
		for _, c := range d.Labels {
			total += c.N
		}
		labels := text.List(len(d.Labels), mostLabels, ", ", func(i int) string {
			c := d.Labels[i]
			return fmt.Sprintf("%s %d (%.1f %%)", shown(c.Label), c.N, 100*float64(c.N)/float64(total))
		})
		fmt.Fprintf(&s, "  training %s: %s\n", d.kind.Unit, labels)
	}
	fmt.Fprintf(&s, "  training: %s", text.Count(d.Trains, "row"))
	switch {
	case d.Validates == 0:
		s.WriteString("; no validation")
	case d.Validation != "":
		fmt.Fprintf(&s, "; validation: %s of %s", text.Count(d.Validates, "row"), d.Validation)
	default:
		fmt.Fprintf(&s, "; validation: %s (all rows of %s, chosen by seed %d)", text.Count(d.Validates, "row"), text.Count(d.Held, "source"), d.seed)
	}
	s.WriteByte('\n')
	noun := "validation "
	if d.from {
		noun = ""
	}
	if n := d.Source.Unknown; n > 0 {
		fmt.Fprintf(&s, "  unknown: %s with symbols that the model doesn't know\n", text.Count(n, noun+"source"))
	}
	if n := d.Answer.Unknown; n > 0 && !d.kind.AnswerUnits {
		fmt.Fprintf(&s, "  unknown: %s with a label that no training row has\n", text.Count(n, "validation row"))
	} else if n > 0 {
		fmt.Fprintf(&s, "  unknown: %s with symbols that the model doesn't know and can't write\n", text.Count(n, noun+"answer"))
	}
	if d.Labels != nil && d.Validates > 0 {
		fmt.Fprintf(&s, "  baseline: always answering %s is right for %.1f %% of the validation %s\n", shown(d.Labels[0].Label), 100*d.Always, d.kind.Unit)
	}
	return s.String()
}

// shown returns a label. It adds quotes if the label has commas or control characters, has spaces at its ends, or ends
// in a digit, because a count may follow it.
func shown(label string) string {
	last, _ := utf8.DecodeLastRuneInString(label)
	if strings.TrimSpace(label) != label || unicode.IsDigit(last) || strings.ContainsFunc(label, func(r rune) bool { return r == ',' || unicode.IsControl(r) }) {
		return strconv.Quote(label)
	}
	return label
}

// mostLabels is the greatest number of labels that String shows.
const mostLabels = 12

// bad adds the bad rows of a file to the description.
func (d *dataDescription) bad(t *table.Table) {
	noun := "bad row"
	if t.Name == d.Validation {
		noun = "bad validation row"
	}
	if t.LeftOut > 0 {
		d.Bad = append(d.Bad, fmt.Sprintf("%s of %d: %s", text.Count(t.LeftOut, noun), t.LeftOut+t.Len(), t.Reasons()))
	}
}

// rows sets Columns and the counts of rows, sources and duplicates.
func (d *dataDescription) rows(t *table.Table) {
	last := len(t.Columns) - 1
	d.Columns = strings.Join(t.ColumnNames()[:last], ", ") + " and " + t.ColumnNames()[last]
	if t.Header != nil {
		d.Columns += t.Named
	} else {
		d.Columns += fmt.Sprintf(", without a header; the first row is %.60q, %.60q", t.Field(0, 0), t.Field(0, 1))
	}
	seed := maphash.MakeSeed()
	hashes := make([][2]uint64, t.Len())
	for i := range hashes {
		hashes[i] = [2]uint64{maphash.String(seed, t.Field(i, 0)), maphash.String(seed, t.Field(i, 1))}
	}
	slices.SortFunc(hashes, func(a, b [2]uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	d.Rows = len(hashes)
	answers := 0 // number of different answers of the current source
	for i, h := range hashes {
		switch {
		case i == 0 || h[0] != hashes[i-1][0]:
			d.Sources, answers = d.Sources+1, 1
		case h[1] == hashes[i-1][1]:
			d.Duplicates++
		default:
			if answers++; answers == 2 {
				d.Several++
			}
		}
	}
}

// measure describes one side of the training and the validation rows.
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

// labels counts the labels of the training rows, and sets the accuracy of always answering the commonest one. Element i
// of trains and of validates is the number of occurrences of names[i].
func (d *dataDescription) labels(names []string, trains, validates []int) {
	total := 0
	best := 0
	for i, n := range trains {
		if n > trains[best] {
			best = i
		}
		if n > 0 {
			d.Labels = append(d.Labels, count{names[i], n})
		}
		total += validates[i]
		if n == 0 && !d.kind.AnswerUnits {
			d.Answer.Unknown += validates[i]
		}
	}
	slices.SortStableFunc(d.Labels, func(a, b count) int { return cmp.Compare(b.N, a.N) })
	d.Always = float64(validates[best]) / float64(max(1, total))
}
