// Package table reads columns of TSV, CSV, JSONL and CoNLL files. Read reads all rows of a file. ReadParallel reads
// several files line by line and makes a row of line n of each file. Records reads a file row by row, and its Writer
// writes rows in the same form.
package table

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// Table holds the wanted columns of a file's good rows. The text is in large blocks of memory. Each field needs 4 more
// bytes, and each row too.
type Table struct {
	Name    string      // name of the file, or names of the parallel files
	Header  []string    // names of all columns; for JSONL and CoNLL, only the wanted keys and numbers; nil without a header
	Named   string      // where the names come from, to follow them in a sentence
	Keyed   bool        // the file is JSONL or CoNLL, which has no header
	Guessed bool        // row 0 is the file's first row, and only its unknown names say that it isn't a header
	Columns []int       // index of each wanted column in the file's rows and in the Header, from 0
	SHA256  []string    // hexadecimal SHA-256 of each file
	Bad     []*RowError // the first bad rows, without their Fields
	LeftOut int         // number of bad rows
	Notes   []string    // how the file is read, where that may surprise
	Spans   bool        // the rows had spans of characters, which became tags of words

	rows   int
	fields int      // number of fields per row
	blocks []string // text, at most blockSize bytes each; block i starts at offset i·blockSize
	ends   numbers  // end offset of each field, row by row; a field starts at the end of the field before, or at the start of its block
	lines  numbers  // line on which each row starts, from 1

	replaced int               // wanted field of replace
	replace  map[string]string // texts that Field returns in place of the field's own
}

// A block holds several rows of the maximum size. It is allocated once at its full size, so it is never copied while it
// fills, and no old copies wait for the garbage collector.
const blockSize = 1 << 24

// numbers is a list of numbers in blocks of numberBlock, which are allocated like the blocks of the text.
type numbers [][]uint32

const numberBlock = 1 << 16

func (n *numbers) add(x uint32) {
	last := len(*n) - 1
	switch {
	case last < 0:
		*n, last = numbers{nil}, 0 // grows from nothing, because most tables are small
	case len((*n)[last]) == numberBlock:
		*n, last = append(*n, make([]uint32, 0, numberBlock)), last+1
	}
	(*n)[last] = append((*n)[last], x)
}

func (n numbers) at(i int) uint32 { return n[i/numberBlock][i%numberBlock] }

// fewRows is the least number of rows that shows whether a row is a token or a sentence.
const fewRows = 20

// maxBad is the maximum length of Table.Bad.
const maxBad = 5

// Read reads the wanted columns of a TSV, CSV, fastText, JSONL or CoNLL file.
//
// A file that begins with __label__ is fastText's, unless its first line has a tab or its name ends in .csv. Each line
// is a label and a text, and these are columns 2 and 1.
//
// TSV has no quoting: between tabs, every character stands for itself, unless fields are in quotes: see Options.Quotes.
// CSV follows RFC 4180: a field in quotes may contain separators, line ends and doubled quotes. The separator is the
// comma or the semicolon, whichever is more frequent in the first row, a bar if it divides wanted names, or what a
// first line such as sep=; says. Files named .tsv, .tab or .txt are TSV; .csv files are CSV. A file with another name
// is TSV if its first line has a tab. Otherwise it is CSV if its first row has a comma or a semicolon outside quotes,
// and TSV if it has neither. Lines end in \n or \r\n, and empty lines are skipped. The encoding is UTF-8, with or
// without a byte-order mark, UTF-16 with a mark, or Options.Encoding. The file may be compressed with gzip; an ending
// .gz of its name doesn't count. Rows above a header with all wanted names, among the first ten rows, are left out. If
// the header has one field less than every row, the first column has names of rows, and the header has no name for it.
//
// A field of labels, or of tokens and tags, may be a list as Python and JSON write it, such as ['a', 'b'].
//
// Files named .json, .jsonl or .ndjson are JSONL: each line is an object, and its keys are the columns, in any order.
// If the file begins with [, it is one array of objects, which a Writer writes as lines. A .json file may be an object
// with this array as data. Articles and paragraphs of SQuAD in it are read as their questions, each with its context. A
// value is a string, or a number or boolean, whose JSON text is taken. An array of these is taken as one text: its
// elements, which have no white space, joined with spaces. A row is bad if a wanted key is missing, null or repeated.
// Other keys may have any value.
//
// Files named .conll, .conllu, .conllx, .bio, .iob, .iob2, .iobes or .bioes are CoNLL, which Options.Tagged must allow.
// If it does, a file is also CoNLL if the first cell of its first line is -DOCSTART-. A line has the columns of one
// token, between tabs or else between spaces, and an empty line ends a sentence. A sentence is a row: its tokens,
// joined with spaces, and its tags, joined with spaces. White space inside a token or a tag becomes "_". The tokens are
// in the first column and the tags in the last, or, in .conllu and .conllx, in columns 2 and 4. Options.Columns may
// have other numbers. Lines that begin with -DOCSTART- are skipped. So are comments, which begin with #: all such lines
// in .conllu and .conllx, and in other files, such lines whose number of columns isn't that of the first token, or
// whose last column no other line has. In .conllu and .conllx, multiword ranges and empty nodes are skipped too.
//
// Bad rows (see RowError) are left out and counted. Read returns an error if all rows are bad or, without SkipBad, if
// more than one in a hundred is bad. It also returns an error if a column is missing, if a row has more than 4 MiB, if
// the rows need more memory than there is, if the file has no rows, or if it isn't plain text (such as a directory, a
// pipe or a zip file). All errors name the file.
func Read(path string, o Options) (*Table, error) {
	f, err := openTable(path, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := f.records(o)
	t, err := readAll(path, r, err, f)
	if err != nil && o.Tagged && f.form.gaps {
		return nil, setting.Errorf("%w; if the file has one token per line, let its name end in .conll", err)
	}
	if err == nil && o.Tagged && len(o.Known) == 2 && f.form.layout == delimited && !r.tokens && t.rows >= fewRows {
		return nil, tableError(path, setting.Errorf("each row has only one token, but should have a sentence: if empty lines end sentences, let the file's name end in .conll; otherwise write the tokens of a sentence in one field, with spaces between them, and the tags in another"))
	}
	return t, err
}

// ReadParallel reads files line by line: line n of each file is a column of row n. Encodings, line ends and gzip are
// the same as for Read. A whole line is one field; tabs, commas and quotes are part of it. All files are wanted
// columns, in order: of the Options, ReadParallel uses the roles in Known, but neither names, Columns nor Header. It
// returns the errors of Read, and an error if the files have different numbers of lines.
func ReadParallel(paths []string, o Options) (*Table, error) {
	if o.Join[1]-o.Join[0] > 1 {
		return nil, tableError(strings.Join(paths, ", "), errors.New("several texts per row must be columns of one file: give only this file"))
	}
	lines := &lineRows{}
	var files []*tableFile
	o.Columns, o.Header = []string{}, "no"
	for i, path := range paths {
		f, err := openTable(path, o)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if f.form.layout != delimited {
			return nil, tableError(path, errors.New("it is JSONL or CoNLL, which has sources and answers in one file: give only this file"))
		}
		lines.files = append(lines.files, &lineReader{name: path, in: f.Reader})
		o.Columns = append(o.Columns, fmt.Sprint(i+1))
		files = append(files, f)
	}
	var f form
	if len(files) > 0 {
		f.encoding = files[0].form.encoding
	}
	var r *Records
	err := o.complete()
	if err == nil {
		r, err = newRecords(lines, f, o)
	}
	return readAll(strings.Join(paths, ", "), r, err, files...)
}

// readAll reads all rows of the files into a Table, unless there is an error. The argument name stands for the files in
// errors.
func readAll(name string, r *Records, err error, files ...*tableFile) (*Table, error) {
	if err != nil {
		return nil, tableError(name, err)
	}
	t, err := r.table(files, memory.Free())
	if err != nil {
		return nil, tableError(name, err)
	}
	t.Name, t.Notes = name, r.Notes()
	if rows, ok := r.rows.(*jsonRows); ok && rows.spans != nil {
		t.Spans = rows.spans.rows > 0
	}
	t.Guessed = r.options.Header == "" && t.Header == nil && (t.Bad == nil || t.Bad[0].Line > t.Line(0))
	for _, file := range files {
		t.SHA256 = append(t.SHA256, file.Sum())
	}
	return t, nil
}

// table reads all rows of the files. The rows may need up to free bytes of memory.
func (r *Records) table(files []*tableFile, free int) (*Table, error) {
	var size int64
	for _, f := range files {
		size += f.Size
	}
	t := &Table{Header: r.header, Named: r.form.named(), Keyed: r.form.layout != delimited, Columns: r.columns, fields: len(r.columns)}
	if n := r.options.Join[1] - r.options.Join[0]; n > 1 {
		t.fields -= n - 1
	}
	var block strings.Builder
	block.Grow(int(min(size, blockSize)))
	for {
		next, err := r.next()
		var bad *RowError
		switch {
		case err == io.EOF:
			return t.finish(&block, r.options.SkipBad)
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
				return nil, fmt.Errorf("line %d: the fields up to this line have more than 4 GiB: use a smaller file", next.line)
			}
			t.ends.add(uint32(end))
		}
		t.lines.add(uint32(next.line))
		t.rows++
		full := blockSize*len(t.blocks) + 4*numberBlock*(len(t.ends)+len(t.lines)-2) // memory of full blocks
		if need := full + block.Cap() + t.rows*r.options.RowBytes; need > free {
			return nil, tooLarge(need, free, files)
		}
	}
}

// tooLarge returns the error for rows that need more than the free memory. It estimates the memory of all rows from the
// memory of the rows that have been read.
func tooLarge(need, free int, files []*tableFile) error {
	var size, unread int64
	for _, f := range files {
		size, unread = size+f.Size, unread+f.Unread()
	}
	total := memory.Limit() - free + int(float64(need)*float64(size)/float64(size-unread))
	return fmt.Errorf("its rows take about %s of memory, but there is only %s: use a smaller file", text.Bytes(total), memory.LimitText())
}

// finish adds the last block. It returns an error if there are no rows or too many bad ones.
func (t *Table) finish(block *strings.Builder, skipBad bool) (*Table, error) {
	rows := t.rows + t.LeftOut
	if rows == 0 {
		return nil, errors.New("the file has a header but no rows: use a file with rows")
	}
	if empty := t.rows == 0; empty || 100*t.LeftOut > rows && !skipBad {
		if empty {
			return nil, fmt.Errorf("it has no good row, only %d bad: %s", t.LeftOut, t.Reasons())
		}
		return nil, setting.Errorf("%d of %d rows are bad; without %s, heed leaves out at most one in a hundred: %s", t.LeftOut, rows, skipBadPath, t.Reasons())
	}
	t.blocks = append(t.blocks, strings.Clone(block.String())) // a copy without unused memory
	return t, nil
}

// Reasons lists the lines of the first bad rows, and why they are bad. If several rows have the same reason, Reasons
// writes it once. If all reasons have the same end, Reasons writes it once, too. There must be a bad row.
func (t *Table) Reasons() string {
	var reasons []string
	lines := map[string]string{} // by reason
	for _, b := range t.Bad {
		reason := ": " + b.Err.Error()
		if line := lines[reason]; line == "" {
			reasons = append(reasons, reason)
			lines[reason] = fmt.Sprint("line ", b.Line)
		} else {
			lines[reason] = fmt.Sprint(strings.Replace(line, "line ", "lines ", 1), ", ", b.Line)
		}
	}
	end := reasons[0]
	for _, reason := range reasons[1:] {
		for end != "" && (!strings.HasSuffix(reason, end) || strings.Contains(end, `"`)) { // don't cut texts in quotes
			end = end[1:]
			end = end[strings.IndexAny(end+":", ":;"):]
		}
	}
	for i, reason := range reasons {
		reasons[i] = lines[reason] + strings.TrimSuffix(reason, end)
	}
	list := strings.Join(reasons, "; ") + end
	if t.LeftOut > len(t.Bad) {
		list += "; …"
	}
	return list
}

// ColumnNames returns the names of the wanted columns. Without a header, they are their numbers, from 1.
func (t *Table) ColumnNames() []string {
	names := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		names[i] = strconv.Itoa(column + 1)
		if t.Header != nil {
			names[i] = t.Header[column]
		}
	}
	return names
}

// Len returns the number of good rows.
func (t *Table) Len() int { return t.rows }

// Replace makes Field return the values of a map in place of its keys, in one of a row's wanted fields, counted from 0.
func (t *Table) Replace(field int, texts map[string]string) { t.replaced, t.replace = field, texts }

// Field returns one wanted field, counted from 0, of a row, counted from 0. The string shares the Table's memory, so
// keeping it keeps the whole block.
func (t *Table) Field(row, field int) string {
	i := row*t.fields + field
	end := t.ends.at(i) - 1 // no field is empty
	block := t.blocks[end/blockSize]
	start := end / blockSize * blockSize
	if i > 0 {
		start = max(start, t.ends.at(i-1))
	}
	content := block[start%blockSize : end%blockSize+1]
	if field == t.replaced && t.replace != nil {
		return cmp.Or(t.replace[content], content)
	}
	return content
}

// Line returns the line of the file, from 1, on which a row, counted from 0, starts.
func (t *Table) Line(row int) int { return int(t.lines.at(row)) }
