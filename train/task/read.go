package task

import (
	"fmt"

	"github.com/heed-go/heed/data"
)

// ReadExamples reads the rows of a file of the model's kind, or the lines of two parallel ones, beside the table that
// they are of, which says what is bad in the file. The columns are those given or else, where there are none, those
// that the model's run read, by the same names or numbers.
func (m *Model) ReadExamples(columns []string, files ...string) ([]data.Example, *data.Table, error) {
	c, err := m.reads(columns)
	if err != nil {
		return nil, nil, err
	}
	if len(files) < 1 || len(files) > 2 {
		return nil, nil, fmt.Errorf("examples are read from one file, or from two parallel ones, got %d", len(files))
	}
	table, err := readRows(&c, files[0], append(files, "")[1], new(string))
	if err != nil {
		return nil, nil, err
	}
	examples := make([]data.Example, table.Len())
	for i := range examples {
		examples[i] = data.Example{Source: table.Field(i, 0), Answer: table.Field(i, 1)}
	}
	return examples, table, nil
}

// OpenInputs opens a file of a column of inputs, whose rows are read one by one. The column is the one given or else,
// if that is empty, the one that the model's run had its sources in, by the same name or number.
func (m *Model) OpenInputs(column, file string) (*data.Records, error) {
	var columns []string
	if column != "" {
		columns = []string{column}
	}
	c, err := m.reads(columns)
	if err != nil {
		return nil, err
	}
	o := data.TableOptions{Known: c.Kind().Columns[:1]}
	if c.Data.Columns != nil {
		o.Columns = c.Data.Columns[:1]
	}
	return data.OpenRecords(file, o)
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
