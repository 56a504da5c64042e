package table

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/textfile"
)

// A Column is a column that rows must have.
type Column struct {
	Role  string   // noun for its fields, such as "label"
	Names []string // names that a header may use for it, the likeliest first; case and spaces around a name make no difference
}

// Options says which columns of a table are wanted, and which rows are good. Columns, Header and SkipBad are the
// settings data.columns, data.header and data.skip_bad of a configuration. Errors that name them are *setting.Errors.
type Options struct {
	// Columns lists the wanted columns in order, each by its name in the header or by its number, from 1. The elements
	// must differ. A number is never used as a name. JSONL has only names, the keys, and CoNLL has only numbers. If
	// Columns is nil, the wanted columns are found by their Known names in the header or, in JSONL, among the keys of
	// the first object. Without such a header, they are the first columns, one for each element of Known. A first row
	// with three or more columns must then have no others.
	Columns []string

	// Known describes the wanted columns in order. Known may be nil if Columns is set; then columns have neither roles
	// nor known names.
	Known []Column

	// Join makes one field of the first two wanted columns: their texts with a tab between them. Tabs inside the two
	// texts become spaces.
	Join bool

	// Header is "yes" if the first row is a header, and "no" if it is a row like any other. If Header is empty, the
	// first row is a header if it has a Known name for every wanted column, or if Columns has a name.
	Header string

	// SkipBad allows Read and ReadParallel to leave out more than one bad row in a hundred.
	SkipBad bool

	// Encoding is the file's encoding, by a name of the WHATWG Encoding Standard, such as windows-1252. If it is empty,
	// the encoding is UTF-8. A byte-order mark overrides it.
	Encoding string

	// Tagged says that the columns are tokens and, if there are two, their tags. Only then may the file be CoNLL.
	Tagged bool

	// RowBytes is how many bytes of memory the caller will need for each row, beside the Table. Read and ReadParallel
	// return an error as soon as the rows need more than there is.
	RowBytes int

	// Check returns an error if the wanted fields of a row are wrong in some other way. It must not keep the slice.
	// Check may be nil.
	Check func(fields []string) error
}

// A RowError describes a bad row: a wanted field is missing, empty or not text, the row can't be split into fields, it
// repeats the header or, in CSV, has more fields than the header, or Options.Check returned an error.
type RowError struct {
	Line   int      // line of the file on which the row starts, from 1
	Fields []string // all fields of the row, valid until the next Read; nil if the row can't be split into fields
	Err    error
	rows   int // number of rows that may be lost with it, at least 1
}

func (e *RowError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason why the row is bad.
func (e *RowError) Unwrap() error { return e.Err }

// Records reads the rows of a file, one row at a time: all fields for TSV and CSV, and the wanted fields and the text
// of the row for JSONL and CoNLL. NewWriter returns a Writer for rows of the same form. The function Read lists the
// files that Records accepts. A Records must not be used by several goroutines at the same time.
type Records struct {
	path    string
	rows    rowSource
	form    form
	columns []int
	header  []string
	options Options
	wanted  []string // wanted fields of the current row
	again   bool     // first isn't a header: the next Read returns it
	first   row
	bad     error // error of the first row
	close   func() error
}

// Open opens a file to read its rows. It returns the errors of the function Read. Close the Records after use.
func Open(path string, o Options) (*Records, error) {
	f, err := openTable(path, o)
	if err != nil {
		return nil, err
	}
	r, err := f.records(o)
	if err != nil {
		f.close()
		return nil, tableError(path, err)
	}
	r.path, r.close = path, f.close
	return r, nil
}

// records returns Records of the file.
func (t *tableFile) records(o Options) (*Records, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	rows, err := t.rows(o)
	if err != nil {
		return nil, err
	}
	return newRecords(rows, t.form, o)
}

// complete sets Known if it is nil. It returns an error if the Options contradict each other.
func (o *Options) complete() error {
	if o.Known == nil {
		o.Known = make([]Column, len(o.Columns))
	}
	switch {
	case o.Header != "" && o.Header != "yes" && o.Header != "no":
		return setting.Errorf("%s must be yes or no, got %s", headerPath, o.Header)
	case len(o.Known) == 0:
		return errors.New("columns: there are none: set Columns or Known in Options")
	}
	if err := CheckColumns(o.Columns, o.Known); err != nil {
		return err
	}
	for i, name := range o.Columns {
		if slices.Contains(o.Columns[:i], name) {
			return setting.Errorf("%s must be different columns, got %s", columnsPath, strings.Join(o.Columns, ", "))
		}
	}
	return nil
}

// CheckColumns returns an error if columns isn't nil and its number differs from the number of known columns.
func CheckColumns(columns []string, known []Column) error {
	if columns == nil || len(columns) == len(known) {
		return nil
	}
	return setting.Errorf("%s must name %s, %s, got %q", columnsPath, text.Count(len(known), "column"), Roles(known), columns)
}

// newRecords reads the first row and finds the wanted columns. The Options must be complete.
func newRecords(rows rowSource, f form, o Options) (*Records, error) {
	r := &Records{rows: rows, form: f, options: o}
	first, err := rows.next()
	if err == io.EOF {
		return nil, errors.New("it has only empty lines: give a file with rows")
	}
	if err != nil && !errors.As(err, new(*RowError)) {
		return nil, err
	}
	r.first, r.bad = first, err
	if named, ok := rows.(interface{ names() []string }); ok { // the first fields are the wanted columns
		r.again, r.header = true, named.names()
		for i := range r.header {
			r.columns = append(r.columns, i)
		}
		return r, nil
	}
	if r.columns, r.again, err = findColumns(first.fields, o); err != nil {
		return nil, cmp.Or(r.bad, err)
	}
	if !r.again {
		r.header = slices.Clone(first.fields)
	}
	return r, nil
}

// Wanted returns the wanted fields of the row that Read returned, in the order of Options. The next Read overwrites the
// slice.
func (r *Records) Wanted() []string { return r.wanted }

// Close closes the file.
func (r *Records) Close() error { return r.close() }

// Read returns all fields of the next row after the header, and the line on which the row starts, from 1. The next Read
// overwrites the slice. Read skips empty lines. After the last row it returns io.EOF.
//
// If a row is bad, the error is a *RowError, and the next Read returns the next row. Any other error names the file and
// ends the reading.
func (r *Records) Read() (fields []string, line int, err error) {
	next, err := r.next()
	if err != nil && err != io.EOF && !errors.As(err, new(*RowError)) {
		err = tableError(r.path, err)
	}
	return next.fields, next.line, err
}

func (r *Records) next() (row, error) {
	next, err := r.first, r.bad
	if !r.again {
		next, err = r.rows.next()
	}
	r.again = false
	if err != nil {
		return row{}, err
	}
	if err := r.judge(next.fields); err != nil {
		return row{}, &RowError{Line: next.line, Fields: next.fields, Err: err, rows: 1}
	}
	return next, nil
}

// judge returns an error if a row is bad. It stores the wanted fields in r.wanted.
func (r *Records) judge(fields []string) error {
	r.wanted = r.wanted[:0]
	if len(fields) > 1 && slices.Equal(fields, r.header) { // a single field may well be a row like its header
		return errors.New("it repeats the header: the file may be two files, one after the other")
	}
	if n := len(r.header); n > 0 && len(fields) > n && r.form.quotes() && strings.Join(fields[n:], "") != "" {
		return fmt.Errorf("it has %d fields, but the header has %d: put quotes around fields that contain %q", len(fields), n, r.form.separator)
	}
	for i, column := range r.columns {
		if column >= len(fields) {
			return fmt.Errorf("%s is missing: the row has only %d (%s)", r.name(i), len(fields), r.form.separated())
		}
		field := fields[column]
		switch invalid := textfile.CheckUTF8(field); {
		case strings.TrimSpace(field) == "":
			return fmt.Errorf("%s is empty", r.name(i))
		case invalid != nil && !r.form.encoding.UTF8():
			return fmt.Errorf("%s is not %s: it has a byte that is no part of a character: %s", r.name(i), r.form.encoding, textfile.Advice)
		case invalid != nil:
			return fmt.Errorf("%s is %w", r.name(i), invalid)
		case strings.IndexByte(field, 0) >= 0:
			return fmt.Errorf("%s has a NUL character, which isn't text", r.name(i))
		}
		r.wanted = append(r.wanted, field)
	}
	if r.options.Join {
		untabbed := func(i int) string { return strings.ReplaceAll(r.wanted[i], "\t", " ") }
		r.wanted = slices.Replace(r.wanted, 0, 2, untabbed(0)+"\t"+untabbed(1))
	}
	if r.options.Check != nil {
		return r.options.Check(r.wanted)
	}
	return nil
}

// name names a wanted column, counted from 0, in errors: "the label (column 2)".
func (r *Records) name(i int) string {
	place := fmt.Sprint("column ", r.columns[i]+1)
	switch {
	case r.form.layout == objects:
		place = fmt.Sprintf("key %q", r.header[i])
	case r.form.layout == sentences:
		place = "column " + r.header[i]
	case r.form.separator == 0:
		place = fmt.Sprint("file ", r.columns[i]+1)
	}
	if role := r.options.Known[i].Role; role != "" {
		return fmt.Sprintf("the %s (%s)", role, place)
	}
	return place
}
