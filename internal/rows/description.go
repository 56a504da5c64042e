package rows

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
)

// A Description describes a file's rows before training. String returns it in words.
type Description struct {
	File       string
	Columns    string // columns of sources and answers, in words
	Rows       int    // number of rows without bad rows
	Sources    int    // number of different sources
	Several    int    // number of sources with more than one answer
	Duplicates int    // number of rows that are equal to an earlier row

	Read      []string // how the files are read, where that may surprise
	Bad       []string // for each file with bad rows: their number and the first ones; all are left out
	Windows   int      // number of rows that are read in several windows
	Long      int      // number of rows that are too long; they are left out or, if answers have no units, cut
	MaxLen    int      // longest allowed source
	MaxAnswer int      // longest allowed answer, if answers have any length

	Trains, Validates int    // number of training rows and of validation rows
	Held              int    // number of sources held out for validation
	ValidationFile    string // if empty, sources are held out

	Source, Answer Side // if answers have no units, Answer is zero

	// Notes and Warnings are what a kind of task adds, each as "name: text". The Notes come before the numbers of
	// training rows, and the Warnings at the end.
	Notes, Warnings []string

	format Format
	seed   uint64
	from   bool // whether the run starts from another model, which fixes the known symbols
}

// A Side describes the sources, or the answers.
type Side struct {
	Units           tokenizer.Units
	Symbols         int // size of the vocabulary, without the unknown symbol
	Longest, Median int // length of the longest row and median length, in symbols
	Unknown         int // number of validation rows with unknown symbols; if the run starts from another model, training rows count too

	Unseen float64 // share of held-out rows with unknown words, if the Units are byte pairs for this reason; otherwise 0
}

// String returns the description as lines of text. The lines after the first have the form "  name: value".
func (d *Description) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s with %s", d.File, text.Count(d.Rows, "row"), text.Count(d.Sources, "different source"))
	if d.Several > 0 {
		fmt.Fprintf(&s, ", %d of them with several answers", d.Several)
	}
	if d.Duplicates > 0 {
		fmt.Fprintf(&s, "; %s", text.Count(d.Duplicates, "repeated row"))
	}
	s.WriteByte('\n')
	line := func(format string, values ...any) { fmt.Fprintf(&s, "  "+format+"\n", values...) }
	line("columns: %s", d.Columns)
	for _, note := range d.Read {
		line("read: %s", note)
	}
	for _, bad := range d.Bad {
		line("left out: %s", bad)
	}
	switch long := text.Count(d.Long, "row"); {
	case d.Long == 0:
	case !d.format.AnswerUnits:
		line("cut: %s longer than %d symbols", long, d.MaxLen)
	case d.format.Sequences:
		line("left out: %s with a source longer than %d symbols or an answer longer than %d", long, d.MaxLen, d.MaxAnswer)
	default:
		line("left out: %s longer than %d symbols", long, d.MaxLen)
	}
	if d.Windows > 0 {
		line("windows: %s longer than %d symbols, in parts that overlap", text.Count(d.Windows, "row"), d.MaxLen)
	}
	side := func(name string, o Side) {
		why := ""
		if o.Unseen > 0 {
			why = fmt.Sprintf(", because %.0f %% of the held-out %s have unknown words", 100*o.Unseen, name)
		}
		line("%s: %s%s; vocabulary of %d; length at most %d, median %d", name, o.Units, why, o.Symbols, o.Longest, o.Median)
	}
	side("sources", d.Source)
	if d.format.AnswerUnits {
		side("answers", d.Answer)
	}
	for _, note := range d.Notes {
		line("%s", note)
	}
	validation := "no validation"
	switch {
	case d.Validates == 0:
	case d.ValidationFile != "":
		validation = fmt.Sprintf("validation: %s of %s", text.Count(d.Validates, "row"), d.ValidationFile)
	default:
		validation = fmt.Sprintf("validation: %s (all rows of %s, chosen by seed %d)", text.Count(d.Validates, "row"), text.Count(d.Held, "source"), d.seed)
	}
	line("training: %s; %s", text.Count(d.Trains, "row"), validation)
	noun := "validation "
	if d.from {
		noun = ""
	}
	if n := d.Source.Unknown; n > 0 {
		line("unknown: %s with letters, or with mostly words, that the model doesn't know", text.Count(n, noun+"source"))
	}
	if n := d.Answer.Unknown; n > 0 {
		line("unknown: %s with symbols that the model doesn't know and can't write", text.Count(n, noun+"answer"))
	}
	for _, warning := range d.Warnings {
		line("%s", warning)
	}
	return s.String()
}

// bad adds the bad rows of a file, and how it is read.
func (d *Description) bad(t *table.Table) {
	noun := "bad row"
	if t.Name == d.ValidationFile {
		noun = "bad validation row"
	}
	for _, note := range t.Notes {
		if !slices.Contains(d.Read, note) {
			d.Read = append(d.Read, note)
		}
	}
	if t.LeftOut > 0 {
		d.Bad = append(d.Bad, fmt.Sprintf("%s of %d: %s", text.Count(t.LeftOut, noun), t.LeftOut+t.Len(), t.Reasons()))
	}
}

// count sets Columns and the counts of rows, sources and duplicates. The argument targets is the file of answers, if
// there are parallel files.
func (d *Description) count(t *table.Table, targets string) {
	names := t.ColumnNames()
	last := len(names) - 1
	d.Columns = strings.Join(names[:last], ", ") + " and " + names[last]
	switch {
	case targets != "":
		d.Columns = fmt.Sprintf("the lines of this file and of %s", targets)
	case t.Header != nil:
		d.Columns += t.Named
	default:
		d.Columns += fmt.Sprintf(", without a header; the first row is %.60q, %.60q", t.Field(0, 0), t.Field(0, 1))
	}
	seed := maphash.MakeSeed()
	hashes := make([]rowHash, t.Len())
	for i := range hashes {
		hashes[i] = hashOf(seed, data.Example{Source: t.Field(i, 0), Answer: t.Field(i, 1)})
	}
	slices.SortFunc(hashes, func(a, b rowHash) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
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

// measure describes one side of the training and the validation rows. If from is true, unknown symbols of training rows
// count too.
func (o *Side) measure(t tokenizer.Tokenizer, trains, validates measures, side int, from bool) {
	o.Symbols = t.Len()
	if t.Unknown() >= 0 {
		o.Symbols--
	}
	sorted := make([]int32, len(trains.rows))
	for i, l := range trains.rows {
		sorted[i] = l[side]
	}
	slices.Sort(sorted)
	o.Longest, o.Median = int(sorted[len(sorted)-1]), int(sorted[len(sorted)/2])
	o.Unknown = validates.unknown[side]
	if from {
		o.Unknown += trains.unknown[side]
	}
}
