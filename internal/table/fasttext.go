package table

import (
	"errors"
	"fmt"
	"strings"
)

// labelMark begins each label in a file of fastText, whose lines are labels and then a text.
const labelMark = "__label__"

// fastTextRows reads a file of fastText. A row is a line; its fields are the text and the label, or all labels.
type fastTextRows struct {
	in    lineReader
	label Column
}

func (f *fastTextRows) next() (row, error) {
	for {
		line, err := f.in.next()
		if err != nil {
			return row{}, err
		}
		if len(strings.TrimSpace(string(line))) == 0 {
			continue
		}
		rest := string(line)
		var labels []string
		for strings.HasPrefix(rest, labelMark) {
			var label string
			label, rest, _ = strings.Cut(rest[len(labelMark):], " ")
			labels = append(labels, label)
		}
		joined, wrong := f.label.join(labels)
		fields := []string{rest, joined}
		switch {
		case labels == nil:
			err = fmt.Errorf("it doesn't begin with %s, as the first line does", labelMark)
		case errors.Is(wrong, ErrSeveral):
			return row{}, fmt.Errorf("line %d: it has %w", f.in.lines, wrong)
		case wrong != nil:
			err = fmt.Errorf("it has %w", wrong)
		case strings.Contains(rest, "\t"):
			err = errors.New("its text has a tab; make it a space")
		}
		if err != nil {
			return row{}, &RowError{Line: f.in.lines, Fields: fields, Err: err, rows: 1}
		}
		return row{fields, f.in.lines}, nil
	}
}
