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

	"github.com/heed-go/heed/internal/setting"
)

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// form describes the format of a file.
type form struct {
	separator rune      // '\t' for TSV, which has no quoting; ',' or ';' for CSV; 0 if a whole line is one field
	crlf      bool      // lines end in \r\n
	mark      bool      // the file has a byte-order mark
	utf16     byteOrder // byte order of UTF-16; nil for UTF-8
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

// append converts UTF-8 text to the file's encoding and appends it to out.
func (f form) append(out, text []byte) []byte {
	if f.utf16 == nil {
		return append(out, text...)
	}
	for _, r := range string(text) {
		if a, b := utf16.EncodeRune(r); a != utf8.RuneError {
			out = f.utf16.AppendUint16(out, uint16(a))
			r = b
		}
		out = f.utf16.AppendUint16(out, uint16(r))
	}
	return out
}

// utf16Reader converts UTF-16 to UTF-8. For invalid UTF-16, it returns the byte 0xff, which is invalid UTF-8.
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

// mark is the byte-order mark U+FEFF in UTF-8. Some programs write it at the start of a file.
const mark = "\uFEFF"

// tableFile is an open file. It is read as UTF-8 without a byte-order mark.
type tableFile struct {
	form  form
	in    *bufio.Reader
	size  int64
	sum   func() string // SHA-256 of the bytes read so far, in hexadecimal
	close func() error
}

// look is the number of bytes at the start of a file that decide its form.
const look = 1 << 16

// openTable opens a file and detects its form.
func openTable(path string) (*tableFile, error) {
	// Check first: opening a pipe would wait for its writer.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, tableError(path, err)
	case info.IsDir():
		return nil, tableError(path, errors.New("it is a directory: use a file inside it"))
	case !info.Mode().IsRegular():
		return nil, tableError(path, errors.New("it isn't a regular file: copy it to a regular file first"))
	case info.Size() == 0:
		return nil, tableError(path, errors.New("it is empty: use a TSV or CSV file with at least one row"))
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

// newTableFile detects the form of a file from the extension of its name and its first bytes.
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
		return nil, errors.New("it is a zip file, such as Excel's .xlsx: unpack it, or save the sheet as CSV")
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
		return nil, errors.New("it has NUL bytes, so it isn't text, or it is UTF-16 without a byte-order mark: save it as UTF-8")
	}
	head = bytes.TrimLeft(head, "\r\n")
	first, _, more := bytes.Cut(head, []byte("\n"))
	if !more && bytes.Contains(bytes.TrimRight(first, "\r"), []byte("\r")) {
		return nil, errors.New("its lines end in \\r only: save it with \\n or \\r\\n")
	}
	windows := bytes.Count(head, []byte("\r\n"))
	t.form.crlf = windows > 0 && 2*windows >= bytes.Count(head, []byte("\n")) // line ends within quotes may differ
	t.form.separator, err = separator(strings.ToLower(ending), head)
	return t, err
}

// separator returns the separator of the fields, from the lower-case extension of the file's name and the first row.
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
