package table

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/textfile"
)

// conllRows reads CoNLL. A row is a sentence. Its fields are the cells of each wanted column, joined with spaces, and
// then all lines of the sentence. These include the lines up to the first token of the next sentence.
type conllRows struct {
	in      lineReader
	form    form
	columns []int  // wanted columns of each token's line, from 0
	held    []byte // first token's line of the next sentence, if it has been read
	fields  []string
}

// newCoNLLRows returns a reader of the wanted columns of each sentence.
func newCoNLLRows(lines lineReader, f form, o Options) (*conllRows, error) {
	if !o.Tagged {
		return nil, errors.New("it is CoNLL, with one token per line: only the task tagging with units tokens reads such files")
	}
	c := &conllRows{in: lines, form: f}
	for _, name := range o.Columns {
		column, err := strconv.Atoi(name)
		if err != nil || column < 1 {
			return nil, setting.Errorf("CoNLL has no header, so %s must be numbers from 1, such as 1,%d, got %q", columnsPath, max(2, f.columns), name)
		}
		c.columns = append(c.columns, column-1)
	}
	switch {
	case o.Columns != nil:
	case f.universal:
		c.columns = []int{1, 3}[:len(o.Known)] // FORM and UPOS
	default:
		c.columns = []int{0, max(1, f.columns-1)}[:len(o.Known)]
	}
	return c, nil
}

func (c *conllRows) names() []string {
	var names []string
	for _, column := range c.columns {
		names = append(names, strconv.Itoa(column+1))
	}
	return names
}

func (c *conllRows) next() (row, error) {
	var lines strings.Builder
	cells := make([][]string, len(c.columns))
	first, ended := 0, false // line of the first token, and whether the sentence has ended
	var bad *RowError
	for {
		line, err := c.line()
		if err == io.EOF && first > 0 {
			break
		} else if err != nil {
			return row{}, err
		}
		token := c.form.token(string(line))
		if token != nil && ended {
			c.held = line
			break
		}
		if lines.Len()+len(line) > maxRow {
			return row{}, fmt.Errorf("line %d: the sentence up to this line has more than %d MiB: check that an empty line ends each sentence", c.in.lines, maxRow>>20)
		}
		lines.Write(line)
		lines.WriteByte('\n')
		if token == nil {
			cells := cellsOf(string(line))
			ended = first > 0 && (ended || len(cells) == 0 || cells[0] == docStart)
			continue
		}
		if first == 0 {
			first = c.in.lines
		}
		for i, column := range c.columns {
			cell, err := cellAt(token, column)
			if err != nil && bad == nil {
				bad = &RowError{Line: c.in.lines, Err: err, rows: 1}
			}
			cells[i] = append(cells[i], cell)
		}
	}
	c.fields = c.fields[:0]
	for _, column := range cells {
		c.fields = append(c.fields, strings.Join(column, " "))
	}
	c.fields = append(c.fields, lines.String())
	if bad != nil {
		bad.Fields = c.fields
		return row{}, bad
	}
	return row{c.fields, first}, nil
}

// line returns the next line.
func (c *conllRows) line() ([]byte, error) {
	if line := c.held; line != nil {
		c.held = nil
		return line, nil
	}
	return c.in.next()
}

// cellAt returns a cell of a token's line, with "_" for white space. The column counts from 0.
func cellAt(token []string, column int) (string, error) {
	if column >= len(token) || token[column] == "" {
		return "", fmt.Errorf("column %d is empty or missing: the line has %s", column+1, text.Count(len(token), "column"))
	}
	if err := textfile.CheckUTF8(token[column]); err != nil {
		return "", fmt.Errorf("column %d is %w", column+1, err)
	}
	return joined(token[column]), nil
}

// joined replaces white space in a cell, so that the cell is one token.
func joined(cell string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, cell)
}

// docStart is the first cell of a line that separates documents.
const docStart = "-DOCSTART-"

// token returns the cells of a token's line. It returns nil for other lines: empty lines, comments, starts of
// documents and, in CoNLL-U, multiword ranges such as 3-4 and empty nodes such as 5.1.
func (f form) token(line string) []string {
	cells := cellsOf(line)
	if len(cells) == 0 || cells[0] == docStart || f.isComment(line) ||
		f.universal && strings.ContainsAny(cells[0], "-.") && strings.Trim(cells[0], "0123456789-.") == "" {
		return nil
	}
	return cells
}

// isComment reports whether a line is a comment. Outside CoNLL-U, a line that begins with # may be a token's, and then
// it has as many cells as other lines, and a last cell that other lines have too.
func (f form) isComment(line string) bool {
	if !strings.HasPrefix(line, "#") {
		return false
	}
	cells := cellsOf(line)
	return f.universal || len(cells) != f.columns || len(cells) > 1 && !f.lasts[cells[len(cells)-1]]
}

// cellsOf splits a line of CoNLL at tabs or, if it has none, at spaces.
func cellsOf(line string) []string {
	line = strings.TrimRight(line, " \t")
	if !strings.Contains(line, "\t") {
		return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
	}
	cells := strings.Split(line, "\t")
	for i := range cells {
		cells[i] = strings.Trim(cells[i], " ")
	}
	return cells
}

// conllColumns returns the number of cells in the first token's line, and all last cells of the lines that don't begin
// with #.
func conllColumns(head string) (columns int, lasts map[string]bool) {
	lasts = map[string]bool{}
	for line := range strings.Lines(head) {
		if cells := cellsOf(strings.TrimRight(line, "\r\n")); len(cells) > 0 && cells[0] != docStart && !strings.HasPrefix(line, "#") {
			columns = cmp.Or(columns, len(cells))
			lasts[cells[len(cells)-1]] = true
		}
	}
	return columns, lasts
}
