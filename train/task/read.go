package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/train/model"
)

// judgeBytes is the approximate memory per row of its data.Example and of its Judged.
const judgeBytes = 400

// ReadExamples reads examples from one file of rows, or from the lines of two parallel files. It reads them with the
// settings of the model's run. To read a file in another way, change Columns, Header, SkipBad or Encoding in
// m.Config.Data first. The notes are warnings for the user, for example that bad rows were left out, or that the run
// was trained on this file.
func ReadExamples(m *model.Model, files ...string) (examples []data.Example, notes []string, err error) {
	c, err := readsRows(m)
	if err != nil {
		return nil, nil, err
	}
	if len(files) < 1 || len(files) > 2 {
		return nil, nil, fmt.Errorf("examples must come from one file or from two parallel files, got %d files", len(files))
	}
	c.pairs(3)
	k := kindOf(c.Task.Kind)
	// The file may have other columns than the run's.
	c.Task.Texts, c.Task.Scored, c.Training.Loss, c.Data.TargetFile = 0, false, "", append(files, "")[1]
	k.look(&c, files[0])
	format, numbered := c.format(k), false
	if check := format.Check; c.Opened() && c.Task.Classes != nil {
		first := k.about().symbols // the words of a token have other tags, which need its name
		format.Check = func(fields []string) (err error) {
			if check != nil && !first {
				err = check(fields)
			}
			if err == nil {
				numbered = c.nameLabels(&fields[len(fields)-1]) || numbered
			}
			if first {
				err = check(fields)
			}
			return err
		}
	}
	t, err := format.Read(&c.Data, judgeBytes, files[0], append(files, "")[1])
	if err != nil {
		return nil, nil, err
	}
	if _, err := k.read(&c, []*table.Table{t}); err != nil {
		return nil, nil, err
	}
	examples = make([]data.Example, t.Len())
	for i := range examples {
		examples[i] = data.Example{Source: t.Field(i, 0), Answer: t.Field(i, 1)}
	}
	if numbered {
		notes = append(notes, fmt.Sprintf("%s: numbers stand for the model's labels: 0 is %s", files[0], c.Task.Classes[0]))
	}
	for _, note := range t.Notes {
		notes = append(notes, files[0]+": "+note)
	}
	if t.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%s: left out %d bad rows of %d, the first: %v", files[0], t.LeftOut, t.LeftOut+t.Len(), t.Bad[0]))
	}
	answers := t.Columns[len(t.Columns)-1]
	if first := t.Header; first != nil && !t.Keyed && slices.Contains(c.Task.Classes, first[answers]) {
		source, label := first[t.Columns[0]], first[answers]
		notes = append(notes, fmt.Sprintf("%s: the first row, %.60q, %.60q, is read as the header, but %.60q is a label: with header no, it is a row", files[0], source, label, label))
	}
	if strings.Join(t.SHA256, " ") == m.Config.Data.SHA256 {
		notes = append(notes, fmt.Sprintf("the run was trained on %s: the score says nothing about other data", files[0]))
	}
	return examples, notes, nil
}

// nameLabels puts the model's labels in place of their numbers in an answer, and reports whether there are any.
func (c *Config) nameLabels(answer *string) (numbered bool) {
	separator := c.Task.Separator
	if kindOf(c.Task.Kind).about().symbols {
		separator = " "
	}
	labels := []string{*answer}
	if separator != "" {
		labels = strings.Split(*answer, separator)
	}
	for i, label := range labels {
		if n, err := strconv.Atoi(label); err == nil && n >= 0 && n < len(c.Task.Classes) && !slices.Contains(c.Task.Classes, label) {
			labels[i], numbered = c.Task.Classes[n], true
		}
	}
	*answer = strings.Join(labels, separator)
	return numbered
}

// noteAll passes notes about a file to Note.
func noteAll(m *model.Model, file string, notes []string) {
	for _, note := range notes {
		if m.Note != nil {
			m.Note(file + ": " + note)
		}
	}
}

// PredictFile reads and answers up to fileBatch rows at a time, or fewer if they have more than fileBytes bytes. This
// bounds the memory.
const (
	fileBatch = 1 << 13
	fileBytes = 1 << 24
)

// PredictFile answers the rows of a file (see data.Settings), and writes all rows with added values to w, in the form
// of the file, but without gzip. The column of inputs, the header and the encoding are found as in the model's run,
// unless the caller changed Columns, Header and Encoding in m.Config.Data. The Columns may leave out the column of
// answers.
//
// The function row returns the added values of a row, one for each name in added: strings, and for numbers
// json.Number. Its arguments are the number of the row's first line and its Answer. For a bad row, the Answer has only
// an Err and, as its Input, all fields of the row with tabs between them. If an Answer has an Err, the values are not
// written.
//
// In TSV and CSV, the values are added fields, empty without an answer. In TSV, a value with a tab or an end of line is
// quoted. If the file has a header, the names are appended to it. In JSONL, the values are added at the end of the
// object, as null without an answer; a line that isn't an object is written unchanged. In CoNLL, the line of each token
// gets its tag, and all other values unchanged; lines without an answer get "_". A name that the header or a line of
// JSONL already has gets the prefix "predicted_".
//
// PredictFile returns an error if ctx is done, if a row isn't valid CSV, so that it couldn't be written back, or if the
// file's encoding lacks a character of an answer. It reads some thousands of rows at a time.
func PredictFile(ctx context.Context, m *model.Model, file string, w io.Writer, o model.PredictOptions, added []string, row func(line int, a model.Answer) []any) error {
	c, err := readsRows(m)
	if err != nil {
		return err
	}
	c.pairs(2)
	if c.Opened() {
		common{kindOf(c.Task.Kind).about()}.look(&c, file)
	}
	format := c.format(kindOf(c.Task.Kind))
	records, err := table.Open(file, format.Inputs(&c.Data))
	if err != nil {
		return err
	}
	defer records.Close()
	noteAll(m, file, records.Notes())
	out, err := records.NewWriter(w, added...)
	if err != nil {
		return err
	}
	for done := false; !done; {
		var rows [][]string
		var lines []int
		var inputs []string
		var places []int // index in rows of each input
		var answers []model.Answer
		for bytes := 0; len(rows) < fileBatch && bytes < fileBytes && !done; {
			fields, line, err := records.Read()
			var bad *table.RowError
			var answer model.Answer
			switch {
			case err == io.EOF:
				done = true
				continue
			case errors.As(err, &bad) && bad.Fields != nil:
				fields, line = bad.Fields, bad.Line
				answer.Input, answer.Err = strings.Join(fields, "\t"), bad.Err
			case errors.As(err, &bad):
				return fmt.Errorf("%s, %w: this row can't be written back; correct it first", file, err)
			case err != nil:
				return err
			default:
				inputs, places = append(inputs, records.Wanted()[0]), append(places, len(rows))
			}
			for _, field := range fields {
				bytes += len(field) + 16 // a string takes 16 bytes
			}
			rows = append(rows, slices.Clone(fields))
			lines, answers = append(lines, line), append(answers, answer)
		}
		predicted, err := m.PredictAll(ctx, inputs, o)
		if err != nil {
			return err
		}
		for i, a := range predicted {
			if units := c.Data.SourceUnits; format.Tagged && (units == tokenizer.Words || units == tokenizer.Published) {
				tokenTags(&m.Config.Task, &a)
			}
			answers[places[i]] = a
		}
		for i, fields := range rows {
			values := row(lines[i], answers[i])
			if answers[i].Err != nil {
				values = nil
			}
			if err := out.Write(fields, values); err != nil {
				return cmp.Or(out.Close(), fmt.Errorf("%s, line %d: the row can't be written with its answer: %w", file, lines[i], err))
			}
		}
	}
	return out.Close()
}

// pairs makes a configuration for reading the rows of a published model read two texts per row, if its Columns have
// this number. Such a model doesn't say whether it was trained on one text or two.
func (c *Config) pairs(columns int) {
	if c.Task.Pairs = c.Task.Pairs || c.Opened() && len(c.Data.Columns) == columns; c.Opened() && len(c.Data.Columns) == columns && columns == 2 {
		c.Data.Columns = append(slices.Clip(c.Data.Columns), "") // of the labels, which aren't read
	}
}

// readsRows returns the configuration for reading rows.
func readsRows(m *model.Model) (Config, error) {
	return *configOf(m), m.Config.Describe().Rows
}

// openTexts opens a file to read the texts of one column, which may be empty or not.
func openTexts(m *model.Model, file string, empty bool) (*table.Records, error) {
	s, column := &m.Config.Data, textColumn
	column.Empty = empty
	return table.Open(file, table.Options{Columns: s.Columns, Known: []table.Column{column}, Header: s.Header, Quotes: s.Quotes, Encoding: s.Encoding})
}

// EmbedFile embeds a column of a file of rows: see data.Settings, of which m.Config.Data has the Columns, the Header
// and the Encoding. It calls do with the texts and the vectors of some thousand rows at a time, in the order of the
// rows. It returns an error at a bad row, so that no vector is missing, and the errors of Embed and of do.
func EmbedFile(ctx context.Context, m *model.Model, file string, do func(texts []string, vectors [][]float32) error) error {
	return eachTexts(m, file, false, func(texts []string) error {
		vectors, _, err := m.Embed(ctx, texts)
		if err == nil {
			err = do(texts, vectors)
		}
		return err
	})
}

// ReadTexts returns the texts of a column of a file of rows, which it reads as EmbedFile does, but texts may be empty.
// It returns an error if the memory is too small for them.
func ReadTexts(m *model.Model, file string) (texts []string, err error) {
	size := 0
	err = eachTexts(m, file, true, func(some []string) error {
		for _, text := range some {
			size += len(text) + 64 // a string and its place among others
		}
		texts = append(texts, some...)
		return memory.Check(size)
	})
	return texts, err
}

// eachTexts calls do with the texts of some thousand rows at a time.
func eachTexts(m *model.Model, file string, empty bool, do func(texts []string) error) error {
	records, err := openTexts(m, file, empty)
	if err != nil {
		return err
	}
	defer records.Close()
	noteAll(m, file, records.Notes())
	for done := false; !done; {
		var texts []string
		for bytes := 0; len(texts) < fileBatch && bytes < fileBytes && !done; {
			_, _, err := records.Read()
			if done = err == io.EOF; err != nil && !done {
				return fmt.Errorf("%s, %w", file, err)
			}
			if !done {
				texts = append(texts, records.Wanted()[0])
				bytes += len(texts[len(texts)-1])
			}
		}
		if err := do(texts); err != nil {
			return err
		}
	}
	return nil
}
