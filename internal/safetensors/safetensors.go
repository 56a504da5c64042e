// Package safetensors reads and writes tensors in the safetensors format. The README of huggingface/safetensors
// describes it. A file begins with eight bytes, the length of the header, little-endian. Then comes the header, a JSON
// object
//
//	{"__metadata__":{"key":"value"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
//
// padded with spaces. Then come the tensors' values, little-endian and row-major, one tensor after the other without
// gaps.
//
// Files may come from strangers. So before the package allocates memory, it compares all claims of a header with the
// size of the file, and the size of the values with the machine's memory.
//
// Write adds a checksum to the metadata. Readers verify the checksum and remove it from the metadata. It is the SHA-256
// of the whole file, computed with 64 zeros in place of the checksum, and its key is heed.sha256. Files without a
// checksum can be read too.
package safetensors

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
)

// ErrFormat is wrapped by every error about the content of a file: it isn't a safetensors file, or it contains
// something that this package can't read.
var ErrFormat = errors.New("not a readable safetensors file")

const (
	maxHeader   = 100_000_000 // bytes, as in the reference implementation
	maxRank     = 64
	metadataKey = "__metadata__"
	digestKey   = "heed.sha256" // the checksum's key in the metadata
)

// noDigest stands in place of the checksum while the checksum is computed.
var noDigest = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// A Tensor is a named, row-major array. A Shape of length 0 means a scalar; sizes may be 0. Data is a []float32, a
// []float64 or a []int64. Half-precision files (F16, BF16) are read as []float32, which holds their values exactly. For
// Write, Data may also be an iter.Seq[[]float32] or an iter.Seq[[]float64], which yields the values in parts, and the
// same values each time.
type Tensor struct {
	Name  string
	Shape []int
	Data  any
}

// Dtype returns the format's name for the type of t.Data: F32, F64 or I64. For other types, it returns "".
func (t Tensor) Dtype() string {
	switch t.Data.(type) {
	case []float32, iter.Seq[[]float32]:
		return "F32"
	case []float64, iter.Seq[[]float64]:
		return "F64"
	case []int64:
		return "I64"
	}
	return ""
}

func (t Tensor) len() int {
	switch d := t.Data.(type) {
	case []float32:
		return len(d)
	case []float64:
		return len(d)
	case []int64:
		return len(d)
	case iter.Seq[[]float32]:
		return lengths(d)
	case iter.Seq[[]float64]:
		return lengths(d)
	}
	return 0
}

func lengths[T any](parts iter.Seq[[]T]) (n int) {
	for part := range parts {
		n += len(part)
	}
	return n
}

// widths holds the bytes per value of the usual dtypes. A file may have others, whose values nothing here reads.
var widths = map[string]int64{
	"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
	"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}

// byteSize returns the number of bytes of a tensor in a file, or an error if no slice can be that large. The product of
// the other sizes must fit even if one size is 0.
func byteSize(shape []int, width int64) (int64, error) {
	if len(shape) > maxRank {
		return 0, fmt.Errorf("a shape may have at most %d axes, got %d", maxRank, len(shape))
	}
	size, empty := width, false
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, fmt.Errorf("a shape's sizes can't be negative, got %v", shape)
		case d == 0:
			empty = true
		case size > math.MaxInt/int64(d):
			return 0, fmt.Errorf("shape %v takes more bytes than can be addressed", shape)
		default:
			size *= int64(d)
		}
	}
	if empty {
		return 0, nil
	}
	return size, nil
}

// quote quotes a name for an error. It shortens long names, because a name may come from a stranger's file.
func quote(name string) string {
	const limit = 100
	if len(name) > limit {
		return strconv.Quote(name[:limit]) + "…"
	}
	return strconv.Quote(name)
}
