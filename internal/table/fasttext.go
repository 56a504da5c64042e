package table

import (
	"errors"
	"fmt"
	"strings"
)

// labelMark begins each label in a file of fastText, whose lines are labels and then a text.
const labelMark = "__label__"

// fastTextRows reads a file of fastText. A row is a line; its fields are the text and the label.
type fastTextRows struct{ in lineReader }

func (f *fastTextRows) next() (row, error) {
	for {
		line, err := f.in.next()
		if err != nil {
			return row{}, err
		}
		if len(strings.TrimSpace(string(line))) == 0 {
			continue
		}
		label, rest := "", string(line)
		labels := 0
		for strings.HasPrefix(rest, labelMark) {
			label, rest, _ = strings.Cut(rest[len(labelMark):], " ")
			labels++
		}
		fields := []string{rest, label}
		switch {
		case labels == 0:
			err = fmt.Errorf("it doesn't begin with %s, as the first line does", labelMark)
		case labels > 1:
			err = fmt.Errorf("it has %d labels, %s", labels, OneLabel)
		case strings.Contains(rest, "\t"):
			err = errors.New("its text has a tab; make it a space")
		}
		if err != nil {
			return row{}, &RowError{Line: f.in.lines, Fields: fields, Err: err, rows: 1}
		}
		return row{fields, f.in.lines}, nil
	}
}
