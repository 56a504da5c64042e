package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// row has the fields of one row, which the next row overwrites, and the line on which the row starts, from 1.
type row struct {
	fields []string
	line   int
}

// rowSource reads rows until io.EOF. It skips empty lines. After a *RowError, the next row can still be read.
type rowSource interface{ next() (row, error) }

// maxRow is the maximum size of a row in bytes. It bounds memory if a quote is never closed or the file isn't a table.
const maxRow = 4 << 20

var errTooLong = fmt.Errorf("the row that starts here has more than %d MiB: check that the file is a table and that all quotes are closed", maxRow>>20)

// csvRows reads CSV.
type csvRows struct {
	in   capped
	csv  *csv.Reader
	line int // last line of the last row
}

// capped returns errTooLong after it has read left bytes.
type capped struct {
	in   io.Reader
	left int
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooLong
	}
	n, err := c.in.Read(p)
	c.left -= n
	return n, err
}

func (c *csvRows) next() (row, error) {
	c.in.left = maxRow
	fields, err := c.csv.Read()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		// A quote that is never closed includes all lines up to the next quote, which may be several rows.
		c.line = bad.Line
		return row{}, &RowError{Line: bad.StartLine, Err: fmt.Errorf("not CSV: %w", bad.Err), rows: bad.Line - bad.StartLine + 1}
	case errors.Is(err, errTooLong):
		return row{}, fmt.Errorf("line %d: %w", c.line+1, err)
	case err != nil:
		return row{}, err
	}
	first, _ := c.csv.FieldPos(0)
	last := len(fields) - 1
	c.line, _ = c.csv.FieldPos(last)
	c.line += strings.Count(fields[last], "\n")
	return row{fields, first}, nil
}

// lineRows reads rows that are lines: lines of one file, with tabs between the fields, or lines of several files, one
// field from each file.
type lineRows struct {
	files  []*lineReader
	tabs   bool
	fields []string
}

func (l *lineRows) next() (row, error) {
	for {
		l.fields = l.fields[:0]
		ended, size := 0, 0
		for _, f := range l.files {
			line, err := f.next()
			if err == io.EOF {
				ended++
			} else if err != nil {
				return row{}, err
			}
			size += len(line)
			l.fields = append(l.fields, string(line))
		}
		switch {
		case ended == len(l.files):
			return row{}, io.EOF
		case ended > 0:
			return row{}, l.uneven()
		case size > 0:
			if l.tabs { // there is only one file
				line := l.fields[0]
				l.fields = l.fields[:0]
				for field := range strings.SplitSeq(line, "\t") {
					l.fields = append(l.fields, field)
				}
			}
			return row{l.fields, l.files[0].lines}, nil
		}
	}
}

// uneven returns the error for files with different numbers of lines.
func (l *lineRows) uneven() error {
	var counts []string
	for _, f := range l.files {
		for {
			if _, err := f.next(); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
		}
		counts = append(counts, fmt.Sprintf("%q has %d", f.name, f.lines))
	}
	return fmt.Errorf("the files must have the same number of lines, because row n is line n of each file: %s", strings.Join(counts, ", "))
}

// lineReader reads lines without their ends.
type lineReader struct {
	name  string
	in    *bufio.Reader
	lines int // number of lines read so far
	long  []byte
}

// next returns the next line, or io.EOF. The following call overwrites the line.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.long = l.long[:0]
		for err == bufio.ErrBufferFull && len(l.long) <= maxRow {
			l.long = append(l.long, line...)
			line, err = l.in.ReadSlice('\n')
		}
		l.long = append(l.long, line...)
		line = l.long
	}
	if len(line) > maxRow {
		return nil, fmt.Errorf("line %d: %w", l.lines+1, errTooLong)
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, err
	}
	l.lines++
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// A RowError describes a bad row: a wanted field is missing, empty or not text, the row can't be split into fields, it
// repeats the header, has more fields than the header or, without a header, than other rows, or Options.Check returned
// an error.
type RowError struct {
	Line   int      // line of the file on which the row starts, from 1
	Fields []string // all fields of the row, valid until the next Read; nil if the row can't be split into fields
	Err    error
	rows   int // number of rows that may be lost with it, at least 1
}

func (e *RowError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason why the row is bad.
func (e *RowError) Unwrap() error { return e.Err }
