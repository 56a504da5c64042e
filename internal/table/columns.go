package table

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// findColumns returns the index of each wanted column, from 0, and reports whether the first row is a row like any
// other instead of a header.
func findColumns(first []string, o Options) (columns []int, isRow bool, err error) {
	if o.Columns == nil {
		return knownColumns(first, o)
	}
	named, allKnown := false, true
	for i, name := range o.Columns {
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
		allKnown = allKnown && column < len(first) && slices.ContainsFunc(o.Known[i].Names, func(k string) bool { return sameName(k, first[column]) })
	}
	return columns, o.Header == "no" || o.Header == "" && !named && !allKnown, nil
}

const (
	columnsPath = setting.Path("data.columns")
	headerPath  = setting.Path("data.header")
	skipBadPath = setting.Path("data.skip_bad")
)

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
		if _, err := strconv.Atoi(name); err != nil && twice == nil && name != "" && len(name) <= 30 && !strings.ContainsFunc(name, isOdd) {
			byName = append(byName, name)
		}
		byNumber = append(byNumber, strconv.Itoa(column+1))
	}
	text := "it has %d columns, but no header with known names. The first row is %s: choose %s, as in %s %s"
	if len(byName) < len(example) || o.Header == "no" {
		byName = byNumber
	} else if o.Header == "" {
		return setting.Errorf(text+" if this row is a header, or as in %s %s if it isn't", len(first), listed(first), Roles(o.Known),
			columnsPath, strings.Join(byName, ","), columnsPath, strings.Join(byNumber, ","))
	}
	return setting.Errorf(text, len(first), listed(first), Roles(o.Known), columnsPath, strings.Join(byName, ","))
}

// isOdd reports whether a character may need quotes in a flag.
func isOdd(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
}

// listed lists the columns of a row, with their numbers.
func listed(row []string) string {
	return text.List(len(row), 20, ", ", func(i int) string { return fmt.Sprintf("(%d) %.30q", i+1, row[i]) })
}

// Roles lists the roles of columns, such as "the text and the label".
func Roles(columns []Column) string {
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

// hasName reports whether a header has a name.
func hasName(header []string, name string) bool {
	return slices.ContainsFunc(header, func(f string) bool { return sameName(f, name) })
}

func sameName(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }
