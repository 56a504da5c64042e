package table

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// form is how a file holds its rows.
type form struct {
	separator rune      // tab is TSV, which has no quoting, comma and semicolon are CSV; 0 makes a line one field
	crlf      bool      // lines end in \r\n
	mark      bool      // there is a byte-order mark
	utf16     byteOrder // nil is UTF-8
}

func (f form) quotes() bool { return f.separator == ',' || f.separator == ';' }

// kind says what rows are of, for errors.
func (f form) kind() string {
	switch f.separator {
	case '\t':
		return "fields between tabs"
	case 0:
		return "whole lines"
	}
	return fmt.Sprintf("fields between %q", f.separator)
}

// append appends text, which is UTF-8, as the file has it.
func (f form) append(to, text []byte) []byte {
	if f.utf16 == nil {
		return append(to, text...)
	}
	for _, r := range string(text) {
		if a, b := utf16.EncodeRune(r); a != utf8.RuneError {
			to = f.utf16.AppendUint16(to, uint16(a))
			r = b
		}
		to = f.utf16.AppendUint16(to, uint16(r))
	}
	return to
}

// utf16Reader reads UTF-16 as UTF-8, in which what isn't UTF-16 is a byte that isn't UTF-8, too.
type utf16Reader struct {
	in    *bufio.Reader
	order byteOrder
	out   []byte // decoded
	err   error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) < len(p) && u.err == nil {
		u.decode()
	}
	n := copy(p, u.out)
	u.out = u.out[:copy(u.out, u.out[n:])]
	if n > 0 {
		return n, nil
	}
	return 0, u.err
}

// decode decodes one character.
func (u *utf16Reader) decode() {
	head, err := u.in.Peek(4)
	if len(head) == 0 {
		u.err = err
		return
	}
	size, r := min(2, len(head)), utf8.RuneError
	bad := size < 2
	if !bad {
		r = rune(u.order.Uint16(head))
		bad = utf16.IsSurrogate(r)
	}
	if bad && len(head) == 4 {
		if r = utf16.DecodeRune(r, rune(u.order.Uint16(head[2:]))); r != utf8.RuneError {
			size, bad = 4, false
		}
	}
	if bad {
		u.out = append(u.out, 0xff)
	} else {
		u.out = utf8.AppendRune(u.out, r)
	}
	u.in.Discard(size)
}

// mark is U+FEFF in UTF-8, which some programs begin files with.
const mark = "\uFEFF"

// tableFile is an open file, as UTF-8 without a mark.
type tableFile struct {
	form  form
	in    *bufio.Reader
	size  int64
	sum   func() string // SHA-256 of what has been read, in hexadecimal
	close func() error
}

// look is how much of a file its form is judged from.
const look = 1 << 16

// openTable opens a file and judges its form.
func openTable(path string) (*tableFile, error) {
	// Before opening: to open a pipe would wait for its writer.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, tableError(path, err)
	case info.IsDir():
		return nil, tableError(path, errors.New("it is a directory: give a file of it"))
	case !info.Mode().IsRegular():
		return nil, tableError(path, errors.New("it isn't a regular file: save it to one first"))
	case info.Size() == 0:
		return nil, tableError(path, errors.New("it is empty: give a file of TSV or CSV with a row at least"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, tableError(path, err)
	}
	sum := sha256.New()
	t, err := newTableFile(filepath.Ext(path), io.TeeReader(f, sum))
	if err != nil {
		f.Close()
		return nil, tableError(path, err)
	}
	t.size, t.close = info.Size(), f.Close
	t.sum = func() string { return fmt.Sprintf("%x", sum.Sum(nil)) }
	return t, nil
}

// tableError names the file that an error is of.
func tableError(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("data file %q: %w", path, err)
}

// newTableFile judges the form of a file by the ending of its name and its first bytes.
func newTableFile(ending string, in io.Reader) (*tableFile, error) {
	t := &tableFile{in: bufio.NewReaderSize(in, look)}
	head, err := t.in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return nil, errors.New("it is compressed: gunzip it first")
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return nil, errors.New("it is a zip file, as Excel's .xlsx are: unpack it, or save the sheet as CSV")
	case bytes.HasPrefix(head, []byte(mark)):
		t.form.mark = true
		t.in.Discard(len(mark))
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		t.form.mark, t.form.utf16 = true, binary.LittleEndian
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		t.form.mark, t.form.utf16 = true, binary.BigEndian
	}
	if t.form.utf16 != nil {
		t.in.Discard(2)
		t.in = bufio.NewReaderSize(&utf16Reader{in: t.in, order: t.form.utf16}, look)
	}
	head, err = t.in.Peek(look - 4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, errors.New("it has NUL bytes: it isn't text, or UTF-16 without a byte-order mark: save it as UTF-8")
	}
	head = bytes.TrimLeft(head, "\r\n")
	first, _, more := bytes.Cut(head, []byte("\n"))
	if !more && bytes.Contains(bytes.TrimRight(first, "\r"), []byte("\r")) {
		return nil, errors.New("its lines end in \\r alone: save it with \\n or \\r\\n")
	}
	windows := bytes.Count(head, []byte("\r\n"))
	t.form.crlf = windows > 0 && 2*windows >= bytes.Count(head, []byte("\n")) // there may be others within quotes
	t.form.separator, err = separator(strings.ToLower(ending), head)
	return t, err
}

// separator returns what separates the fields of a file, by the ending of its name and its first row.
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
		return 0, errors.New("it is JSON, which isn't read: make it TSV or CSV")
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
