package toy

import (
	"fmt"
	"strconv"
	"time"
)

// isoDate reads a date in one of dateFormats and returns it like 2024-03-07.
func isoDate(source string) (string, error) {
	for _, format := range dateFormats {
		if w, ok := readDate(format, lower(source)); ok {
			date, err := w.date()
			if err != nil {
				return "", err
			}
			return date.Format(time.DateOnly), nil
		}
	}
	return "", fmt.Errorf("can't read %q as a date: write it like one of %s", source, dateExamples)
}

// A writtenDate has the fields of a source. It may be a date that doesn't exist, such as February 30. Fields that the
// format doesn't have are zero.
type writtenDate struct {
	weekday, monthName string
	year, month, day   int
	shortYear          bool   // the year has two digits
	suffix             string // suffix of the day if it is an ordinal, such as "th"
}

// readDate reads a lower-case source in a format. It returns false if the source isn't in that format.
func readDate(format, source string) (w writtenDate, ok bool) {
	for i := 0; i < len(format); i++ {
		n := 0
		if format[i] == '%' {
			i++
			n = w.read(format[i], source)
		} else if source != "" && source[0] == format[i] {
			n = 1
		}
		if n == 0 {
			return w, false
		}
		source = source[n:]
	}
	return w, source == ""
}

// read reads one field at the start of a source. It returns the field's length in bytes, or 0 if there is no such
// field.
func (w *writtenDate) read(field byte, source string) int {
	digits := func(value *int, least, limit int) int {
		n := prefix(source, limit, isDigit)
		if n < least {
			return 0
		}
		*value, _ = strconv.Atoi(source[:n]) // at most four digits
		return n
	}
	word := func(text *string) int {
		n := prefix(source, len(source), isLetter)
		*text = source[:n]
		return n
	}
	switch field {
	case 'A':
		return word(&w.weekday)
	case 'B':
		return word(&w.monthName)
	case 'm':
		return digits(&w.month, 1, 2)
	case 'M':
		return digits(&w.month, 2, 2)
	case 'd':
		return digits(&w.day, 1, 2)
	case 'D':
		return digits(&w.day, 2, 2)
	case 'o':
		n := digits(&w.day, 1, 2)
		suffix := prefix(source[n:], 2, isLetter)
		if n == 0 || suffix < 2 {
			return 0
		}
		w.suffix = source[n:][:suffix]
		return n + suffix
	case 'y':
		if prefix(source, 4, isDigit) == 2 {
			w.shortYear = true
			return digits(&w.year, 2, 2)
		}
	}
	return digits(&w.year, 4, 4)
}

// date returns the date, or an error if it doesn't exist.
func (w writtenDate) date() (zero time.Time, err error) {
	year, month := w.year, w.month
	if w.shortYear {
		if year += 1900; year < firstYear {
			year += 100
		}
	}
	if year < firstYear || year > lastYear {
		return zero, fmt.Errorf("the year must be from %d to %d, got %d", firstYear, lastYear, year)
	}
	if w.monthName != "" {
		if month = nameIndex(w.monthName, 12, func(i int) string { return time.Month(i).String() }); month == 0 {
			return zero, fmt.Errorf("there is no month %q: write its English name or its first three letters", w.monthName)
		}
	}
	if month < 1 || month > 12 {
		return zero, fmt.Errorf("there is no month %d: with dots the day is first (7.3.2024), with slashes the month (3/7/2024)", month)
	}
	date := time.Date(year, time.Month(month), w.day, 0, 0, 0, 0, time.UTC)
	switch {
	case date.Day() != w.day:
		return zero, fmt.Errorf("there is no day %d in %v %d", w.day, time.Month(month), year)
	case w.suffix != "" && w.suffix != ordinal(w.day):
		return zero, fmt.Errorf("the day must be %d%s, got %d%s", w.day, ordinal(w.day), w.day, w.suffix)
	case w.weekday == "":
		return date, nil
	}
	weekday := nameIndex(w.weekday, 7, func(i int) string { return time.Weekday(i % 7).String() })
	if weekday == 0 {
		return zero, fmt.Errorf("there is no day of the week %q: write its English name or its first three letters", w.weekday)
	}
	if got, want := time.Weekday(weekday%7), date.Weekday(); got != want {
		return zero, fmt.Errorf("%s is a %v, not a %v", date.Format(time.DateOnly), want, got)
	}
	return date, nil
}

// nameIndex returns the index, from 1 to n, of the name that a lower-case word spells or abbreviates to three letters.
// It returns 0 if there is none.
func nameIndex(word string, n int, name func(i int) string) int {
	for i := 1; i <= n; i++ {
		if s := lower(name(i)); word == s || word == s[:3] {
			return i
		}
	}
	return 0
}

// prefix returns the number of bytes at the start of s that accept returns true for, up to limit.
func prefix(s string, limit int, accept func(c byte) bool) int {
	n := 0
	for n < len(s) && n < limit && accept(s[n]) {
		n++
	}
	return n
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// lower returns s with A to Z in lower case and everything else unchanged.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
