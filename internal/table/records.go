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
	"unicode"

	"github.com/heed-go/heed/data/tokenizer"
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
	// the first object. Without such a header, they are the first columns, one for each element of Known, and it is an
	// error if the first row has more than these, and more than two.
	Columns []string

	// Known describes the wanted columns in order. Known may be nil if Columns is set; then columns have neither roles
	// nor known names.
	Known []Column

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
	case o.Columns != nil && len(o.Known) != len(o.Columns):
		return fmt.Errorf("columns: want %d, %s, got %d: %s", len(o.Known), Roles(o.Known), len(o.Columns), strings.Join(o.Columns, ", "))
	}
	for i, name := range o.Columns {
		if slices.Contains(o.Columns[:i], name) {
			return setting.Errorf("%s must be different columns, got %s", columnsPath, strings.Join(o.Columns, ", "))
		}
	}
	return nil
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

// findColumns returns the index of each wanted column, from 0, and reports whether the first row is a row like any
// other instead of a header.
func findColumns(first []string, o Options) (columns []int, isRow bool, err error) {
	if o.Columns == nil {
		return knownColumns(first, o)
	}
	named, allKnown := false, true
	for i, name := range o.Columns {
		column, err := strconv.Atoi(name)
		if column--; err != nil && o.Header == "no" {
			err = setting.Errorf("%s is no, so %s must be numbers, got %q", headerPath, columnsPath, name)
		} else if err != nil {
			named = true
			column, err = columnNamed(first, name)
		} else if column < 0 {
			err = setting.Errorf("%s: numbers start at 1, got %s", columnsPath, name)
		}
		if err != nil {
			return nil, false, err
		}
		columns = append(columns, column)
		allKnown = allKnown && column < len(first) && slices.ContainsFunc(o.Known[i].Names, func(k string) bool { return sameName(k, first[column]) })
	}
	return columns, o.Header == "no" || o.Header == "" && !named && !allKnown, nil
}

const (
	columnsPath = setting.Path("data.columns")
	headerPath  = setting.Path("data.header")
	skipBadPath = setting.Path("data.skip_bad")
)

// knownColumns finds columns by their known names. If a name is missing, it returns the first columns of the file.
func knownColumns(first []string, o Options) (columns []int, isRow bool, err error) {
	isRow = o.Header == "no"
	names := make([]string, len(o.Known))
	for i, c := range o.Known {
		columns = append(columns, i)
		j := slices.IndexFunc(c.Names, func(name string) bool { return hasName(first, name) })
		if j < 0 {
			isRow = true
		} else {
			names[i] = c.Names[j]
		}
	}
	if isRow && len(first) > max(2, len(names)) {
		return nil, false, manyColumns(first, names, o)
	}
	for i := 0; i < len(names) && !isRow && err == nil; i++ {
		columns[i], err = columnNamed(first, names[i])
	}
	return columns, isRow && o.Header != "yes", err
}

// manyColumns returns the error for a row with too many columns to guess the wanted ones. The argument names has their
// known names in the row, or "". The error's example has the last columns, except where a name is known.
func manyColumns(first, names []string, o Options) error {
	example := make([]int, len(names))
	for i := range example {
		example[i] = len(first) - len(names) + i
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		column := slices.IndexFunc(first, func(f string) bool { return sameName(f, name) })
		if j := slices.Index(example, column); j >= 0 {
			example[j] = example[i]
		}
		example[i] = column
	}
	var byName, byNumber []string
	for _, column := range example {
		name := strings.TrimSpace(first[column])
		_, twice := columnNamed(first, name)
		if _, err := strconv.Atoi(name); err != nil && twice == nil && name != "" && len(name) <= 30 && !strings.ContainsFunc(name, isOdd) {
			byName = append(byName, name)
		}
		byNumber = append(byNumber, strconv.Itoa(column+1))
	}
	text := "it has %d columns, but no header with known names. The first row is %s: choose %s, as in %s %s"
	if len(byName) < len(example) || o.Header == "no" {
		byName = byNumber
	} else if o.Header == "" {
		return setting.Errorf(text+" if this row is a header, or as in %s %s if it isn't", len(first), listed(first), Roles(o.Known),
			columnsPath, strings.Join(byName, ","), columnsPath, strings.Join(byNumber, ","))
	}
	return setting.Errorf(text, len(first), listed(first), Roles(o.Known), columnsPath, strings.Join(byName, ","))
}

// isOdd reports whether a character may need quotes in a flag.
func isOdd(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
}

// listed lists the columns of a row, with their numbers.
func listed(row []string) string {
	return text.List(len(row), 20, ", ", func(i int) string { return fmt.Sprintf("(%d) %.30q", i+1, row[i]) })
}

// Roles lists the roles of columns, such as "the text and the label".
func Roles(columns []Column) string {
	var s strings.Builder
	for i, c := range columns {
		switch {
		case i > 0 && i == len(columns)-1:
			s.WriteString(" and ")
		case i > 0:
			s.WriteString(", ")
		}
		s.WriteString("the " + c.Role)
	}
	return s.String()
}

// columnNamed returns the index of the only column with this name in a header.
func columnNamed(header []string, name string) (int, error) {
	same := func(f string) bool { return sameName(f, name) }
	column := slices.IndexFunc(header, same)
	problem := ""
	switch {
	case column < 0:
		problem = "isn't in the header, which"
	case slices.ContainsFunc(header[column+1:], same):
		problem = "is in the header twice, so use its number instead: the header"
	default:
		return column, nil
	}
	advice := ""
	if len(header) == 1 && strings.ContainsAny(header[0], ",;") {
		advice = ": if its columns are between commas or semicolons, let the file's name end in .csv"
	}
	return 0, fmt.Errorf("column %q %s has %s%s", name, problem, listed(header), advice)
}

// hasName reports whether a header has a name.
func hasName(header []string, name string) bool {
	return slices.ContainsFunc(header, func(f string) bool { return sameName(f, name) })
}

func sameName(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// Columns returns the index of each wanted column in a row's fields, from 0, in the order of Options.
func (r *Records) Columns() []int { return slices.Clone(r.columns) }

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
			return fmt.Errorf("%s is missing: the row has only %d (%s)", r.name(i), len(fields), r.form.kind())
		}
		field := fields[column]
		switch invalid := tokenizer.CheckUTF8(field); {
		case strings.TrimSpace(field) == "":
			return fmt.Errorf("%s is empty", r.name(i))
		case invalid != nil && !r.form.encoding.UTF8():
			return fmt.Errorf("%s is not %s: it has a byte that is no part of a character: %s", r.name(i), r.form.encoding, textfile.Advice)
		case invalid != nil:
			return fmt.Errorf("%s is %w: %s", r.name(i), invalid, textfile.Advice)
		case strings.IndexByte(field, 0) >= 0:
			return fmt.Errorf("%s has a NUL character, which isn't text", r.name(i))
		}
		r.wanted = append(r.wanted, field)
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

// A Writer writes rows in the form of the file that they were read from: with its separators, line ends, encoding and
// byte-order mark. Close it after the last row.
type Writer struct {
	form  form
	added []string // names of the added values
	width int      // for TSV and CSV: number of fields before the added values
	out   *bufio.Writer
	row   bytes.Buffer // current row, in UTF-8
	csv   *csv.Writer  // writes to row
	bytes []byte       // current row, in the file's encoding
	rows  int
}

// predicted is the prefix of an added name that the file already has.
const predicted = "predicted_"

// NewWriter returns a Writer that writes rows to w in the form of r's file, each with added values. If r has a header,
// NewWriter writes the header first, with the added names at its end. In JSONL, the added names are keys. A name that
// the header or a line of JSONL already has gets the prefix "predicted_".
func (r *Records) NewWriter(w io.Writer, added ...string) (*Writer, error) {
	taken := r.header
	if r.form.layout == objects {
		var err error
		if taken, err = takenKeys(r.path, r.options.Encoding, added); err != nil {
			return nil, err
		}
	}
	added = slices.Clone(added)
	for i := range added {
		for slices.ContainsFunc(taken, func(name string) bool { return sameName(name, added[i]) }) {
			added[i] = predicted + added[i]
		}
	}
	return r.newWriter(w, added)
}

// newWriter is like NewWriter, but leaves the names unchanged.
func (r *Records) newWriter(w io.Writer, added []string) (*Writer, error) {
	rw := &Writer{form: r.form, added: added, width: len(r.header), out: bufio.NewWriter(w)}
	rw.csv = csv.NewWriter(&rw.row)
	rw.csv.Comma, rw.csv.UseCRLF = r.form.separator, r.form.crlf
	if r.form.mark {
		coded, _ := r.form.encoding.Append(nil, []byte(mark)) // UTF-8 or UTF-16, which have this character
		rw.out.Write(coded)                                   // the next write returns this error again
	}
	if r.header == nil || r.form.layout != delimited {
		return rw, nil
	}
	names := make([]any, len(added))
	for i, name := range added {
		names[i] = name
	}
	return rw, rw.Write(r.header, names)
}

// Write writes a row with one value for each added name, or with nil for a row without values. A value may be nil too.
// In TSV and CSV, the values come after the longest row so far, and are empty without values. In JSONL, they are the
// last members of the object, and null without values; a line that isn't an object stays unchanged. In CoNLL, each
// token's line gets its token of a value, or "_" without values.
//
// TSV has no quoting: if a field has a tab or an end of line, Write returns an error and writes nothing, but a value
// with such a character is quoted. Write also returns an error and writes nothing if the file's encoding lacks a
// character of the row.
func (w *Writer) Write(fields []string, values []any) error {
	w.rows++
	w.row.Reset()
	var err error
	switch w.form.layout {
	case objects:
		err = w.writeObject(fields[len(fields)-1], values)
	case sentences:
		w.writeSentence(fields[len(fields)-1], values)
	default:
		err = w.writeFields(fields, values)
	}
	if err != nil {
		return err
	}
	coded, err := w.form.encoding.Append(w.bytes[:0], w.row.Bytes())
	if err != nil {
		return err
	}
	w.bytes = coded
	_, err = w.out.Write(coded)
	return err
}

// valueField returns a value as a field; nil is empty.
func valueField(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// writeFields writes a row of TSV or CSV.
func (w *Writer) writeFields(fields []string, values []any) error {
	const ends = "\t\r\n"
	if w.width = max(w.width, len(fields)); len(w.added) > 0 {
		fields = append(slices.Clone(fields), make([]string, w.width-len(fields)+len(w.added))...)
	}
	for i, value := range values {
		field := valueField(value)
		if !w.form.quotes() && strings.ContainsAny(field, ends) {
			field = strconv.Quote(field)
		}
		fields[w.width+i] = field
	}
	if w.form.quotes() {
		w.csv.Write(fields)
		w.csv.Flush()
		return nil
	}
	for i, field := range fields {
		if strings.ContainsAny(field, ends) {
			return fmt.Errorf("field %d of row %d has a tab or an end of line, which TSV doesn't allow: %.50q; use CSV, or replace the character", i+1, w.rows, field)
		}
	}
	w.row.WriteString(strings.Join(fields, "\t"))
	w.endLine()
	return nil
}

func (w *Writer) endLine() {
	if w.form.crlf {
		w.row.WriteByte('\r')
	}
	w.row.WriteByte('\n')
}

// Close writes buffered rows. It doesn't close the underlying writer.
func (w *Writer) Close() error { return w.out.Flush() }
