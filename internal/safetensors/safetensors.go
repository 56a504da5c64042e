// Package safetensors reads and writes tensors in the safetensors format. The README of huggingface/safetensors
// describes it. A file begins with eight bytes, the length of the header, little-endian. Then comes the header, a JSON
// object
//
//	{"__metadata__":{"key":"value"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
//
// padded with spaces. Then come the tensors' values, little-endian and row-major, one tensor after the other without
// gaps.
//
// Files may come from strangers. So the package checks all claims of a header against the size of the file, and the
// memory for the values against the machine's, before it allocates.
//
// Write adds a checksum to the metadata. Readers verify it and don't return it. The key heed.sha256 holds the SHA-256
// of the whole file, computed with 64 zeros in place of the checksum. Files without a checksum can be read too.
package safetensors

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrFormat is wrapped by every error that is the file's fault: the bytes are no safetensors file, or contain values
// that this package doesn't read.
var ErrFormat = errors.New("not a readable safetensors file")

const (
	maxHeader   = 100_000_000 // bytes, as in the reference implementation
	maxRank     = 64
	metadataKey = "__metadata__"
	digestKey   = "heed.sha256" // in the metadata
)

// noDigest takes the place of the checksum while it is computed.
var noDigest = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// A Tensor is a named, row-major array. A Shape of length 0 means a scalar; sizes may be 0. Data is a []float32, a
// []float64 or a []int64. Half-precision files (F16, BF16) are read as []float32, which holds their values exactly.
type Tensor struct {
	Name  string
	Shape []int
	Data  any
}

// Dtype returns the format's name for the type of t.Data: F32, F64 or I64, or empty if t can't be written.
func (t Tensor) Dtype() string {
	switch t.Data.(type) {
	case []float32:
		return "F32"
	case []float64:
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
	}
	return 0
}

// widths holds the bytes per value of the dtypes that Read knows.
var widths = map[string]int64{"F16": 2, "BF16": 2, "F32": 4, "F64": 8, "I64": 8}

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

// quote quotes a name for an error, and shortens long names, which may come from a stranger's file.
func quote(name string) string {
	const most = 100
	if len(name) > most {
		return strconv.Quote(name[:most]) + "…"
	}
	return strconv.Quote(name)
}
