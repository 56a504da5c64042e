package safetensors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/memory"
)

// ReadFile reads the file at path, like Read. It must be a regular file.
func ReadFile(path string) ([]Tensor, map[string]string, error) {
	f, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	tensors, err := f.Tensors(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return tensors, f.Metadata, nil
}

// Read reads a whole file of size bytes from r. It returns the errors of NewFile and File.Tensors. The metadata is nil
// if the file has none.
func Read(r io.Reader, size int64) ([]Tensor, map[string]string, error) {
	f, err := NewFile(r, size)
	if err != nil {
		return nil, nil, err
	}
	tensors, err := f.Tensors(nil)
	return tensors, f.Metadata, err
}

// A File is a file whose header has been read. If Open made it, call Close.
type File struct {
	Entries  []Entry           // in the order of their values in the file
	Metadata map[string]string // nil if the file has none
	Checksum string            // checksum stored in the file, which Tensors verifies; empty if there is none

	closer io.Closer
	r      io.Reader // positioned at the first value
	plain  io.Reader // r without the hash
	hash   hash.Hash // hash of the bytes read so far
}

// Open reads the header of the file at path, like NewFile. It must be a regular file. Errors name the path.
func Open(path string) (*File, error) {
	return open(path, os.Stat, func(path string) (fs.File, error) { return os.Open(path) })
}

// OpenFS is like Open for a file in fsys.
func OpenFS(fsys fs.FS, name string) (*File, error) {
	return open(name, func(name string) (fs.FileInfo, error) { return fs.Stat(fsys, name) }, fsys.Open)
}

func open(path string, stat func(string) (fs.FileInfo, error), open func(string) (fs.File, error)) (*File, error) {
	info, err := stat(path) // before opening, because opening a pipe waits for its writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: expected a regular file, got %v", path, ErrFormat, info.Mode())
	}
	opened, err := open(path)
	if err != nil {
		return nil, err
	}
	var f *File
	if info, err = opened.Stat(); err == nil { // again, because a different file may have replaced the first one
		f, err = NewFile(opened, info.Size())
	}
	if err != nil {
		opened.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.closer = opened
	return f, nil
}

// Close closes the file that Open opened.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// NewFile reads the header of a file of size bytes from r.
//
// If the file violates the format, the error wraps ErrFormat and names the wrong part, what NewFile expected and what
// it found. Violations are a header longer than 100 MB or than the file, malformed JSON, a repeated name or key,
// metadata that aren't strings, a shape that overflows or disagrees with its offsets, and values that overlap, leave
// holes or don't fill the rest of the file exactly. NewFile also refuses unknown fields and more than 64 axes. If the
// file has a different format that is common for weights, the error names that format. A false claim in the header
// can't make NewFile allocate more memory: it allocates in proportion to size.
func NewFile(r io.Reader, size int64) (*File, error) {
	var prefix [8]byte
	if size < int64(len(prefix)) {
		return nil, formatError("header length", fmt.Errorf("expected 8 bytes, got a file of %d", size))
	}
	if err := fill(r, prefix[:]); err != nil {
		return nil, formatError("header length", err)
	}
	n, rest := binary.LittleEndian.Uint64(prefix[:]), size-int64(len(prefix))
	if n > maxHeader || int64(n) > rest {
		if what := otherFormat(prefix); what != "" {
			return nil, fmt.Errorf("%w: it is %s", ErrFormat, what)
		}
	}
	if n > maxHeader {
		return nil, formatError("header length", fmt.Errorf("expected at most %d bytes, got %d", maxHeader, n))
	}
	if int64(n) > rest {
		return nil, formatError("header length", fmt.Errorf("expected at most the %d bytes that follow it, got %d", rest, n))
	}
	header := make([]byte, n)
	if err := fill(r, header); err != nil {
		return nil, formatError("header", err)
	}
	f := &File{r: r, plain: r}
	var err error
	if f.Entries, f.Metadata, err = parseHeader(header, rest-int64(n)); err != nil {
		return nil, formatError("header", err)
	}
	if digest, ok := f.Metadata[digestKey]; ok {
		before, after, found := bytes.Cut(header, []byte(digest))
		if len(digest) != len(noDigest) || !found {
			return nil, formatError("header", fmt.Errorf("%s: expected a SHA-256 in %d hexadecimal digits, got %s", digestKey, len(noDigest), quote(digest)))
		}
		if delete(f.Metadata, digestKey); len(f.Metadata) == 0 {
			f.Metadata = nil
		}
		f.Checksum, f.hash = digest, sha256.New()
		f.r = io.TeeReader(r, f.hash)
		for _, part := range [][]byte{prefix[:], before, []byte(noDigest), after} {
			f.hash.Write(part)
		}
	}
	return f, nil
}

// otherFormat describes the format of a file that begins with these bytes. If the format is unknown, it returns "".
func otherFormat(begin [8]byte) string {
	for prefix, what := range map[string]string{
		"PK\x03\x04": "a zip archive, as torch.save writes: save the weights in PyTorch with safetensors.torch.save_file",
		"\x80\x02":   "a Python pickle, as torch.save wrote before PyTorch 1.6: save the weights in PyTorch with safetensors.torch.save_file",
		"version ":   "a Git LFS pointer, not the file itself: run git lfs pull",
		"GGUF":       "a GGUF file, which heed doesn't read: download the model's safetensors files",
		"<!DOCTYP":   "a web page, not the file itself: download it again",
		"<!doctyp":   "a web page, not the file itself: download it again",
		"<html":      "a web page, not the file itself: download it again",
	} {
		if strings.HasPrefix(string(begin[:]), prefix) {
			return what
		}
	}
	return ""
}

// SkipChecksum makes Tensors and Each not compute the checksum, for a second reading of a file. Call it before them.
func (f *File) SkipChecksum() {
	if f.Checksum != "" {
		f.r, f.Checksum = f.plain, ""
	}
}

// Tensors returns the tensors for whose names want returns true, in the order of Entries. If want is nil, it returns
// all tensors. Values may be NaN or infinite. Call one of Tensors and Each, and at most once.
//
// If a wanted tensor has a dtype other than F16, BF16, F32, F64 and I64, or if the tensors need more memory than is
// available, Tensors returns an error before it allocates. If the content doesn't match the file's checksum, the error
// wraps ErrFormat.
func (f *File) Tensors(want func(name string) bool) ([]Tensor, error) {
	if want == nil {
		want = func(string) bool { return true }
	}
	var bytes []int
	for _, e := range f.Entries {
		if !want(e.Name) {
			continue
		}
		if !e.Float() && e.Dtype != "I64" {
			return nil, formatError("tensor "+quote(e.Name), fmt.Errorf("dtype: expected F16, BF16, F32, F64 or I64, got %s", quote(e.Dtype)))
		}
		bytes = append(bytes, memory.Product(append(slices.Clone(e.Shape), max(e.Width(), 4))...)) // half precision becomes float32
	}
	if err := memory.Check(bytes...); err != nil {
		return nil, err
	}
	var tensors []Tensor
	err := f.Each(want, func(e Entry, r io.Reader) error {
		data, err := readValues(r, e)
		tensors = append(tensors, Tensor{Name: e.Name, Shape: e.Shape, Data: data})
		return err
	})
	return tensors, err
}

// Each calls read for the tensors for whose names want returns true, in the order of Entries. Its argument r reads the
// bytes of the tensor's values; read may leave some of them unread. Then Each compares the content with the file's
// checksum. If it differs, or if the file ends early, the error wraps ErrFormat.
func (f *File) Each(want func(name string) bool, read func(e Entry, r io.Reader) error) error {
	position := int64(0)
	for _, e := range f.Entries {
		if !want(e.Name) {
			continue
		}
		_, err := io.CopyN(io.Discard, f.r, e.begin-position)
		values := &io.LimitedReader{R: f.r, N: e.end - e.begin}
		if err == nil {
			err = read(e, values)
		}
		switch part := "values of tensor " + quote(e.Name); err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return formatError(part, errors.New("expected more bytes, got the end of the file: the file ended early"))
		default:
			return fmt.Errorf("%s: %w", part, err)
		}
		position = e.end - values.N
	}
	if f.Checksum == "" {
		return nil
	}
	if _, err := io.Copy(io.Discard, f.r); err != nil {
		return formatError("values", readError{err})
	}
	if got := hex.EncodeToString(f.hash.Sum(nil)); got != f.Checksum {
		return fmt.Errorf("%w: it has changed since it was written: its checksum (SHA-256) is %s, but the checksum of its content is %s: restore the file", ErrFormat, f.Checksum, got)
	}
	return nil
}

// A readError is an error of the reader, not of the file.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// formatError adds to an error the part of the file that it concerns.
func formatError(part string, err error) error {
	if errors.As(err, new(readError)) {
		return fmt.Errorf("%s: %w", part, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrFormat, part, err)
}

// fill reads exactly len(buf) bytes.
func fill(r io.Reader, buf []byte) error {
	n, err := io.ReadFull(r, buf)
	switch err {
	case nil:
		return nil
	case io.EOF, io.ErrUnexpectedEOF:
		return fmt.Errorf("expected %d more bytes, got %d: the file ended early", len(buf), n)
	}
	return readError{err}
}

// readValues reads all values of a tensor.
func readValues(r io.Reader, e Entry) (any, error) {
	n := int(e.end-e.begin) / e.Width()
	switch e.Dtype {
	case "F64":
		values := make([]float64, n)
		return values, readChunks(r, e, values, Decode)
	case "I64":
		values := make([]int64, n)
		return values, readChunks(r, e, values, func(values []int64, _ string, raw []byte) {
			for i := range values {
				values[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
			}
		})
	}
	values := make([]float32, n)
	return values, readChunks(r, e, values, Decode)
}

func readChunks[T any](r io.Reader, e Entry, values []T, decode func(values []T, dtype string, raw []byte)) error {
	raw := make([]byte, e.Width()*min(chunk, len(values)))
	for part := range slices.Chunk(values, chunk) {
		b := raw[:e.Width()*len(part)]
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		decode(part, e.Dtype, b)
	}
	return nil
}
