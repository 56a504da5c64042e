package toy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/heed-go/heed/data"
)

// Dates are from the first day of firstYear to the last day of lastYear. These are one hundred years, so two digits
// identify a year: 50 to 99 mean 1950 to 1999, and 00 to 49 mean 2000 to 2049.
const (
	firstYear = 1950
	lastYear  = 2049

	longestDate = len("Wednesday, September 30, 2024")
)

// dateFormats are the accepted ways to write a date, in upper or lower case.
//
//	%A  the day of the week: its name or its first three letters
//	%B  the month: its name or its first three letters
//	%Y  the year, four digits       %y  the year, two or four digits
//	%m  the month, 1 or 2 digits    %M  the month, two digits
//	%d  the day, 1 or 2 digits      %D  the day, two digits
//	%o  the day as an ordinal, such as 1st or 22nd
var dateFormats = [...]string{
	"%B %d, %Y",        // March 7, 2024
	"%B %d %Y",         // march 7 2024
	"%d %B %Y",         // 7 Mar 2024
	"%A, %B %d, %Y",    // Thursday, March 7, 2024
	"%A, %d %B %Y",     // Thu, 7 March 2024
	"%A %d %B %Y",      // Thu 7 Mar 2024
	"%B %o, %Y",        // March 7th, 2024
	"%o %B %Y",         // 7th March 2024
	"%o of %B %Y",      // 7th of March 2024
	"the %o of %B, %Y", // the 7th of March, 2024
	"%d-%B-%y",         // 7-mar-24
	"%d.%m.%y",         // 7.3.2024: with dots the day is first
	"%m/%d/%y",         // 3/7/2024: with slashes the month is first
	"%Y-%M-%D",         // 2024-03-07
	"%Y/%M/%D",         // 2024/03/07
	"%Y%M%D",           // 20240307
}

const dateExamples = "March 7, 2024; Thu, 7 Mar 2024; the 7th of March, 2024; 7-Mar-24; 7.3.2024 (day first); 3/7/2024 (month first); 20240307"

// datesRule turns dates from firstYear to lastYear, as people write them, into ISO 8601. After a hyphen, dot or slash,
// a year may have two digits.
var datesRule = data.Rule{
	Name: "dates", About: "a date from 1950 to 2049, in ISO 8601", Kind: data.KindSeq2Seq,
	Alphabet: letters + "0123456789 ,./-", MaxLen: longestDate, MaxAnswer: len(time.DateOnly), Example: "7 March 2024",
	Sample:   func(rng *rand.Rand, _ int) string { return writeDate(rng, randomDate(rng)) },
	Answer:   isoDate,
	Spell:    func(source, answer string) (string, string) { return lower(source), answer },
	ByAnswer: true,
}

// randomDate returns a day from firstYear to lastYear. All days are equally likely.
func randomDate(rng *rand.Rand) time.Time {
	first := time.Date(firstYear, time.January, 1, 0, 0, 0, 0, time.UTC)
	end := time.Date(lastYear+1, time.January, 1, 0, 0, 0, 0, time.UTC)
	return first.AddDate(0, 0, rng.IntN(int(end.Sub(first).Hours()/24)))
}

// writeDate writes a date in a random format, with or without abbreviations and leading zeros, and sometimes all in
// lower case or all in capitals.
func writeDate(rng *rand.Rand, date time.Time) string {
	source := formatDate(dateFormats[rng.IntN(len(dateFormats))], date, rng.IntN(2) == 0, rng.IntN(2) == 0)
	switch rng.IntN(4) {
	case 0:
		return lower(source)
	case 1:
		return strings.ToUpper(source)
	}
	return source
}

// formatDate writes a date in a format. With short, it abbreviates names and the year. With padded, it adds leading
// zeros.
func formatDate(format string, date time.Time, short, padded bool) string {
	var s strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			s.WriteByte(format[i])
			continue
		}
		i++
		s.WriteString(formatField(format[i], date, short, padded))
	}
	return s.String()
}

// formatField writes one field of a format.
func formatField(field byte, date time.Time, short, padded bool) string {
	number := func(long bool, n int) string {
		if long {
			return fmt.Sprintf("%02d", n)
		}
		return fmt.Sprint(n)
	}
	name := func(s string) string {
		if short {
			return s[:3]
		}
		return s
	}
	switch field {
	case 'A':
		return name(date.Weekday().String())
	case 'B':
		return name(date.Month().String())
	case 'y':
		if short {
			return number(true, date.Year()%100)
		}
		return fmt.Sprint(date.Year())
	case 'm', 'M':
		return number(padded || field == 'M', int(date.Month()))
	case 'd', 'D':
		return number(padded || field == 'D', date.Day())
	case 'o':
		return fmt.Sprint(date.Day(), ordinal(date.Day()))
	}
	return fmt.Sprint(date.Year())
}

// ordinal returns the suffix of an ordinal number from 1 to 31, such as "st".
func ordinal(n int) string {
	if n < 11 || n > 13 {
		switch n % 10 {
		case 1:
			return "st"
		case 2:
			return "nd"
		case 3:
			return "rd"
		}
	}
	return "th"
}
