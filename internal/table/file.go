package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/textfile"
)

// form describes the format of a file.
type form struct {
	separator rune // '\t' for TSV, which has no quoting; ',' or ';' for CSV; 0 if a whole line is one field
	crlf      bool // lines end in \r\n
	mark      bool // the file has a byte-order mark
	encoding  textfile.Encoding
}

func (f form) quotes() bool { return f.separator == ',' || f.separator == ';' }

// kind describes the fields of a row, for errors.
func (f form) kind() string {
	switch f.separator {
	case '\t':
		return "fields between tabs"
	case 0:
		return "whole lines"
	}
	return fmt.Sprintf("fields between %q", f.separator)
}

// mark is a byte-order mark.
const mark = textfile.Mark

// tableFile is an open file. It is read as UTF-8 without a byte-order mark.
type tableFile struct {
	form  form
	in    *bufio.Reader
	size  int64         // bytes on disk
	sum   func() string // SHA-256 of the file on disk, in hexadecimal; only after it has been read to its end
	close func() error
}

// look is the number of bytes at the start of a file that decide its form.
const look = textfile.Buffer

// openTable opens a file and detects its form. The argument encoding is the name of the encoding; empty means UTF-8.
func openTable(path, encoding string) (*tableFile, error) {
	f, err := textfile.Open(path, encoding)
	if err != nil {
		return nil, tableError(path, err)
	}
	t, err := newTableFile(textfile.Ending(path), f)
	if err != nil {
		f.Close()
		return nil, tableError(path, err)
	}
	return t, nil
}

// tableError returns err with the path of its file. A *setting.Error stays one.
func tableError(path string, err error) error {
	if wrong := new(setting.Error); errors.As(err, &wrong) {
		return setting.Errorf("data file %q: %w", path, wrong)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("data file %q: %w", path, err)
}

// newTableFile detects the form of a file from the ending of its name and its first bytes.
func newTableFile(ending string, f *textfile.File) (*tableFile, error) {
	t := &tableFile{form: form{mark: f.Mark, encoding: f.Encoding}, in: f.Reader, size: f.Size, sum: f.Sum, close: f.Close}
	head, err := t.in.Peek(look)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, errors.New("it has NUL bytes, so it isn't text, or it is UTF-16 without a byte-order mark: save it as UTF-8, or give its encoding, such as --encoding utf-16le")
	}
	head = bytes.TrimLeft(head, "\r\n")
	first, _, more := bytes.Cut(head, []byte("\n"))
	if !more && bytes.Contains(bytes.TrimRight(first, "\r"), []byte("\r")) {
		return nil, errors.New("its lines end in \\r only: save it with \\n or \\r\\n")
	}
	windows := bytes.Count(head, []byte("\r\n"))
	t.form.crlf = windows > 0 && 2*windows >= bytes.Count(head, []byte("\n")) // line ends within quotes may differ
	t.form.separator, err = separator(ending, head)
	return t, err
}

// separator returns the separator of the fields, from the ending of the file's name and the first row.
func separator(ending string, head []byte) (rune, error) {
	commas, semicolons, quoted := 0, 0, false
	for _, c := range head {
		if c == '\n' && !quoted {
			break
		}
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			commas++
		case c == ';':
			semicolons++
		}
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	switch ending {
	case ".json", ".jsonl", ".ndjson":
		return 0, errors.New("it is JSON, which heed can't read: convert it to TSV or CSV")
	case ".tsv", ".tab", ".txt":
		return '\t', nil
	case ".csv":
	default:
		if bytes.IndexByte(first, '\t') >= 0 || commas+semicolons == 0 {
			return '\t', nil
		}
	}
	if semicolons > commas {
		return ';', nil
	}
	return ',', nil
}
