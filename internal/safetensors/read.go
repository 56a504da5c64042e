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
	hash   hash.Hash // hash of the bytes read so far
}

// Open reads the header of the file at path, like NewFile. It must be a regular file. Errors name the path.
func Open(path string) (*File, error) {
	info, err := os.Stat(path) // before opening, because opening a pipe waits for its writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: expected a regular file, got %v", path, ErrFormat, info.Mode())
	}
	opened, err := os.Open(path)
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
// metadata that aren't strings, an unknown dtype, a shape that overflows or disagrees with its offsets, and values that
// overlap, leave holes or don't fill the rest of the file exactly. NewFile also refuses unknown fields, dtypes other
// than F16, BF16, F32, F64 and I64, and more than 64 axes. If the file has a different format that is common for
// weights, the error names that format. A false claim in the header can't make NewFile allocate more memory: it
// allocates in proportion to size.
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
	f := &File{r: r}
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
	} {
		if strings.HasPrefix(string(begin[:]), prefix) {
			return what
		}
	}
	return ""
}

// Tensors returns the tensors for whose names want returns true, in the order of Entries. If want is nil, it returns
// all tensors. Values may be NaN or infinite. Call Tensors at most once.
//
// If the tensors need more memory than is available, Tensors returns an error before it allocates. If the content
// doesn't match the file's checksum, the error wraps ErrFormat.
func (f *File) Tensors(want func(name string) bool) ([]Tensor, error) {
	wanted := slices.Clone(f.Entries)
	if want != nil {
		wanted = slices.DeleteFunc(wanted, func(e Entry) bool { return !want(e.Name) })
	}
	var bytes []int
	for _, e := range wanted {
		width := int(max(widths[e.Dtype], 4)) // half precision becomes float32
		bytes = append(bytes, memory.Product(append(slices.Clone(e.Shape), width)...))
	}
	if err := memory.Check(bytes...); err != nil {
		return nil, err
	}
	var tensors []Tensor
	position := int64(0)
	for _, e := range wanted {
		t, err := f.tensor(e, e.begin-position)
		if err != nil {
			return nil, formatError("values of tensor "+quote(e.Name), err)
		}
		tensors = append(tensors, t)
		position = e.end
	}
	if f.Checksum == "" {
		return tensors, nil
	}
	if _, err := io.Copy(io.Discard, f.r); err != nil {
		return nil, formatError("values", readError{err})
	}
	if got := hex.EncodeToString(f.hash.Sum(nil)); got != f.Checksum {
		return nil, fmt.Errorf("%w: it has changed since it was written: its checksum (SHA-256) is %s, but the checksum of its content is %s: restore the file", ErrFormat, f.Checksum, got)
	}
	return tensors, nil
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

// tensor reads a tensor. The argument skip is the number of bytes before it that are not needed.
func (f *File) tensor(e Entry, skip int64) (Tensor, error) {
	if _, err := io.CopyN(io.Discard, f.r, skip); err == io.EOF {
		return Tensor{}, errors.New("expected more bytes, got the end of the file: the file ended early")
	} else if err != nil {
		return Tensor{}, readError{err}
	}
	data, err := readValues(f.r, e)
	return Tensor{Name: e.Name, Shape: e.Shape, Data: data}, err
}

// readValues reads the values of a tensor from the current position of r.
func readValues(r io.Reader, e Entry) (any, error) {
	width := int(widths[e.Dtype])
	n := int(e.end-e.begin) / width
	switch e.Dtype {
	case "F64":
		values := make([]float64, n)
		return values, decode(r, width, values)
	case "I64":
		values := make([]int64, n)
		return values, decode(r, width, values)
	case "F32":
		values := make([]float32, n)
		return values, decode(r, width, values)
	}
	widen := halfToFloat
	if e.Dtype == "BF16" {
		widen = brainToFloat
	}
	small := make([]uint16, n)
	values := make([]float32, n)
	err := decode(r, width, small)
	for i, h := range small {
		values[i] = widen(h)
	}
	return values, err
}

// decode reads values from r. Each value takes width bytes.
func decode[T float32 | float64 | int64 | uint16](r io.Reader, width int, values []T) error {
	buf := make([]byte, width*min(chunk, len(values)))
	for part := range slices.Chunk(values, chunk) {
		b := buf[:width*len(part)]
		if err := fill(r, b); err != nil {
			return err
		}
		if _, err := binary.Decode(b, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	return nil
}
