package table

import (
	"bufio"
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

// objectLines returns a reader of the file's objects: its lines, or the elements of an array.
func (t *tableFile) objectLines() objectLines {
	if !t.form.array {
		return &lineReader{in: t.in}
	}
	a := &arrayLines{in: newlines{in: t.in}}
	a.decoder = json.NewDecoder(&a.in)
	return a
}

// arrayLines reads the elements of a JSON array.
type arrayLines struct {
	in      newlines
	decoder *json.Decoder
	begun   bool
	start   int64 // offset of the last element
	element bytes.Buffer
}

// newlines counts the lines of what is read, and returns errTooLong after left bytes.
type newlines struct {
	in   *bufio.Reader
	left int
	read int64
	ends []int64 // offsets of line ends that haven't been counted
	done int     // number of line ends before these
}

func (n *newlines) Read(p []byte) (int, error) {
	if n.left <= 0 {
		return 0, errTooLong
	}
	size, err := n.in.Read(p)
	for i, b := range p[:size] {
		if b == '\n' {
			n.ends = append(n.ends, n.read+int64(i))
		}
	}
	n.left, n.read = n.left-size, n.read+int64(size)
	return size, err
}

func (a *arrayLines) line() int {
	n := 0
	for n < len(a.in.ends) && a.in.ends[n] < a.start {
		n++
	}
	a.in.done, a.in.ends = a.in.done+n, a.in.ends[n:]
	return 1 + a.in.done
}

func (a *arrayLines) next() ([]byte, error) {
	a.in.left = maxRow
	var raw json.RawMessage
	err := error(nil)
	if !a.begun {
		_, err = a.decoder.Token() // the bracket
		a.begun = true
	}
	if err == nil && !a.decoder.More() {
		if _, err = a.decoder.Token(); err == nil {
			if _, err = a.decoder.Token(); err == nil {
				err = errors.New("something follows the array")
			}
			if err == io.EOF {
				return nil, err
			}
		}
	}
	if err == nil {
		err = a.decoder.Decode(&raw)
	}
	if err != nil {
		a.start = a.decoder.InputOffset()
	}
	switch {
	case errors.Is(err, errTooLong):
		return nil, fmt.Errorf("line %d: %w", a.line(), errTooLong)
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
		fallthrough
	case err != nil:
		return nil, fmt.Errorf("line %d: not a JSON array of objects: %w", a.line(), err)
	}
	a.start = a.decoder.InputOffset() - int64(len(raw))
	a.element.Reset()
	if err := json.Compact(&a.element, raw); err != nil {
		return nil, err
	}
	return a.element.Bytes(), nil
}
