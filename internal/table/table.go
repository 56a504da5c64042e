// Package table reads columns of TSV and CSV files. Read takes all rows, and ReadParallel the lines of files that
// belong together line by line. A Records reads such a file row by row, and writes it back.
package table

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Table holds the wanted columns of all good rows of a file, one after the other in large blocks of memory, with four
// bytes a field and four a row beside the text.
type Table struct {
	Header  []string    // the names of all columns of the file; nil if it has no header
	Columns []int       // the places of the wanted columns among them, from 0
	SHA256  []string    // of the bytes of each file that was read, in hexadecimal
	Bad     []*RowError // the first bad rows, without their Fields
	LeftOut int         // how many bad rows there are

	blocks []string // of at most blockSize, at multiples of which they start
	ends   []uint32 // of each field, row by row; a field starts where the one before it ends, or its block starts
	lines  []uint32
}

// blockSize is room for several of the longest rows. A block grows into no other, so that nothing is copied, and what
// the garbage collector takes for the heap is what there is.
const blockSize = 1 << 24

// maxBad is how many bad rows a Table has.
const maxBad = 5

// Read reads the wanted columns of a file of TSV or CSV.
//
// TSV has no quoting: between tabs, every character stands for itself. CSV is as RFC 4180 has it: a field in quotes may
// have separators, ends of lines and doubled quotes. It is separated by commas or by semicolons, whichever the first
// row has more of. The ending of the name says which it is, .tsv, .tab and .txt the one and .csv the other. Under other
// names a tab in the first line makes it TSV, and else a comma or a semicolon CSV. Lines end in \n or \r\n, and empty
// ones are no rows. The encoding is UTF-8, with or without a byte-order mark, or UTF-16 with one.
//
// Bad rows, which RowError tells of, are left out and counted. More than one in a hundred is an error, and so
// are a column that isn't there, a row of more than 4 MiB, a file without rows, and one that is no such file, such as a
// directory, a pipe or a compressed file. All errors name the file.
func Read(path string, o Options) (*Table, error) {
	f, err := openTable(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	r, err := newRecords(f.rows(), f.form, o)
	if err != nil {
		return nil, tableError(path, err)
	}
	t, err := r.table(f.size)
	if err != nil {
		return nil, tableError(path, err)
	}
	t.SHA256 = []string{f.sum()}
	return t, nil
}

// ReadParallel reads files line by line: line n of each file is a column of row n. Files are text as Read has it,
// whose lines are whole fields, tabs, commas and quotes included; check is as in Options. It is an error if one
// file has more lines than another.
func ReadParallel(paths []string, check func(fields []string) error) (*Table, error) {
	lines := &lineRows{}
	var files []*tableFile
	var columns []string
	var size int64
	for i, path := range paths {
		f, err := openTable(path)
		if err != nil {
			return nil, err
		}
		defer f.close()
		lines.files = append(lines.files, &lineReader{name: path, in: f.in})
		columns = append(columns, fmt.Sprint(i+1))
		files = append(files, f)
		size += f.size
	}
	name := strings.Join(paths, ", ")
	r, err := newRecords(lines, form{}, Options{Columns: columns, Check: check})
	if err != nil {
		return nil, tableError(name, err)
	}
	t, err := r.table(size)
	if err != nil {
		return nil, tableError(name, err)
	}
	for _, f := range files {
		t.SHA256 = append(t.SHA256, f.sum())
	}
	return t, nil
}

// table reads all rows of files of so many bytes.
func (r *Records) table(size int64) (*Table, error) {
	t := &Table{Header: r.header, Columns: r.columns}
	var block strings.Builder
	block.Grow(int(min(size, blockSize)))
	for {
		next, err := r.next()
		var bad *RowError
		switch {
		case err == io.EOF:
			return t.finish(&block)
		case errors.As(err, &bad):
			if bad.Fields = nil; len(t.Bad) < maxBad {
				t.Bad = append(t.Bad, bad)
			}
			t.LeftOut += bad.rows
			continue
		case err != nil:
			return nil, err
		}
		for _, field := range r.wanted {
			if block.Len()+len(field) > blockSize {
				t.blocks = append(t.blocks, block.String())
				block = strings.Builder{}
				block.Grow(blockSize)
			}
			block.WriteString(field)
			end := blockSize*uint64(len(t.blocks)) + uint64(block.Len())
			if end > math.MaxUint32 || uint64(next.line) > math.MaxUint32 {
				return nil, fmt.Errorf("line %d: up to here it has more than 4 GiB: give a smaller file", next.line)
			}
			t.ends = append(t.ends, uint32(end))
		}
		t.lines = append(t.lines, uint32(next.line))
	}
}

// finish takes the last block, unless too many rows are bad.
func (t *Table) finish(block *strings.Builder) (*Table, error) {
	rows := len(t.lines) + t.LeftOut
	if rows == 0 {
		return nil, errors.New("it has a header and no rows: give a file with some")
	}
	if 100*t.LeftOut > rows {
		bad := make([]string, len(t.Bad), maxBad+1)
		for i, b := range t.Bad {
			bad[i] = b.Error()
		}
		if t.LeftOut > len(bad) {
			bad = append(bad, "…")
		}
		return nil, fmt.Errorf("%d of %d rows are bad, and more than one in a hundred is too many: %s", t.LeftOut, rows, strings.Join(bad, "; "))
	}
	t.blocks = append(t.blocks, strings.Clone(block.String())) // without room for more
	return t, nil
}

// Len returns the number of good rows.
func (t *Table) Len() int { return len(t.lines) }

// Field returns a wanted column, counted from 0, of a row, counted from 0. It is a part of the Table's memory.
func (t *Table) Field(row, column int) string {
	i := row*len(t.Columns) + column
	end := t.ends[i] - 1 // no field is empty
	block := t.blocks[end/blockSize]
	start := end / blockSize * blockSize
	if i > 0 {
		start = max(start, t.ends[i-1])
	}
	return block[start%blockSize : end%blockSize+1]
}

// Line returns the line of the file, from 1, that a row, counted from 0, starts on.
func (t *Table) Line(row int) int { return int(t.lines[row]) }
