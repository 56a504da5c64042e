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

// arrayLines reads the elements of a JSON array. In the place of an article or a paragraph of SQuAD, it returns its
// questions, each with its context.
type arrayLines struct {
	in      newlines
	decoder *json.Decoder
	begun   bool
	wrapped bool                         // the array is a member of an object
	rest    []map[string]json.RawMessage // questions of the last element
	lines   int                          // line on which the last element begins
	element bytes.Buffer
}

func (a *arrayLines) line() int { return a.lines }

func (a *arrayLines) next() ([]byte, error) {
	if len(a.rest) > 0 {
		next := a.rest[0]
		a.rest = a.rest[1:]
		return json.Marshal(next)
	}
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
	if a.rest = questions(raw); len(a.rest) > 0 {
		return a.next()
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
		if a.wrapped { // the other members don't matter
			return nil, io.EOF
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

// A paragraph is a context of SQuAD with its questions.
type paragraph struct {
	Context json.RawMessage
	QAs     []map[string]json.RawMessage
}

// questions returns the questions of an article or a paragraph of SQuAD, or nil if raw is neither.
func questions(raw []byte) (rows []map[string]json.RawMessage) {
	if !bytes.Contains(bytes.ToLower(raw), []byte("qas")) { // most files aren't SQuAD, and needn't be decoded twice
		return nil
	}
	var article struct {
		paragraph
		Paragraphs []paragraph
	}
	if json.Unmarshal(raw, &article) != nil {
		return nil
	}
	for _, p := range append(article.Paragraphs, article.paragraph) {
		for _, question := range p.QAs {
			if question != nil && p.Context != nil {
				question["context"] = p.Context
				rows = append(rows, question)
			}
		}
	}
	return rows
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
