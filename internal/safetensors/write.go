package safetensors

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"unicode/utf8"
)

// Write writes tensors and metadata to w. The order of the tensors doesn't change the file: Write sorts tensors by
// dtype, then by name, and metadata by key. Tensors with wider values come first, so that every value is aligned. The
// reference implementation uses the same order. Write adds a checksum, which replaces any checksum in the metadata.
//
// Write returns an error, and writes nothing, if two tensors share a name, a name or metadata isn't UTF-8, a tensor is
// named "__metadata__", a Shape doesn't fit its Data, or Data has an unsupported type.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	tensors = slices.Clone(tensors)
	slices.SortFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	withDigest := map[string]string{}
	maps.Copy(withDigest, metadata)
	withDigest[digestKey] = noDigest
	header, err := makeHeader(tensors, withDigest)
	if err != nil {
		return err
	}
	hash := sha256.New()
	if err := writeFile(hash, header, tensors); err != nil {
		return err
	}
	place := []byte(`"` + digestKey + `":"` + noDigest + `"`) // its first occurrence is the right one: metadata come first, and quotes in strings are escaped
	digest := []byte(`"` + digestKey + `":"` + hex.EncodeToString(hash.Sum(nil)) + `"`)
	return writeFile(w, bytes.Replace(header, place, digest, 1), tensors)
}

// writeFile writes a header and the values after it.
func writeFile(w io.Writer, header []byte, tensors []Tensor) (err error) {
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))); err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		switch d := t.Data.(type) {
		case []float32:
			err = writeValues(w, d)
		case []float64:
			err = writeValues(w, d)
		case []int64:
			err = writeValues(w, d)
		case iter.Seq[[]float32]:
			err = writeParts(w, d)
		case iter.Seq[[]float64]:
			err = writeParts(w, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rank returns the position of a tensor's dtype in the reference implementation's order.
func rank(t Tensor) int { return slices.Index([]string{"I64", "F64", "F32"}, t.Dtype()) }

// chunk is the number of values that are converted at once.
const chunk = 1 << 13

func writeParts[T float32 | float64](w io.Writer, parts iter.Seq[[]T]) error {
	for part := range parts {
		if err := writeValues(w, part); err != nil {
			return err
		}
	}
	return nil
}

func writeValues[T float32 | float64 | int64](w io.Writer, values []T) error {
	var buf []byte
	for part := range slices.Chunk(values, chunk) {
		var err error
		if buf, err = binary.Append(buf[:0], binary.LittleEndian, part); err != nil {
			return err
		}
		if _, err = w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// makeHeader returns the header for metadata, and for tensors that are written in the given order. The header is padded
// to a multiple of 8 bytes.
func makeHeader(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if err := checkText("metadata", key, metadata[key]); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	b.WriteString(`{"` + metadataKey + `":`)
	appendJSON(&b, metadata)
	begin := int64(0)
	names := map[string]bool{}
	for _, t := range tensors {
		size, err := checkTensor(t)
		if err != nil {
			return nil, err
		}
		if names[t.Name] {
			return nil, fmt.Errorf("two tensors are named %s", quote(t.Name))
		}
		names[t.Name] = true
		b.WriteByte(',')
		appendJSON(&b, t.Name)
		fmt.Fprintf(&b, `:{"dtype":%q,"shape":`, t.Dtype())
		appendJSON(&b, append([]int{}, t.Shape...)) // nil would be null
		fmt.Fprintf(&b, `,"data_offsets":[%d,%d]}`, begin, begin+size)
		begin += size
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len() > maxHeader {
		return nil, fmt.Errorf("names, shapes and metadata take %d bytes: a header may have at most %d", b.Len(), maxHeader)
	}
	return b.Bytes(), nil
}

// checkTensor checks that a tensor can be written, and returns the size of its values in bytes.
func checkTensor(t Tensor) (int64, error) {
	if err := checkText("tensor name", t.Name); err != nil {
		return 0, err
	}
	if t.Name == metadataKey {
		return 0, fmt.Errorf("no tensor may be named %q: the format uses that name", metadataKey)
	}
	if t.Dtype() == "" {
		return 0, fmt.Errorf("tensor %s: Data must be a []float32, []float64 or []int64, got %T", quote(t.Name), t.Data)
	}
	width := widths[t.Dtype()]
	size, err := byteSize(t.Shape, width)
	if err != nil {
		return 0, fmt.Errorf("tensor %s: %w", quote(t.Name), err)
	}
	if size != int64(t.len())*width {
		return 0, fmt.Errorf("tensor %s: shape %v has %d values, but Data has %d", quote(t.Name), t.Shape, size/width, t.len())
	}
	return size, nil
}

func checkText(what string, texts ...string) error {
	for _, s := range texts {
		if len(s) > maxHeader {
			return fmt.Errorf("%s %s has %d bytes: a header may have at most %d", what, quote(s), len(s), maxHeader)
		}
		if !utf8.ValidString(s) {
			return fmt.Errorf("%s %s isn't UTF-8", what, quote(s))
		}
	}
	return nil
}

// appendJSON writes v as JSON. Unlike json.Marshal it doesn't escape <, > and &. Metadata are sorted by key.
func appendJSON(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // can't happen for strings and integers
	}
	b.Truncate(b.Len() - 1) // the newline
}
