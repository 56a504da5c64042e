package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// ReadFile is Read on the file at path, which must be a regular one.
func ReadFile(path string) ([]Tensor, map[string]string, error) {
	info, err := os.Stat(path) // before opening: to open a pipe would wait for its writer
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: %w: expected a regular file, got %v", path, ErrFormat, info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil { // of this file: another may have taken its place since
		return nil, nil, err
	}
	tensors, metadata, err := Read(f, info.Size())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return tensors, metadata, nil
}

// Read reads a file of size bytes from r. The tensors are in the order of their values in the file. The metadata is nil
// if the file has none.
//
// Whatever the format's description doesn't allow is an error that wraps ErrFormat and says which part is wrong, what
// was expected there and what came: a header that is longer than 100 MB or the file, malformed JSON, a name or key
// given twice, metadata other than strings, an unknown dtype, a shape that overflows or disagrees with its offsets,
// values that overlap, leave holes, or aren't exactly the rest of the file. So are fields that the description doesn't
// know, dtypes other than F16, BF16, F32, F64 and I64, and more than 64 axes. Values may be NaN or infinite. What Read
// allocates is in proportion to size, whatever the header claims.
func Read(r io.Reader, size int64) ([]Tensor, map[string]string, error) {
	var prefix [8]byte
	if size < int64(len(prefix)) {
		return nil, nil, formatError("header length", fmt.Errorf("expected 8 bytes, got a file of %d", size))
	}
	if err := fill(r, prefix[:]); err != nil {
		return nil, nil, formatError("header length", err)
	}
	n, rest := binary.LittleEndian.Uint64(prefix[:]), size-int64(len(prefix))
	if n > maxHeader {
		return nil, nil, formatError("header length", fmt.Errorf("expected at most %d bytes, got %d", maxHeader, n))
	}
	if int64(n) > rest {
		return nil, nil, formatError("header length", fmt.Errorf("expected at most the %d bytes that follow it, got %d", rest, n))
	}
	header := make([]byte, n)
	if err := fill(r, header); err != nil {
		return nil, nil, formatError("header", err)
	}
	entries, metadata, err := parseHeader(header, rest-int64(n))
	if err != nil {
		return nil, nil, formatError("header", err)
	}
	tensors := make([]Tensor, len(entries))
	for i, e := range entries {
		data, err := readValues(r, e)
		if err != nil {
			return nil, nil, formatError("values of tensor "+quote(e.name), err)
		}
		tensors[i] = Tensor{Name: e.name, Shape: e.shape, Data: data}
	}
	return tensors, metadata, nil
}

// A readError is a fault of the reader, not of the file.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// formatError says in which part of the file an error is.
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
		return fmt.Errorf("expected %d more bytes, got %d: the file is shorter than it was said to be", len(buf), n)
	}
	return readError{err}
}

// readValues reads the values of the tensor that r stands at.
func readValues(r io.Reader, e entry) (any, error) {
	width := int(widths[e.dtype])
	n := int(e.end-e.begin) / width
	switch e.dtype {
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
	if e.dtype == "BF16" {
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

// decode fills values, of width bytes each, from r.
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
