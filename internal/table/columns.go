package table

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

const (
	columnsPath = setting.Path("data.columns")
	headerPath  = setting.Path("data.header")
	quotesPath  = setting.Path("data.quotes")
	skipBadPath = setting.Path("data.skip_bad")
)

// ErrSeveral is wrapped by the error about a row that has several labels, or none, in place of one.
var ErrSeveral = errors.New("each row must have one here")

// A Column is a column that rows must have.
type Column struct {
	Role  string   // noun for its fields, such as "label"
	Names []string // names that a header may use for it, the likeliest first; case and spaces around a name make no difference
	One   bool     // a row has one label; several, or none in a list, are an error that wraps ErrSeveral
	Empty bool     // a field may be empty; Check must then replace it
	Tabs  bool     // a field keeps its tabs if Join joins it; otherwise, they become spaces
	Raw   bool     // an array or an object in JSONL is taken as JSON

	// Several, if it isn't empty, stands between the labels of a row, which may have any number of them: texts of an
	// array in JSONL or of a list in a field, labels of a line in fastText, or parts of a field. The field of a row
	// without labels is Several.
	Several string
}

// element matches an element of a list as Python, NumPy and JSON write it, and elements a list without its brackets.
var (
	element  = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d*)?`)
	elements = regexp.MustCompile(`^\s*(?:(?:` + element.String() + `)(?:\s*,\s*|\s+|$))*$`)
)

// elementsOf returns the elements of a field that is a list.
func elementsOf(field string) (texts []string, ok bool) {
	inside, begins := strings.CutPrefix(strings.TrimSpace(field), "[")
	inside, ends := strings.CutSuffix(inside, "]")
	if !begins || !ends || !elements.MatchString(inside) {
		return nil, false
	}
	for _, text := range element.FindAllString(inside, -1) {
		if quote := text[0]; (quote == '\'' || quote == '"') && json.Unmarshal([]byte(text), &text) != nil {
			text = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`).Replace(text[1 : len(text)-1])
		}
		texts = append(texts, text)
	}
	return texts, true
}

// join returns the field of a row with these labels or tokens.
func (c Column) join(labels []string) (string, error) {
	if c.One && len(labels) != 1 {
		return "", fmt.Errorf("%s, but %w", text.Count(len(labels), "label"), ErrSeveral)
	}
	if i := slices.IndexFunc(labels, func(label string) bool { return strings.Contains(label, c.Several) }); c.Several != "" && i >= 0 {
		return "", fmt.Errorf("the label %.60q, which contains %q: choose another separator of labels", labels[i], c.Several)
	}
	return strings.Join(labels, cmp.Or(c.Several, " ")), nil
}

// Options says which columns of a table are wanted, and which rows are good. Columns, Header and SkipBad are the
// settings data.columns, data.header and data.skip_bad of a configuration. Errors that name them are *setting.Errors.
type Options struct {
	// Columns lists the wanted columns in order, each by its name in the header or by its number, from 1. The elements
	// must differ. A number is never used as a name. JSONL has only names, the keys, and CoNLL has only numbers. If
	// Columns is nil, the wanted columns are found by their Known names in the header or, in JSONL, among the keys of
	// the first object. Without such a header, they are the first columns, one for each element of Known. A first row
	// with three or more columns must then have no others.
	Columns []string

	// Known describes the wanted columns in order. Known may be nil if Columns is set; then columns have neither roles
	// nor known names.
	Known []Column

	// Join makes one field of the wanted columns from index Join[0] to Join[1]−1: their texts with tabs between them.
	// Tabs inside these texts become spaces.
	Join [2]int

	// Header is "yes" if the first row is a header, and "no" if it is a row like any other. If Header is empty, the
	// first row is a header if it has a Known name for every wanted column, or if Columns has a name.
	Header string

	// Quotes is "no" if the quotes in TSV are part of its fields. If it is empty, they are, unless all fields of the
	// first row, or nearly all of a column, begin and end with them.
	Quotes string

	// SkipBad allows Read and ReadParallel to leave out more than one bad row in a hundred.
	SkipBad bool

	// Encoding is the file's encoding, by a name of the WHATWG Encoding Standard, such as windows-1252. If it is empty,
	// the encoding is UTF-8. A byte-order mark overrides it.
	Encoding string

	// Tagged says that the columns are tokens and, if there are two, their tags. Only then may the file be CoNLL.
	Tagged bool

	// RowBytes is how many bytes of memory the caller will need for each row, beside the Table. Read and ReadParallel
	// return an error as soon as the rows need more than there is.
	RowBytes int

	// Check returns an error if the wanted fields of a row are wrong in some other way. It may replace fields by others
	// of at most 4 MiB together. It must not keep the slice. Check may be nil.
	Check func(fields []string) error
}

// complete sets Known if it is nil. It returns an error if the Options contradict each other.
func (o *Options) complete() error {
	if o.Known == nil {
		o.Known = make([]Column, len(o.Columns))
	}
	switch {
	case o.Header != "" && o.Header != "yes" && o.Header != "no":
		return setting.Errorf("%s must be yes or no, got %s", headerPath, o.Header)
	case o.Quotes != "" && o.Quotes != "no":
		return setting.Errorf("%s must be no, or empty, got %s", quotesPath, o.Quotes)
	case len(o.Known) == 0:
		return errors.New("columns: there are none: set Columns or Known in Options")
	}
	if err := CheckColumns(o.Columns, o.Known); err != nil {
		return err
	}
	for i, name := range o.Columns {
		if slices.Contains(o.Columns[:i], name) {
			return setting.Errorf("%s must be different columns, got %s", columnsPath, strings.Join(o.Columns, ", "))
		}
	}
	return nil
}

// CheckColumns returns an error if columns isn't nil and its number differs from the number of known columns.
func CheckColumns(columns []string, known []Column) error {
	if columns == nil || len(columns) == len(known) {
		return nil
	}
	return setting.Errorf("%s must name %s, %s, got %q", columnsPath, text.Count(len(known), "column"), roles(known), columns)
}

// findColumns returns the index of each wanted column, from 0, and reports whether the first row is a row like any
// other instead of a header.
func findColumns(first []string, o Options) (columns []int, isRow bool, err error) {
	if o.Columns == nil {
		return knownColumns(first, o)
	}
	named := false
	for _, name := range o.Columns {
		column, err := strconv.Atoi(name)
		if column--; err != nil && o.Header == "no" {
			err = setting.Errorf("%s is no, so %s must be numbers, got %q", headerPath, columnsPath, name)
		} else if err != nil {
			named = true
			column, err = columnNamed(first, name)
		} else if column < 0 {
			err = setting.Errorf("%s: numbers start at 1, got %s", columnsPath, name)
		}
		if err != nil {
			return nil, false, err
		}
		columns = append(columns, column)
	}
	return columns, o.Header == "no" || o.Header == "" && !named && !o.isHeader(first), nil
}

// knownColumns finds columns by their known names. If a name is missing, it returns the first columns of the file.
func knownColumns(first []string, o Options) (columns []int, isRow bool, err error) {
	isRow = o.Header == "no"
	names := make([]string, len(o.Known))
	for i, c := range o.Known {
		columns = append(columns, i)
		j := slices.IndexFunc(c.Names, func(name string) bool { return hasName(first, name) })
		if j < 0 {
			isRow = true
		} else {
			names[i] = c.Names[j]
		}
	}
	if isRow && len(first) > max(2, len(names)) {
		return nil, false, manyColumns(first, names, o)
	}
	for i := 0; i < len(names) && !isRow && err == nil; i++ {
		columns[i], err = columnNamed(first, names[i])
	}
	return columns, isRow && o.Header != "yes", err
}

// manyColumns returns the error for a row with too many columns to guess the wanted ones. The argument names has their
// known names in the row, or "". The error's example has the last columns, except where a name is known.
func manyColumns(first, names []string, o Options) error {
	example := make([]int, len(names))
	for i := range example {
		example[i] = len(first) - len(names) + i
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		column := slices.IndexFunc(first, func(f string) bool { return sameName(f, name) })
		if j := slices.Index(example, column); j >= 0 {
			example[j] = example[i]
		}
		example[i] = column
	}
	var byName, byNumber []string
	for _, column := range example {
		name := strings.TrimSpace(first[column])
		_, twice := columnNamed(first, name)
		if twice == nil && mayName(name) {
			byName = append(byName, name)
		}
		byNumber = append(byNumber, strconv.Itoa(column+1))
	}
	text := "it has %d columns, but no header with known names. The first row is %s: choose %s, as in %s %s"
	if len(byName) < len(example) || o.Header == "no" {
		byName = byNumber
	} else if o.Header == "" {
		return setting.Errorf(text+" if this row is a header, or as in %s %s if it isn't", len(first), listed(first), roles(o.Known),
			columnsPath, strings.Join(byName, ","), columnsPath, strings.Join(byNumber, ","))
	}
	return setting.Errorf(text, len(first), listed(first), roles(o.Known), columnsPath, strings.Join(byName, ","))
}

// mayName reports whether a field may be the name of a column: it is a short word, and no number.
func mayName(s string) bool {
	s = strings.TrimSpace(s)
	_, err := strconv.ParseFloat(s, 64)
	return err != nil && s != "" && len(s) <= 30 && !strings.ContainsFunc(s, isOdd)
}

// isOdd reports whether a character may need quotes in a flag.
func isOdd(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
}

// listed lists the columns of a row, with their numbers.
func listed(row []string) string {
	return text.List(len(row), 20, ", ", func(i int) string { return fmt.Sprintf("(%d) %.30q", i+1, row[i]) })
}

// roles lists the roles of columns, such as "the text and the label".
func roles(columns []Column) string {
	var s strings.Builder
	for i, c := range columns {
		switch {
		case i > 0 && i == len(columns)-1:
			s.WriteString(" and ")
		case i > 0:
			s.WriteString(", ")
		}
		s.WriteString("the " + c.Role)
	}
	return s.String()
}

// Index returns the index of the first column in a header that has one of the names, or -1 if there is none.
func (c Column) Index(header []string) int {
	return slices.IndexFunc(header, func(name string) bool { return hasName(c.Names, name) })
}

// columnNamed returns the index of the only column with this name in a header.
func columnNamed(header []string, name string) (int, error) {
	same := func(f string) bool { return sameName(f, name) }
	column := slices.IndexFunc(header, same)
	problem, advice := "", ""
	switch {
	case column < 0:
		problem, advice = "isn't in the header, which", text.DidYouMean(name, header)
	case slices.ContainsFunc(header[column+1:], same):
		problem = "is in the header twice, so use its number instead: the header"
	default:
		return column, nil
	}
	if len(header) == 1 && strings.ContainsAny(header[0], ",;") {
		advice = ": if its columns are between commas or semicolons, let the file's name end in .csv"
	}
	return 0, fmt.Errorf("column %q %s has %s%s", name, problem, listed(header), advice)
}

// hasName reports whether a list has a name.
func hasName(list []string, name string) bool {
	return slices.ContainsFunc(list, func(f string) bool { return sameName(f, name) })
}

func sameName(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// isHeader reports whether a row has a known or a wanted name for every wanted column.
func (o Options) isHeader(row []string) bool {
	if o.Header == "no" || len(row) == 0 || o.Columns == nil && len(o.Known) == 0 {
		return false
	}
	if o.Columns == nil {
		return !slices.ContainsFunc(o.Known, func(c Column) bool { return c.Index(row) < 0 })
	}
	for i, name := range o.Columns {
		column, err := strconv.Atoi(name)
		if err != nil && !hasName(row, name) {
			return false
		}
		if err == nil && (column < 1 || column > len(row) || i >= len(o.Known) || o.Known[i].Index(row[column-1:column]) < 0) {
			return false
		}
	}
	return true
}
