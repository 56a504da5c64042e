package table

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
)

// Options say which columns of a table are wanted, and which of its rows are good.
type Options struct {
	// Columns are the wanted columns in order, each by its name in the header or by its number from 1; what is a number
	// is never taken for a name. Nil takes those that the header calls by Known names, or else, without such a header,
	// the first ones, as many as Known has.
	Columns []string

	// Known are, for each wanted column, the names that a header may have for it, such as source, src and input, the
	// likeliest first. The first row is a header if it has a Known name for every wanted column, or if Columns has a
	// name; nothing else makes it one. Names are the same in upper and lower case, and with spaces around them.
	Known [][]string

	// Check returns what else is wrong with a row, of which it gets the wanted fields, or nil. It may be nil, and must
	// not keep the slice.
	Check func(fields []string) error
}

// A RowError is a bad row: one that lacks a wanted field, or whose wanted field is empty or not text, or which can't be
// told into fields, or of which Options.Check has said what is wrong.
type RowError struct {
	Line   int      // of the file, from 1: where the row starts
	Fields []string // all of the row's fields, until the next row is read; nil if the row can't be told into fields
	Err    error
	rows   int // how many rows may have been lost with it
}

func (e *RowError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the row.
func (e *RowError) Unwrap() error { return e.Err }

// Records reads the rows of a file of TSV or CSV one by one, all fields of each. NewWriter writes them back in the
// file's own form. Read says what files may look like. A Records is for one goroutine.
type Records struct {
	path    string
	rows    rowSource
	form    form
	columns []int
	header  []string
	check   func([]string) error
	wanted  []string // memory for check
	again   bool     // the first row was no header: it comes next
	first   row
	bad     error // of the first row
	close   func() error
}

// Open opens a file for its rows. Its errors are those of Read. Close the Records after use.
func Open(path string, o Options) (*Records, error) {
	f, err := openTable(path)
	if err != nil {
		return nil, err
	}
	r, err := newRecords(f.rows(), f.form, o)
	if err != nil {
		f.close()
		return nil, tableError(path, err)
	}
	r.path, r.close = path, f.close
	return r, nil
}

// newRecords finds the wanted columns.
func newRecords(rows rowSource, f form, o Options) (*Records, error) {
	r := &Records{rows: rows, form: f, check: o.Check}
	first, err := rows.next()
	if err == io.EOF {
		return nil, errors.New("it has only empty lines: give a file with rows")
	}
	if err != nil && !errors.As(err, new(*RowError)) {
		return nil, err
	}
	r.first, r.bad = first, err
	if r.columns, r.again, err = findColumns(first.fields, o); err != nil {
		return nil, cmp.Or(r.bad, err)
	}
	if !r.again {
		r.header = slices.Clone(first.fields)
	}
	return r, nil
}

// findColumns returns the places of the wanted columns, from 0, and whether the first row is one like any other, not a
// header.
func findColumns(first []string, o Options) (columns []int, isRow bool, err error) {
	known := func(i int, name string) bool {
		return slices.ContainsFunc(o.Known[i], func(k string) bool { return sameName(k, name) })
	}
	if o.Columns == nil {
		return knownColumns(first, o.Known)
	}
	if o.Known != nil && len(o.Known) != len(o.Columns) || len(o.Columns) == 0 {
		return nil, false, fmt.Errorf("columns: %d are wanted, got %d: %s", len(o.Known), len(o.Columns), strings.Join(o.Columns, ", "))
	}
	named, allKnown := false, o.Known != nil
	for i, name := range o.Columns {
		column, err := strconv.Atoi(name)
		if column--; err != nil {
			named = true
			column, err = columnNamed(first, name)
		} else if column < 0 {
			err = fmt.Errorf("columns: they are counted from 1, got %s", name)
		}
		if err != nil {
			return nil, false, err
		}
		columns = append(columns, column)
		allKnown = allKnown && known(i, at(first, column))
	}
	return columns, !named && !allKnown, nil
}

// knownColumns is findColumns by the known names, or of the first columns if a name isn't there.
func knownColumns(first []string, known [][]string) (columns []int, isRow bool, err error) {
	if len(known) == 0 {
		return nil, false, errors.New("columns: none are wanted: Options needs Columns or Known")
	}
	names := make([]string, len(known))
	for i := range known {
		columns = append(columns, i)
		j := slices.IndexFunc(known[i], func(name string) bool {
			return slices.ContainsFunc(first, func(f string) bool { return sameName(f, name) })
		})
		if j < 0 {
			isRow = true
		} else {
			names[i] = known[i][j]
		}
	}
	for i := 0; i < len(names) && !isRow && err == nil; i++ {
		columns[i], err = columnNamed(first, names[i])
	}
	return columns, isRow, err
}

// columnNamed returns the place of the one column that has this name in a header.
func columnNamed(header []string, name string) (int, error) {
	same := func(f string) bool { return sameName(f, name) }
	column := slices.IndexFunc(header, same)
	problem := ""
	switch {
	case column < 0:
		problem = "isn't in the header, which"
	case slices.ContainsFunc(header[column+1:], same):
		problem = "is in the header twice, so that it is named by its number: the header"
	default:
		return column, nil
	}
	const most = 20
	names := fmt.Sprintf("%.50q", header[:min(len(header), most)])
	if len(header) > most {
		names += fmt.Sprintf(" and %d more", len(header)-most)
	}
	return 0, fmt.Errorf("column %q %s has %s", name, problem, names)
}

func sameName(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// at returns a field, or "" if the row has too few.
func at(fields []string, column int) string {
	if column >= len(fields) {
		return ""
	}
	return fields[column]
}

// Header returns the names of all columns, nil if the file has no header.
func (r *Records) Header() []string { return slices.Clone(r.header) }

// Columns returns the places of the wanted columns among a row's fields, from 0, in the order of Options.
func (r *Records) Columns() []int { return slices.Clone(r.columns) }

// Close closes the file.
func (r *Records) Close() error { return r.close() }

// Read returns all fields of the next row, after the header, and the line that it starts on, from 1. The next Read
// overwrites the slice. Empty lines are no rows. After the last row it returns io.EOF.
//
// A *RowError is of that row alone, and its Fields are those of the row if it can be told into any: a later Read goes
// on. Any other error names the file, and ends the reading.
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

// judge returns what is wrong with a row, and leaves its wanted fields in r.wanted.
func (r *Records) judge(fields []string) error {
	r.wanted = r.wanted[:0]
	for _, column := range r.columns {
		if column >= len(fields) {
			return fmt.Errorf("column %d is wanted, and the row has %d (%s)", column+1, len(fields), r.form.kind())
		}
		field := fields[column]
		switch invalid := tokenizer.CheckUTF8(field); {
		case strings.TrimSpace(field) == "":
			return fmt.Errorf("column %d is empty", column+1)
		case invalid != nil && r.form.utf16 != nil:
			return fmt.Errorf("column %d is not UTF-16: it has half a character; save the file as UTF-8", column+1)
		case invalid != nil:
			return fmt.Errorf("column %d is %w; save the file as UTF-8", column+1, invalid)
		case strings.IndexByte(field, 0) >= 0:
			return fmt.Errorf("column %d has a NUL, which isn't text", column+1)
		}
		r.wanted = append(r.wanted, field)
	}
	if r.check != nil {
		return r.check(r.wanted)
	}
	return nil
}

// A Writer writes rows in the form of the file that they were read from: its separators, line ends, encoding and
// byte-order mark. Close it after the last.
type Writer struct {
	form  form
	out   *bufio.Writer
	row   bytes.Buffer // in UTF-8
	csv   *csv.Writer  // to row
	bytes []byte       // as written
	rows  int
}

// NewWriter returns a writer of rows like those of r to w. Where r has a header, it writes that first, with the added
// names after it.
func (r *Records) NewWriter(w io.Writer, added ...string) (*Writer, error) {
	rw := &Writer{form: r.form, out: bufio.NewWriter(w)}
	rw.csv = csv.NewWriter(&rw.row)
	rw.csv.Comma, rw.csv.UseCRLF = r.form.separator, r.form.crlf
	if r.form.mark {
		rw.out.Write(r.form.append(nil, []byte(mark))) // an error comes again with what is written next
	}
	if r.header == nil {
		return rw, nil
	}
	return rw, rw.Write(append(r.Header(), added...))
}

// Write writes a row. In TSV, a field that has a tab or an end of line is an error, as that has no quoting, and nothing
// is written of the row.
func (w *Writer) Write(fields []string) error {
	w.rows++
	w.row.Reset()
	if w.form.quotes() {
		w.csv.Write(fields)
		w.csv.Flush()
	} else {
		for i, field := range fields {
			if strings.ContainsAny(field, "\t\r\n") {
				return fmt.Errorf("field %d of row %d has a tab or an end of line, which TSV can't hold: %.50q; use CSV, or replace it", i+1, w.rows, field)
			}
		}
		w.row.WriteString(strings.Join(fields, "\t"))
		if w.form.crlf {
			w.row.WriteByte('\r')
		}
		w.row.WriteByte('\n')
	}
	w.bytes = w.form.append(w.bytes[:0], w.row.Bytes())
	_, err := w.out.Write(w.bytes)
	return err
}

// Close writes what is held back. It doesn't close the writer below.
func (w *Writer) Close() error { return w.out.Flush() }
