package rows

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/table"
)

// A Format describes the rows of one kind of task.
type Format struct {
	Columns []table.Column              // wanted columns: the sources and the answers; or two texts, which are joined, and the answers; or as Texts says
	Tagged  bool                        // a row is tokens with their tags, so the file may be CoNLL
	Check   func(fields []string) error // see table.Options

	Labels      bool            // answers are labels; each has its share of the held-out rows
	AnswerUnits bool            // answers are split into units; otherwise an answer is a label or a number
	Sequences   bool            // answers have any length, up to the rule's MaxAnswer
	Aligned     bool            // an answer has one symbol for each symbol of its source
	Usual       tokenizer.Units // default units; if empty, Encode guesses
	Starts      bool            // a last column, after the answers, says where they begin in the source
	Windows     bool            // a source that is too long is read in several windows: see data.Rule.Windows
	Spaces      bool            // tabs in a source of one column become spaces, because a tab would separate two texts
	Texts       int             // if above 0: the number of texts in a row, as in data.Rule; all columns but the first are joined to the answer
}

// separator returns what stands between the labels of an answer, or "" if it doesn't have several.
func (f Format) separator() string { return f.Columns[len(f.Columns)-1].Several }

// labels returns the labels of an answer. A row without labels has the empty one.
func (f Format) labels(answer string) []string {
	if labels := (&data.Rule{Separator: f.separator()}).Labels(answer); len(labels) > 0 {
		return labels
	}
	return []string{""}
}

// Inputs returns how to read only the inputs of the rows, with the settings of s.
func (f Format) Inputs(s *data.Settings) table.Options {
	n := f.inputs()
	o := f.options(s)
	o.Known, o.Check = o.Known[:n], nil
	if f.Texts > 0 {
		o.Join = [2]int{}
	}
	if len(o.Columns) == len(f.Columns) {
		o.Columns = o.Columns[:n]
	}
	return o
}

// inputs returns the number of columns that make a source.
func (f Format) inputs() int {
	n := len(f.Columns) - 1
	if f.Starts {
		n--
	}
	if f.Texts > 0 {
		n = 1
	}
	return n
}

func (f Format) options(s *data.Settings) table.Options {
	var join [2]int
	switch {
	case f.Texts > 0:
		join = [2]int{1, len(f.Columns)}
	case f.inputs() == 2:
		join = [2]int{0, 2}
	case f.Spaces:
		join = [2]int{0, 1}
	}
	return table.Options{
		Columns: s.Columns, Known: f.Columns, Join: join, Header: s.Header, Quotes: s.Quotes, SkipBad: s.SkipBad,
		Encoding: s.Encoding, Tagged: f.Tagged, Check: f.Check,
	}
}

// Read reads a file of rows or, if there are targets, the lines of two parallel files. The caller will need rowBytes of
// memory per row, beside the table.
func (f Format) Read(s *data.Settings, rowBytes int, path, targets string) (*table.Table, error) {
	o := f.options(s)
	o.RowBytes = rowBytes
	if targets != "" {
		return table.ReadParallel([]string{path, targets}, o)
	}
	return table.Read(path, o)
}

// readOnce is like Read. If *sum is empty, it sets *sum to the checksum of the files. Otherwise, the checksum must be
// equal to *sum.
func (f Format) readOnce(s *data.Settings, path, targets string, sum *string) (*table.Table, error) {
	t, err := f.Read(s, rowBytes, path, targets)
	if err != nil {
		return nil, err
	}
	found := strings.Join(t.SHA256, " ")
	if *sum = cmp.Or(*sum, found); *sum != found {
		return nil, fmt.Errorf("data file %q has changed since the run began: restore it", path)
	}
	return t, nil
}

// rowBytes is the approximate memory per row of a Set and of training, beside the table.
const rowBytes = 56
