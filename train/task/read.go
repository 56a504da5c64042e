package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/table"
)

// ReadExamples reads the rows of a file of the model's kind, or the lines of two parallel ones. The columns are those
// given or else, where there are none, those that the model's run read, by the same names or numbers. The notes are
// sentences to show: that bad rows were left out, and that the run has learned from this very file.
func (m *Model) ReadExamples(columns []string, files ...string) (examples []data.Example, notes []string, err error) {
	c, err := m.reads(columns)
	if err != nil {
		return nil, nil, err
	}
	if len(files) < 1 || len(files) > 2 {
		return nil, nil, fmt.Errorf("examples are read from one file, or from two parallel ones, got %d", len(files))
	}
	t, err := readRows(&c, files[0], append(files, "")[1], new(string))
	if err != nil {
		return nil, nil, err
	}
	examples = make([]data.Example, t.Len())
	for i := range examples {
		examples[i] = data.Example{Source: t.Field(i, 0), Answer: t.Field(i, 1)}
	}
	if t.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%s: left out as bad: %d of %d rows, the first: %v", files[0], t.LeftOut, t.LeftOut+t.Len(), t.Bad[0]))
	}
	if strings.Join(t.SHA256, " ") == m.Config.Data.SHA256 {
		notes = append(notes, fmt.Sprintf("%s is what the run has learned from: the score says nothing about other data", files[0]))
	}
	return examples, notes, nil
}

// fileBatch is how many rows PredictFile answers together: what it holds of a file is bounded by it.
const fileBatch = 1 << 13

// PredictFile answers the rows of a file of TSV or CSV, which Data describes, and writes it to w with columns added,
// in the file's own form. The inputs' column is the one given or else, if that is empty, the one that the model's run
// had its sources in, by the same name or number. Function row returns the added fields of a row, given its first line
// and its Answer, which has nothing but an Err if the row is bad. A field with a tab or an end of line is
// quoted where TSV can't hold it. A header gets the added names, behind "predicted_" where the file has them already.
//
// A row that isn't CSV can't be written back, and is an error. So is a done ctx. PredictFile reads some thousands of
// rows at a time.
func (m *Model) PredictFile(ctx context.Context, file, column string, w io.Writer, o PredictOptions, added []string, row func(line int, a Answer) []string) error {
	var columns []string
	if column != "" {
		columns = []string{column}
	}
	c, err := m.reads(columns)
	if err != nil {
		return err
	}
	wanted := table.Options{Known: c.Kind().Columns[:1]}
	if c.Data.Columns != nil {
		wanted.Columns = c.Data.Columns[:1]
	}
	records, err := table.Open(file, wanted)
	if err != nil {
		return err
	}
	defer records.Close()
	header := records.Header()
	out, err := records.NewWriter(w, newNames(added, header)...)
	if err != nil {
		return err
	}
	width := len(header)
	for done := false; !done; {
		var rows [][]string
		var lines []int
		var inputs []string
		var places []int // of the inputs among the rows
		var answers []Answer
		for len(rows) < fileBatch && !done {
			fields, line, err := records.Read()
			var bad *table.RowError
			var answer Answer
			switch {
			case err == io.EOF:
				done = true
				continue
			case errors.As(err, &bad) && bad.Fields != nil:
				fields, line, answer.Err = bad.Fields, bad.Line, bad.Err
			case errors.As(err, &bad):
				return fmt.Errorf("%s, %w: it can't be written back, so mend it first", file, err)
			case err != nil:
				return err
			default:
				inputs, places = append(inputs, fields[records.Columns()[0]]), append(places, len(rows))
			}
			width = max(width, len(fields)) // the answers have columns of their own
			rows = append(rows, append(slices.Clone(fields), make([]string, width-len(fields))...))
			lines, answers = append(lines, line), append(answers, answer)
		}
		all, err := m.PredictAll(ctx, inputs, o)
		if err != nil {
			return err
		}
		for i, a := range all {
			answers[places[i]] = a
		}
		for i, fields := range rows {
			more := row(lines[i], answers[i])
			err := out.Write(append(fields, more...))
			if err != nil { // once more, with fields that TSV can hold
				for j, field := range more {
					if strings.ContainsAny(field, "\t\r\n") {
						more[j] = strconv.Quote(field)
					}
				}
				err = out.Write(append(fields, more...))
			}
			if err != nil {
				return err
			}
		}
	}
	return out.Close()
}

// newNames returns names that aren't among a header's.
func newNames(names, header []string) []string {
	names = slices.Clone(names)
	for i := range names {
		for slices.ContainsFunc(header, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), names[i]) }) {
			names[i] = "predicted_" + names[i]
		}
	}
	return names
}

// reads returns a configuration for reading rows by some columns, nil for those of the run.
func (m *Model) reads(columns []string) (Config, error) {
	c := m.Config
	if c.Kind().Columns == nil {
		return c, fmt.Errorf("a model that learned a text has no answers to the rows of a file: the task %s is of kind %s", c.Task.Name, c.Task.Kind)
	}
	if columns != nil {
		c.Data.Columns = columns
	}
	return c, nil
}

// Examples returns what the task validates on, or nil of text. Of a file, it has rows too that are left out of that as
// longer than may be.
func (t *Task) Examples() []data.Example {
	switch s := t.set.(type) {
	case *ruleSet:
		return s.examples
	case *rowSet:
		examples := make([]data.Example, len(s.held.number))
		for i := range examples {
			examples[i] = s.held.example(i)
		}
		return examples
	}
	return nil
}
