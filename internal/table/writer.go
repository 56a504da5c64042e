package table

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Writer writes rows in the form of the file that they were read from: with its separators, line ends, encoding and
// byte-order mark. Close it after the last row.
type Writer struct {
	form  form
	added []string // names of the added values
	width int      // for TSV and CSV: number of fields before the added values
	named bool     // the file has a header, which decides the width
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
	rw := &Writer{form: r.form, added: added, width: len(r.header), named: r.header != nil, out: bufio.NewWriter(w)}
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
	header := r.header
	if r.form.rowNames {
		header = header[1:]
	}
	rw.width = len(header)
	err := rw.Write(header, names)
	rw.width = len(r.header)
	return rw, err
}

// Write writes a row with one value for each added name, or with nil for a row without values. A value may be nil too.
// In TSV and CSV, the values come after as many fields as the header has or, without one, as the longest row with
// values so far, and are empty without values. In JSONL, they are the last members of the object, and null without
// values; a line that isn't an object stays unchanged. In CoNLL, each token's line gets its token of a value, or "_"
// without values.
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
	switch {
	case values == nil: // a bad row may be too long
	case w.named:
		fields = fields[:min(len(fields), w.width)] // the others are empty
	default:
		w.width = max(w.width, len(fields))
	}
	if missing := w.width + len(w.added) - len(fields); len(w.added) > 0 && missing > 0 {
		fields = append(slices.Clone(fields), make([]string, missing)...)
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

// writeObject writes the line of an object with the added members at its end. Without values, their value is null. It
// writes other lines unchanged.
func (w *Writer) writeObject(line string, values []any) error {
	body := strings.TrimRight(line, jsonSpace)
	if values == nil {
		if _, err := members([]byte(line)); err != nil {
			w.row.WriteString(line)
			w.endLine()
			return nil
		}
		values = make([]any, len(w.added))
	}
	body = strings.TrimRight(strings.TrimSuffix(body, "}"), jsonSpace)
	w.row.WriteString(body)
	encoder := json.NewEncoder(&w.row)
	encoder.SetEscapeHTML(false)
	for i, name := range w.added {
		if i > 0 || !strings.HasSuffix(body, "{") {
			w.row.WriteByte(',')
		}
		for j, part := range []any{name, values[i]} {
			if j > 0 {
				w.row.Truncate(w.row.Len() - 1) // the encoder's end of line
				w.row.WriteByte(':')
			}
			if err := encoder.Encode(part); err != nil {
				return err
			}
		}
		w.row.Truncate(w.row.Len() - 1)
	}
	w.row.WriteString(line[len(body):])
	w.endLine()
	return nil
}

// writeSentence writes the lines of a sentence, with the values as added cells. If a value has as many tokens as the
// sentence, each line gets one of them. Otherwise each line gets the whole value. Without a value, the cell is "_".
func (w *Writer) writeSentence(lines string, values []any) {
	tokens := 0
	for line := range strings.Lines(lines) {
		if w.form.token(strings.TrimSuffix(line, "\n")) != nil {
			tokens++
		}
	}
	var columns [][]string
	for _, value := range values {
		whole := valueField(value)
		column := strings.Fields(whole)
		if len(column) != tokens {
			column = slices.Repeat([]string{joined(whole)}, tokens)
		}
		columns = append(columns, column)
	}
	i := 0 // token
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		token := w.form.token(line) != nil
		if !token && (len(cellsOf(line)) == 0 || w.form.isComment(line)) {
			w.row.WriteString(line)
		} else {
			line = strings.TrimRight(line, " \t")
			separator := " "
			if strings.Contains(line, "\t") {
				separator = "\t"
			}
			w.row.WriteString(line)
			for j := range w.added {
				cell := ""
				if token && values != nil {
					cell = columns[j][i]
				}
				w.row.WriteString(separator + cmp.Or(cell, "_"))
			}
		}
		if token {
			i++
		}
		w.endLine()
	}
}

// mostKey is the longest key in bytes that takenKeys compares. This bounds its time and memory: a longer key has dozens
// of prefixes.
const mostKey = 1 << 10

// takenKeys returns the keys of a file's lines that are one of the names, with or without predicted before them.
func takenKeys(path, encoding string, names []string) ([]string, error) {
	f, err := openTable(path, Options{Encoding: encoding})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := f.objectLines()
	var taken []string
	for {
		line, err := lines.next()
		if err == io.EOF {
			return taken, nil
		}
		if err != nil {
			return nil, tableError(path, err)
		}
		object, _ := members(line)
		for _, m := range object {
			if len(m.key) > mostKey {
				continue
			}
			key := strings.ToLower(strings.TrimSpace(m.key))
			for name, more := key, !slices.Contains(taken, key); more; name, more = strings.CutPrefix(name, predicted) {
				if slices.ContainsFunc(names, func(n string) bool { return sameName(n, name) }) {
					taken = append(taken, key)
					break
				}
			}
		}
	}
}
