package table

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/textfile"
)

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
	width   int      // number of fields that a row should have at most; 0: any
	wanted  []string // wanted fields of the current row
	again   bool     // first isn't a header: the next Read returns it
	first   row
	bad     error // error of the first row
	lists   bool  // some fields are lists
	tokens  bool  // some row has several tokens
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
		f.Close()
		return nil, tableError(path, err)
	}
	r.path, r.close = path, f.Close
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

// rows returns a reader of the file's rows. Only JSONL and CoNLL read the options. Their rows have the wanted fields,
// and then one more field, which a Writer needs.
func (t *tableFile) rows(o Options) (rowSource, error) {
	lines := lineReader{in: t.Reader}
	switch {
	case t.form.layout == objects:
		return newJSONRows(t.objectLines(), o)
	case t.form.layout == sentences:
		return newCoNLLRows(lines, t.form, o)
	}
	var label Column
	if n := len(o.Known); n > 1 {
		label = o.Known[n-1]
	}
	return t.form.delimitedRows(lines, label), nil
}

// begin returns the first row after the rows above the header. If the first column has names of rows, the header gets
// an empty name for it.
func (f form) begin(rows rowSource) (first row, err error) {
	for range f.above {
		if _, err := rows.next(); err != nil && !errors.As(err, new(*RowError)) {
			return row{}, err
		}
	}
	if first, err = rows.next(); f.rowNames {
		first.fields = slices.Insert(slices.Clone(first.fields), 0, "")
	}
	return first, err
}

// newRecords reads the first row and finds the wanted columns. The Options must be complete.
func newRecords(rows rowSource, f form, o Options) (*Records, error) {
	r := &Records{rows: rows, form: f, options: o}
	first, err := f.begin(rows)
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
	if f.rowNames && r.again { // it is a header, but its names are unknown
		if r.bad != nil {
			return nil, r.bad
		}
		if o.Columns == nil {
			return nil, manyColumns(first.fields, make([]string, len(o.Known)), o)
		}
		r.again = false
	}
	if r.width = f.usual; !r.again {
		r.header = slices.Clone(first.fields)
		r.width = len(r.header)
	}
	return r, nil
}

// Wanted returns the wanted fields of the row that Read returned, in the order of Options. The next Read overwrites the
// slice.
func (r *Records) Wanted() []string { return r.wanted }

// Names returns the names of all fields that Read returns for TSV and CSV, or nil if there is no header. If lines is
// true, as for JSONL and CoNLL, the last field has the whole row, and the others repeat parts of it.
func (r *Records) Names() (names []string, lines bool) {
	if r.form.layout != delimited {
		return nil, true
	}
	return r.header, false
}

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
	if err := r.judge(next.fields); errors.Is(err, ErrSeveral) {
		return row{}, fmt.Errorf("line %d: %w", next.line, err)
	} else if err != nil {
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
	if n := r.width; n > 0 && len(fields) > n && strings.Join(fields[n:], "") != "" {
		return r.tooLong(len(fields))
	}
	for i, column := range r.columns {
		if column >= len(fields) {
			return fmt.Errorf("%s is missing: the row has only %d (%s)", r.name(i), len(fields), r.form.separated())
		}
		field, c := fields[column], r.options.Known[i]
		if r.form.layout == delimited && (c.One || c.Several != "" || r.options.Tagged) {
			if texts, ok := elementsOf(field); ok {
				var err error
				if field, err = c.join(texts); err != nil {
					return fmt.Errorf("%s has %w", r.name(i), err)
				}
				r.lists = true
			}
		}
		if strings.TrimSpace(field) == "" {
			field = c.Several
		}
		switch invalid := textfile.CheckUTF8(field); {
		case strings.TrimSpace(field) == "" && c.Empty:
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
	if first, end := r.options.Join[0], r.options.Join[1]; end > 0 {
		for i := first; i < end; i++ {
			if !r.options.Known[i].Tabs {
				r.wanted[i] = strings.ReplaceAll(r.wanted[i], "\t", " ")
			}
		}
		r.wanted = slices.Replace(r.wanted, first, end, strings.Join(r.wanted[first:end], "\t"))
	}
	r.tokens = r.tokens || strings.ContainsFunc(strings.TrimSpace(r.wanted[0]), unicode.IsSpace)
	if r.options.Check != nil {
		return r.options.Check(r.wanted)
	}
	return nil
}

// tooLong returns the error for a row with n fields, which are too many.
func (r *Records) tooLong(n int) error {
	has, advice := "the header has", fmt.Sprintf("put quotes around fields that contain %q", r.form.separator)
	if r.header == nil {
		has = "other rows have"
	}
	if !r.form.quotes() {
		advice = "a text can't have a tab; make it a space"
	}
	return fmt.Errorf("it has %d fields, but %s %d: %s", n, has, r.width, advice)
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

// Notes says how the file is read, where that may surprise.
func (r *Records) Notes() (notes []string) {
	f := r.form
	switch {
	case f.above > 0 && r.header != nil:
		notes = append(notes, fmt.Sprintf("the header is in line %d: left out %s before it", r.first.line, text.Count(f.above, "row")))
	case f.above > 0:
		notes = append(notes, "left out the first line, which names the separator")
	}
	if f.titles != "" && r.header == nil && r.options.Header == "" {
		notes = append(notes, fmt.Sprintf("line %d is read as a row, but looks like a header: %s; with header yes, it is one", r.first.line, f.titles))
	}
	if f.rowNames {
		notes = append(notes, "the first column has names of rows, because the header has one field less than every row")
	}
	if rows, ok := r.rows.(*jsonRows); ok && rows.spans != nil {
		notes = append(notes, rows.spans.notes()...)
	}
	if r.lists {
		notes = append(notes, "fields such as ['a', 'b'] are lists, as Python and JSON write them")
	}
	if f.quoted {
		notes = append(notes, "the fields between tabs are in quotes, which are no part of them; with quotes no, they are")
	}
	return notes
}

// Head returns the first rows of a file, at most two, with all their fields. For JSONL, these are the keys and the
// values of the first object. Rows above a header with all wanted names are left out. So are rows that can't be read:
// Read returns their errors.
func Head(path string, o Options) (rows [][]string) {
	f, err := openTable(path, o)
	if err != nil {
		return nil
	}
	defer f.Close()
	if f.form.layout != objects {
		source, err := f.rows(o)
		if err != nil {
			return nil
		}
		next, err := f.form.begin(source)
		for len(rows) < 2 && err == nil {
			rows = append(rows, slices.Clone(next.fields))
			next, err = source.next()
		}
		return rows
	}
	lines := f.objectLines()
	line, err := lines.next()
	for err == nil && len(bytes.TrimSpace(line)) == 0 {
		line, err = lines.next()
	}
	var first object
	if err == nil {
		first, _ = members(line)
	}
	rows = [][]string{first.names(), nil}
	for _, key := range rows[0] {
		value, _ := first.text(key, Column{}) // a value that isn't text becomes ""
		rows[1] = append(rows[1], value)
	}
	return rows
}
