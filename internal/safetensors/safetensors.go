// Package safetensors reads and writes tensors in the safetensors format, as the README of huggingface/safetensors
// describes it: eight bytes that give the length of a header, little-endian; the header, a JSON object
//
//	{"__metadata__":{"key":"value"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
//
// padded with spaces; then the tensors' values, little-endian, row-major, one tensor after the other without gaps.
//
// Files come from strangers: all that a header claims is checked against the size of the file before anything is
// believed or allocated, and what the values would take against the machine's memory.
//
// What Write writes has a checksum in its metadata, which readers check and keep to themselves: under heed.sha256 the
// SHA-256 of the whole file as it is with 64 zeros in the checksum's place. Files without one are read as they are.
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

// ErrFormat is what every error wraps that is the file's fault: bytes that are no safetensors file, or are one with
// values that this package doesn't read.
var ErrFormat = errors.New("not a readable safetensors file")

const (
	maxHeader   = 100_000_000 // bytes, as in the reference implementation
	maxRank     = 64
	metadataKey = "__metadata__"
	digestKey   = "heed.sha256" // in the metadata
)

// noDigest stands in a file for the checksum while that is taken.
var noDigest = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// A Tensor is a named array, row-major. A Shape of length 0 is a scalar's; sizes may be 0. Data is a []float32, a
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

// widths are the bytes that a value takes, of the dtypes that Read knows.
var widths = map[string]int64{"F16": 2, "BF16": 2, "F32": 4, "F64": 8, "I64": 8}

// byteSize returns how many bytes a tensor takes in a file, and an error if no slice can be that large. Sizes of 0
// don't excuse the others: their product must fit too.
func byteSize(shape []int, width int64) (int64, error) {
	if len(shape) > maxRank {
		return 0, fmt.Errorf("a shape may have %d axes, got %d", maxRank, len(shape))
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

// quote returns a name for an error, cut short if it is long: it may be a stranger's.
func quote(name string) string {
	const most = 100
	if len(name) > most {
		return strconv.Quote(name[:most]) + "…"
	}
	return strconv.Quote(name)
}
