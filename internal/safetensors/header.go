package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// An Entry is the header's description of one tensor.
type Entry struct {
	Name  string
	Dtype string // F16, BF16, F32, F64 or I64
	Shape []int

	begin, end int64 // offsets from the end of the header
}

// parseHeader reads a header and returns its entries in the order of their values. It checks that the values fill
// exactly the dataSize bytes after the header.
func parseHeader(header []byte, dataSize int64) ([]Entry, map[string]string, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, fmt.Errorf("expected a JSON object, which begins with {, got %s", quote(string(header[:min(len(header), 20)])))
	}
	if !utf8.Valid(header) {
		return nil, nil, errors.New("expected JSON in UTF-8, got other bytes")
	}
	if err := json.Unmarshal(header, &struct{}{}); err != nil { // checks the syntax and the nesting depth
		return nil, nil, fmt.Errorf("expected a JSON object, got malformed JSON: %w", err)
	}
	p := parser{json.NewDecoder(bytes.NewReader(header))}
	p.dec.UseNumber()
	entries, metadata, err := p.header()
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

// A parser walks through JSON whose syntax is already checked, so it only checks the content.
type parser struct {
	dec *json.Decoder
}

func (p parser) header() (entries []Entry, metadata map[string]string, err error) {
	err = p.object("the header", func(key string) error {
		if key == metadataKey {
			metadata, err = p.metadata()
			return err
		}
		e, err := p.entry(key)
		entries = append(entries, e)
		return err
	})
	return entries, metadata, err
}

func (p parser) metadata() (map[string]string, error) {
	metadata := map[string]string{}
	err := p.object(metadataKey, func(key string) (err error) {
		metadata[key], err = p.string("the value of " + quote(key) + " in " + metadataKey)
		return err
	})
	return metadata, err
}

func (p parser) entry(name string) (Entry, error) {
	e := Entry{Name: name}
	var offsets []int64
	given := 0
	err := p.object("the entry", func(key string) (err error) {
		given++
		switch key {
		case "dtype":
			e.Dtype, err = p.string("dtype")
		case "shape":
			var sizes []int64
			sizes, err = p.integers("shape", math.MaxInt, maxRank)
			e.Shape = make([]int, len(sizes))
			for i, d := range sizes {
				e.Shape[i] = int(d)
			}
		case "data_offsets":
			offsets, err = p.integers("data_offsets", math.MaxInt64, 2)
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

// check checks that an entry's dtype is known, and that its shape and its offsets give the same size.
func (e Entry) check() error {
	width, ok := widths[e.Dtype]
	if !ok {
		return fmt.Errorf("dtype: expected F16, BF16, F32, F64 or I64, got %s", quote(e.Dtype))
	}
	size, err := byteSize(e.Shape, width)
	if err != nil {
		return err
	}
	if e.begin > e.end {
		return fmt.Errorf("data_offsets: expected [begin, end], got [%d, %d], which ends before it begins", e.begin, e.end)
	}
	if e.end-e.begin != size {
		return fmt.Errorf("expected %d bytes for shape %v of %s, got %d from data_offsets [%d, %d]",
			size, e.Shape, e.Dtype, e.end-e.begin, e.begin, e.end)
	}
	return nil
}

// object reads an object. It calls field with each key, and field reads the value. A repeated key is an error.
func (p parser) object(what string, field func(key string) error) error {
	if err := p.open(what, "an object", '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		key, err := p.string("a key")
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%s: expected different names, got %s twice", what, quote(key))
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	_, err := p.next() // }
	return err
}

// integers reads an array of up to n integers. Each must be in [0, most].
func (p parser) integers(what string, most int64, n int) ([]int64, error) {
	if err := p.open(what, "an array", '['); err != nil {
		return nil, err
	}
	var values []int64
	for p.dec.More() {
		t, err := p.next()
		if err != nil {
			return nil, err
		}
		number, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%s: expected integers, got %s", what, describe(t))
		}
		v, err := strconv.ParseUint(string(number), 10, 63)
		if err != nil || int64(v) > most {
			return nil, fmt.Errorf("%s: expected integers from 0 to %d, got %s", what, most, quote(string(number)))
		}
		if len(values) == n {
			return nil, fmt.Errorf("%s: expected at most %d numbers, got more", what, n)
		}
		values = append(values, int64(v))
	}
	_, err := p.next() // ]
	return values, err
}

func (p parser) open(what, kind string, delim json.Delim) error {
	t, err := p.next()
	if err == nil && t != delim {
		err = fmt.Errorf("%s: expected %s, got %s", what, kind, describe(t))
	}
	return err
}

func (p parser) string(what string) (string, error) {
	t, err := p.next()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%s: expected a string, got %s", what, describe(t))
	}
	return s, nil
}

func (p parser) next() (json.Token, error) {
	t, err := p.dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return t, err
}

// describe describes a token for an error.
func describe(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return "an object"
		}
		return "an array"
	case string:
		return "the string " + quote(t)
	case json.Number:
		return "the number " + quote(string(t))
	}
	return fmt.Sprint(t) // true, false, <nil>
}
