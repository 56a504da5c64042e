// Package textfile opens files of text, whether they are compressed with gzip, begin with a byte-order mark, or have
// an encoding other than UTF-8. They are read as UTF-8.
package textfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// Mark is the byte-order mark U+FEFF in UTF-8. Some programs write it at the start of a file.
const Mark = "\uFEFF"

// Buffer is the number of bytes at the start of a File that Peek can return.
const Buffer = 1 << 16

// A File is an open file. It is read as UTF-8 without gzip and without a byte-order mark. A byte that isn't part of a
// character is read as it is if the file is UTF-8, and otherwise as 0xff.
type File struct {
	*bufio.Reader
	Encoding Encoding
	Mark     bool     // whether the file begins with a byte-order mark
	Plain    *os.File // the file itself if it is UTF-8 without gzip; otherwise nil
	Size     int64    // number of bytes on disk

	file    *os.File
	unread  *io.LimitedReader // bytes on disk
	sum     hash.Hash
	decoder *decoder // nil for UTF-8
}

// Open opens a file. The argument encoding is a name that Named knows. A byte-order mark overrides it.
//
// Open returns an error if the file isn't a regular file, is empty, is a zip file or, with another encoding, is clearly
// UTF-8. Reading returns an error if gzip data are damaged, incomplete or larger than a text can be. If the file
// grows, the File still ends at the size that Open found, so a program that appends to the file can't make it endless.
func Open(path, encoding string) (*File, error) {
	if _, err := Named(encoding); err != nil {
		return nil, err
	}
	// Check first: opening a pipe would wait for its writer.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory: use a file inside it")
	case !info.Mode().IsRegular():
		return nil, errors.New("it isn't a regular file: copy it to a regular file first")
	case info.Size() == 0:
		return nil, errors.New("it is empty")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := New(file, info.Size(), encoding)
	if err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

// New returns a File that reads content, which has size bytes. It returns those errors of Open that come from the
// encoding or the content.
func New(content io.Reader, size int64, encoding string) (*File, error) {
	e, err := Named(encoding)
	if err != nil {
		return nil, err
	}
	f := &File{Encoding: e, Size: size}
	f.file, _ = content.(*os.File)
	return f, f.start(content)
}

// Ending returns the ending of a file's name in lower case, such as .csv. The ending .gz doesn't count.
func Ending(path string) string {
	return filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz"))
}

// IsJSONL reports whether a text is JSONL, by the ending of its file's name.
func IsJSONL(path string) bool {
	ending := Ending(path)
	return ending == ".jsonl" || ending == ".ndjson"
}

// binaries are files with rows or texts that aren't plain text: their first bytes, and how to convert them.
var binaries = []struct{ magic, what string }{
	{"PK\x03\x04", "it is a zip file, such as Excel's .xlsx: unpack it, or save the sheet as CSV"},
	{"\xd0\xcf\x11\xe0", "it is a file of Excel or Word, .xls or .doc: save the sheet as CSV, or the document as text"},
	{"PAR1", "it is Parquet: make a CSV of it, for example with pandas.read_parquet(FILE).to_csv(\"FILE.csv\", index=False)"},
	{"ARROW1", "it is Arrow or Feather: make a CSV of it, for example with pandas.read_feather(FILE).to_csv(\"FILE.csv\", index=False)"},
	{"SQLite format 3\x00", "it is a database of SQLite: make a CSV of a table, with sqlite3 -header -csv FILE 'SELECT * FROM t' > FILE.csv"},
	{"%PDF-", "it is PDF: save its text"},
}

// start detects gzip and the byte-order mark.
func (f *File) start(content io.Reader) error {
	f.sum, f.unread = sha256.New(), &io.LimitedReader{R: content, N: f.Size}
	f.Reader = bufio.NewReaderSize(io.TeeReader(f.unread, f.sum), Buffer)
	const magic = "\x1f\x8b"
	packed := f.begins(magic)
	if packed {
		z, err := gzip.NewReader(f.Reader)
		if err != nil {
			return damaged(err)
		}
		text := &inflated{z, max(mostInflated, mostRatio*f.Size)}
		if f.ending() > text.left { // find out without keeping rows in memory
			if _, err := io.Copy(io.Discard, text); err != nil {
				return err
			}
		}
		f.Reader = bufio.NewReaderSize(text, Buffer)
		if f.begins(magic) {
			return errors.New("it is gzip within gzip: gunzip it once")
		}
	}
	skipped := 0
	for _, m := range []struct{ mark, encoding string }{{Mark, ""}, {"\xff\xfe", "utf-16le"}, {"\xfe\xff", "utf-16be"}} {
		if f.begins(m.mark) {
			f.Mark = true
			skipped, _ = f.Discard(len(m.mark))
			var err error
			if f.Encoding, err = Named(m.encoding); err != nil {
				return err
			}
			break
		}
	}
	for _, b := range binaries {
		if f.begins(b.magic) {
			return errors.New(b.what)
		}
	}
	if !f.Encoding.UTF8() {
		if head, _ := f.Peek(Buffer); !f.Mark && looksUTF8(head) { // an error occurs again when the file is read
			return fmt.Errorf("it is UTF-8, not %s: give --encoding utf-8", f.Encoding)
		}
		f.decoder = &decoder{Transformer: f.Encoding.coding.NewDecoder(), lost: f.Encoding.lost, offset: int64(skipped), bad: -1}
		f.Reader = bufio.NewReaderSize(transform.NewReader(f.Reader, f.decoder), Buffer)
	} else if !packed {
		f.Plain = f.file
	}
	_, err := f.Peek(1)
	if err == io.EOF {
		return nil
	}
	return err
}

// ending returns the size of the text that a gzip file gives at its end, or 0 if it isn't known. The size may be wrong,
// if the file is damaged, or has several parts or more than 4 GiB of text.
func (f *File) ending() int64 {
	var size [4]byte
	if f.file == nil || f.Size < int64(len(size)) {
		return 0
	}
	if _, err := f.file.ReadAt(size[:], f.Size-int64(len(size))); err != nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(size[:]))
}

// looksUTF8 reports whether the head of a file is UTF-8 with at least three characters that aren't ASCII. Text in other
// encodings hardly ever looks like this.
func looksUTF8(head []byte) bool {
	found := 0
	for len(head) > 0 && utf8.FullRune(head) {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 {
			return false
		}
		if n > 1 {
			found++
		}
		head = head[n:]
	}
	return found >= 3
}

// begins reports whether the unread part begins with s.
func (f *File) begins(s string) bool {
	head, _ := f.Peek(len(s)) // an error occurs again when the file is read
	return bytes.HasPrefix(head, []byte(s))
}

// Sum returns the SHA-256 of the file on disk, in hexadecimal. The File must have been read to its end.
func (f *File) Sum() string { return fmt.Sprintf("%x", f.sum.Sum(nil)) }

// Unread returns how many bytes on disk haven't been read yet.
func (f *File) Unread() int64 { return f.unread.N }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// A gzip file may hold up to mostInflated bytes of text, or mostRatio times its own size if that is more. Text rarely
// shrinks to less than a twentieth.
const (
	mostInflated = 1 << 28
	mostRatio    = 100
)

// inflated reads gzip data, but at most left bytes.
type inflated struct {
	in   io.Reader
	left int64
}

func (z *inflated) Read(p []byte) (int, error) {
	n, err := z.in.Read(p)
	if z.left -= int64(n); z.left < 0 {
		return 0, fmt.Errorf("its gzip data have more than %d MiB and more than %d times the size of the file: if this is right, gunzip it first", mostInflated>>20, mostRatio)
	}
	return n, damaged(err)
}

// damaged returns err, an error of reading gzip data, with its likely cause.
func damaged(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return fmt.Errorf("its gzip data are damaged or incomplete: %w", err)
}
