package table

import (
	"fmt"

	"github.com/heed-go/heed/internal/textfile"
)

// layout says what a row of a file is.
type layout int

const (
	delimited layout = iota // TSV or CSV
	objects                 // JSONL: a line with an object
	sentences               // CoNLL: the lines of a sentence's tokens
)

// form describes the format of a file.
type form struct {
	layout    layout
	universal bool            // CoNLL-U
	columns   int             // for CoNLL: number of cells in the first token's line
	lasts     map[string]bool // for CoNLL: last cells at the beginning of the file
	separator rune            // '\t' for TSV; ',', ';' or '|' for CSV; 0 if a whole line is one field
	crlf      bool            // lines end in \r\n
	array     bool            // JSON: the objects are elements of an array
	before    string          // JSON: beginning of an object that has the array, with its bracket
	labelled  bool            // fastText: each line has a label before its text
	gaps      bool            // TSV or CSV with empty lines between rows
	mark      bool            // the file has a byte-order mark
	encoding  textfile.Encoding
	shape     // of TSV and CSV
}

// quotes reports whether fields may be in quotes, which they may not in TSV, unless it is quoted.
func (f form) quotes() bool { return f.separator != '\t' && f.separator != 0 || f.quoted }

// String returns TSV, CSV, JSONL or CoNLL: the form in which a Writer writes the rows.
func (f form) String() string {
	switch {
	case f.layout == objects:
		return "JSONL"
	case f.layout == sentences:
		return "CoNLL"
	case f.separator != '\t' && f.separator != 0:
		return "CSV"
	}
	return "TSV"
}

// separated says how a row is divided into fields, for errors.
func (f form) separated() string {
	switch f.separator {
	case '\t':
		if f.labelled {
			return "a label and its text"
		}
		return "fields between tabs"
	case 0:
		return "whole lines"
	}
	return fmt.Sprintf("fields between %q", f.separator)
}

// named says where the names of columns come from.
func (f form) named() string {
	switch f.layout {
	case objects:
		return ", keys of each line"
	case sentences:
		return " of each token's line"
	}
	return ", named in the header"
}

// shape is what the first rows of a TSV or CSV file have in common.
type shape struct {
	above    int    // number of rows above the header, or above the first row
	usual    int    // number of fields that most rows have; 0 if it isn't known
	rowNames bool   // the first column has names of rows, for which the header has no field
	quoted   bool   // TSV with fields in quotes, which is read as CSV with tabs
	titles   string // the fields of a first row that looks like a header of unknown names; empty if it doesn't
}
