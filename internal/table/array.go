package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// objectLines reads the objects of a JSON file, each as one line, until io.EOF. The method line returns the line of the
// file on which the last object begins.
type objectLines interface {
	next() ([]byte, error)
	line() int
}

func (l *lineReader) line() int { return l.lines }

// arrayLines reads the elements of a JSON array.
type arrayLines struct {
	in      newlines
	decoder *json.Decoder
	begun   bool
	lines   int // line on which the last element begins
	element bytes.Buffer
}

func (a *arrayLines) line() int { return a.lines }

func (a *arrayLines) next() ([]byte, error) {
	a.in.left = maxRow
	raw, err := a.read()
	if err == io.EOF {
		return nil, err
	}
	a.lines = a.in.lineAt(a.decoder.InputOffset() - int64(len(raw)))
	switch {
	case errors.Is(err, errTooLong):
		return nil, fmt.Errorf("line %d: %w", a.lines, errTooLong)
	case err != nil:
		return nil, fmt.Errorf("line %d: not a JSON array of objects: %w", a.lines, err)
	}
	a.element.Reset()
	if err := json.Compact(&a.element, raw); err != nil {
		return nil, err
	}
	return a.element.Bytes(), nil
}

// read returns the next element, or io.EOF after the end of the array, if nothing follows it.
func (a *arrayLines) read() (raw json.RawMessage, err error) {
	if !a.begun {
		a.begun = true
		_, err = a.decoder.Token() // the bracket
	}
	switch {
	case err != nil:
	case a.decoder.More():
		err = a.decoder.Decode(&raw)
	default:
		if _, err = a.decoder.Token(); err != nil { // the other bracket
			break
		}
		if _, err = a.decoder.Token(); err == io.EOF {
			return nil, io.EOF
		} else if err == nil {
			err = errors.New("something follows the array")
		}
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return raw, err
}

// newlines counts the lines of what is read, and returns errTooLong after left bytes.
type newlines struct {
	capped
	read int64
	ends []int64 // offsets of line ends that lineAt hasn't counted
	done int     // number of line ends that it has counted
}

func (n *newlines) Read(p []byte) (int, error) {
	size, err := n.capped.Read(p)
	for i, b := range p[:size] {
		if b == '\n' {
			n.ends = append(n.ends, n.read+int64(i))
		}
	}
	n.read += int64(size)
	return size, err
}

// lineAt returns the line, from 1, of an offset, which must not be before that of an earlier call.
func (n *newlines) lineAt(offset int64) int {
	for len(n.ends) > 0 && n.ends[0] < offset {
		n.ends, n.done = n.ends[1:], n.done+1
	}
	return 1 + n.done
}
