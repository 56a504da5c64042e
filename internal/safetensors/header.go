package safetensors

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/heed-go/heed/internal/jsonkeys"
)

// An Entry is the header's description of one tensor.
type Entry struct {
	Name  string
	Dtype string // such as F16, BF16, F32, F64, I64, U8 and BOOL; Tensors reads only the first five
	Shape []int

	begin, end int64 // offsets from the end of the header
}

// parseHeader reads a header and returns its entries in the order of their values. It checks that the values fill
// exactly the dataSize bytes after the header.
func parseHeader(header []byte, dataSize int64) ([]Entry, map[string]string, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, fmt.Errorf("expected a JSON object, which begins with {, got %s", quote(string(header[:min(len(header), 20)])))
	}
	if err := jsonkeys.Check(header, nil); err != nil {
		return nil, nil, fmt.Errorf("malformed JSON: %w", err)
	}
	var entries []Entry
	var metadata map[string]string
	err := jsonkeys.Members(header, func(name string, value []byte) (err error) {
		if name == metadataKey {
			metadata, err = parseMetadata(value)
			return err
		}
		e, err := parseEntry(name, value)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	return entries, metadata, checkLayout(entries, dataSize)
}

// checkLayout checks that the entries cover each of dataSize bytes exactly once.
func checkLayout(entries []Entry, dataSize int64) error {
	covered := int64(0)
	for i, e := range entries {
		switch {
		case e.begin < covered:
			return fmt.Errorf("tensor %s: data_offsets [%d, %d] overlap those of tensor %s, which end at %d",
				quote(e.Name), e.begin, e.end, quote(entries[i-1].Name), covered)
		case e.begin > covered:
			return fmt.Errorf("tensor %s: data_offsets [%d, %d] leave a hole: expected them to begin at %d",
				quote(e.Name), e.begin, e.end, covered)
		}
		covered = e.end
	}
	switch {
	case covered > dataSize:
		return fmt.Errorf("expected %d bytes of values to follow, got %d: the file is cut short", covered, dataSize)
	case covered < dataSize:
		return fmt.Errorf("expected %d bytes of values to follow, got %d: there are trailing bytes", covered, dataSize)
	}
	return nil
}

func parseMetadata(object []byte) (map[string]string, error) {
	metadata := map[string]string{}
	return metadata, members(metadataKey, object, func(key string, value []byte) (err error) {
		metadata[key], err = parseString("the value of "+quote(key)+" in "+metadataKey, value)
		return err
	})
}

func parseEntry(name string, object []byte) (Entry, error) {
	e := Entry{Name: name}
	var offsets []int64
	given := 0
	err := members("the entry", object, func(key string, value []byte) (err error) {
		given++
		switch key {
		case "dtype":
			e.Dtype, err = parseString("dtype", value)
		case "shape":
			var sizes []int64
			sizes, err = parseIntegers("shape", value, math.MaxInt, maxRank)
			e.Shape = make([]int, len(sizes))
			for i, d := range sizes {
				e.Shape[i] = int(d)
			}
		case "data_offsets":
			offsets, err = parseIntegers("data_offsets", value, math.MaxInt64, 2)
		default:
			err = fmt.Errorf("expected dtype, shape and data_offsets, got %s", quote(key))
		}
		return err
	})
	if err == nil && given != 3 {
		err = fmt.Errorf("expected the three fields dtype, shape and data_offsets, got %d of them", given)
	}
	if err == nil && len(offsets) != 2 {
		err = fmt.Errorf("data_offsets: expected [begin, end], got %d numbers", len(offsets))
	}
	if err == nil {
		e.begin, e.end = offsets[0], offsets[1]
		err = e.check()
	}
	if err != nil {
		err = fmt.Errorf("tensor %s: %w", quote(name), err)
	}
	return e, err
}

// Width returns the bytes per value, or 0 for a dtype that this package doesn't know.
func (e Entry) Width() int { return int(widths[e.Dtype]) }

// Float reports whether the dtype is F16, BF16, F32 or F64.
func (e Entry) Float() bool { return slices.Contains([]string{"F16", "BF16", "F32", "F64"}, e.Dtype) }

// check checks that an entry's shape and its offsets give the same size. For an unknown dtype, it only checks that both
// are possible.
func (e Entry) check() error {
	width, known := widths[e.Dtype]
	size, err := byteSize(e.Shape, max(width, 1))
	if err != nil {
		return err
	}
	if e.begin > e.end {
		return fmt.Errorf("data_offsets: expected [begin, end], got [%d, %d], which ends before it begins", e.begin, e.end)
	}
	if known && e.end-e.begin != size {
		return fmt.Errorf("expected %d bytes for shape %v of %s, got %d from data_offsets [%d, %d]",
			size, e.Shape, e.Dtype, e.end-e.begin, e.begin, e.end)
	}
	return nil
}

// members calls field for each member of an object.
func members(what string, object []byte, field func(key string, value []byte) error) error {
	if object[0] != '{' {
		return fmt.Errorf("%s: expected an object, got %s", what, describe(object))
	}
	return jsonkeys.Members(object, field)
}

// parseIntegers reads an array of up to n integers. Each must be in [0, largest].
func parseIntegers(what string, array []byte, largest int64, n int) ([]int64, error) {
	if array[0] != '[' {
		return nil, fmt.Errorf("%s: expected an array, got %s", what, describe(array))
	}
	var values []int64
	err := jsonkeys.Elements(array, func(element []byte) error {
		if element[0] != '-' && (element[0] < '0' || element[0] > '9') {
			return fmt.Errorf("%s: expected integers, got %s", what, describe(element))
		}
		v, err := strconv.ParseUint(string(element), 10, 63)
		if err != nil || int64(v) > largest {
			return fmt.Errorf("%s: expected integers from 0 to %d, got %s", what, largest, quote(string(element)))
		}
		if len(values) == n {
			return fmt.Errorf("%s: expected at most %d numbers, got more", what, n)
		}
		values = append(values, int64(v))
		return nil
	})
	return values, err
}

func parseString(what string, value []byte) (string, error) {
	if value[0] != '"' {
		return "", fmt.Errorf("%s: expected a string, got %s", what, describe(value))
	}
	return jsonkeys.Text(value)
}

// describe describes a JSON value for an error.
func describe(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		text, _ := jsonkeys.Text(value)
		return "the string " + quote(text)
	case 't', 'f', 'n':
		return string(value)
	}
	return "the number " + quote(string(value))
}
