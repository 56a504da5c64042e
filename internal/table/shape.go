package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"slices"
	"strconv"
	"strings"
)

const (
	shapeRows  = 200 // number of rows that decide the shape
	headerRows = 10  // number of rows among which the header is
)

// rowsOf returns the first rows of a file's start. A row that can't be split is nil. If the start is cut, it leaves out
// the last row.
func (f form) rowsOf(start []byte, cut bool) (found [][]string) {
	in := lineReader{in: bufio.NewReader(bytes.NewReader(start))}
	source := f.delimitedRows(in, Column{})
	for len(found) < shapeRows {
		next, err := source.next()
		if err != nil && !errors.As(err, new(*RowError)) {
			break
		}
		found = append(found, slices.Clone(next.fields))
	}
	if cut && len(found) > 1 && len(found) < shapeRows {
		found = found[:len(found)-1]
	}
	return found
}

// delimitedRows returns a reader of the rows of TSV or CSV, or of fastText, whose labels are as the column says.
func (f form) delimitedRows(lines lineReader, label Column) rowSource {
	if f.labelled {
		return &fastTextRows{lines, label}
	}
	if !f.quotes() {
		return &lineRows{files: []*lineReader{&lines}, tabs: true}
	}
	c := &csvRows{in: capped{in: lines.in}}
	c.csv = csv.NewReader(&c.in)
	c.csv.Comma, c.csv.FieldsPerRecord, c.csv.ReuseRecord = f.separator, -1, true
	return c
}

// look sets the shape of a TSV or CSV file from its start.
func (f *form) look(start []byte, cut bool, o Options) {
	found := f.rowsOf(start, cut)
	if f.separator == '\t' && !f.labelled && o.Quotes != "no" && quoted(found) {
		f.quoted = true
		if split := f.rowsOf(start, cut); slices.ContainsFunc(split, func(row []string) bool { return row == nil }) {
			f.quoted = false // a field begins with quotes and goes on after them
		} else {
			found = split
		}
	}
	found = found[min(f.above, len(found)):] // without the line that names the separator
	header := o.headerAmong(found[:min(len(found), headerRows)])
	f.above += max(0, header)
	if found = found[max(0, header):]; len(found) < 2 {
		return
	}
	counts, names := map[int]int{}, map[string]bool{}
	full := false    // whether a last field isn't empty: an empty one in each row isn't one more
	numbered := true // whether the rows begin with their numbers, as R names them
	if header < 0 {
		counts[len(found[0])]++
	}
	for i, row := range found[1:] {
		n := len(row)
		counts[n]++
		if n > 0 {
			names[row[0]] = true
			full = full || row[n-1] != ""
		}
		numbered = numbered && n > 0 && row[0] == strconv.Itoa(i+1)
	}
	for n, count := range counts {
		if count > counts[f.usual] || count == counts[f.usual] && n > f.usual {
			f.usual = n
		}
	}
	if header < 0 && f.usual == len(found[0]) && titles(found) {
		f.titles = listed(found[0])
	}
	rows := len(found) - 1
	distinct := full && rows > 1 && len(names) == rows
	f.rowNames = o.Header != "no" && counts[len(found[0])+1] == rows && (distinct || numbered)
}

// quoted reports whether the fields of TSV may be in quotes: all fields of the first row, or most of a column, where
// a field with a line end makes two rows.
func quoted(found [][]string) bool {
	if len(found) == 0 {
		return false
	}
	begins := func(s string) bool { return strings.HasPrefix(s, `"`) }
	if len(found[0]) > 1 && !slices.ContainsFunc(found[0], func(s string) bool { return !begins(s) || !strings.HasSuffix(s, `"`) }) {
		return true
	}
	for column := range found[0] {
		with, filled := 0, 0
		for _, row := range found[1:] {
			if column < len(row) && row[column] != "" {
				filled++
				if begins(row[column]) {
					with++
				}
			}
		}
		if with >= 3 && 5*with >= 4*filled {
			return true
		}
	}
	return false
}

// titles reports whether the first row looks like a header: all of its fields may be names, and there is a column where
// hardly any other field may be one, because they are numbers or have several words.
func titles(found [][]string) bool {
	first := found[0]
	if slices.ContainsFunc(first, func(s string) bool { return !mayName(s) }) {
		return false
	}
	for column := range first {
		names, others := 0, 0
		for _, row := range found[1:] {
			switch {
			case column >= len(row) || row[column] == "":
			case mayName(row[column]):
				names++
			default:
				others++
			}
		}
		if others > 1 && 10*names <= others {
			return true
		}
	}
	return false
}

// separatorLine returns the separator that Excel's first line names: sep=; or "sep=;".
func separatorLine(line []byte) (separator rune, ok bool) {
	s := strings.Trim(strings.TrimRight(string(line), "\r"), `"`)
	if len(s) != 5 || !strings.EqualFold(s[:4], "sep=") || !strings.Contains("\t,;|", s[4:]) {
		return 0, false
	}
	return rune(s[4]), true
}

// headerAmong returns the index of the first row that names all wanted columns, or -1. If only one column is wanted,
// the rows above the header must be comments or have fewer texts, because the name may be a text like any other.
func (o Options) headerAmong(found [][]string) int {
	for i, row := range found {
		title := func(above []string) bool {
			return strings.HasPrefix(strings.Join(above, ""), "#") || texts(above) < texts(row)
		}
		if o.isHeader(row) && (len(o.Known) > 1 || !slices.ContainsFunc(found[:i], func(above []string) bool { return !title(above) })) {
			return i
		}
	}
	return -1
}

// texts returns the number of fields that aren't empty.
func texts(row []string) (n int) {
	for _, field := range row {
		if field != "" {
			n++
		}
	}
	return n
}
