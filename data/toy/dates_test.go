package toy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
)

func TestDates(t *testing.T) {
	task := named(t, "dates", 0)
	if task.MaxLen != 29 || task.MaxAnswer != 10 {
		t.Errorf("got MaxLen %d and MaxAnswer %d, want 29 and 10", task.MaxLen, task.MaxAnswer)
	}
	for source, want := range map[string]string{
		"March 7, 2024":                 "2024-03-07",
		"Mar 7, 2024":                   "2024-03-07",
		"march 07, 2024":                "2024-03-07",
		"mar 7 2024":                    "2024-03-07",
		"mArCh 7th, 2024":               "2024-03-07",
		"7 March 2024":                  "2024-03-07",
		"7th March 2024":                "2024-03-07",
		"7TH OF MARCH 2024":             "2024-03-07",
		"the 7th of March, 2024":        "2024-03-07",
		"Thursday, March 7, 2024":       "2024-03-07",
		"Thu, 7 Mar 2024":               "2024-03-07",
		"THU 7 MAR 2024":                "2024-03-07",
		"7-Mar-24":                      "2024-03-07",
		"07-march-2024":                 "2024-03-07",
		"7.3.2024":                      "2024-03-07",
		"07.03.24":                      "2024-03-07",
		"3/7/2024":                      "2024-03-07",
		"03/07/24":                      "2024-03-07",
		"2024-03-07":                    "2024-03-07",
		"2024/03/07":                    "2024-03-07",
		"20240307":                      "2024-03-07",
		"Wednesday, September 30, 2026": "2026-09-30",
		"1.2.49":                        "2049-02-01",
		"1.2.50":                        "1950-02-01",
		"12/31/99":                      "1999-12-31",
		"1-jan-00":                      "2000-01-01",
		"29 Feb 2000":                   "2000-02-29",
		"29.2.52":                       "1952-02-29",
		"May 1st, 1999":                 "1999-05-01",
		"2nd may 1999":                  "1999-05-02",
		"the 3rd of may, 1999":          "1999-05-03",
		"11th of may 1999":              "1999-05-11",
		"22nd of may 1999":              "1999-05-22",
		"Sun 2 Jan 2000":                "2000-01-02",
	} {
		if got, err := solve(task, source); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %s", source, got, err, want)
		}
	}
}

func TestDatesErrors(t *testing.T) {
	task := named(t, "dates", 0)
	const unread = "as a date: write it like one of March 7, 2024"
	for source, want := range map[string]string{
		"":                                       "task dates: the source is empty",
		"February 30, 2024":                      "there is no day 30 in February 2024",
		"29 Feb 2023":                            "there is no day 29 in February 2023",
		"31.4.2024":                              "there is no day 31 in April 2024",
		"0.4.2024":                               "there is no day 0 in April 2024",
		"20240432":                               "there is no day 32 in April 2024",
		"3/32/2024":                              "there is no day 32 in March 2024",
		"13/7/2024":                              "there is no month 13: with dots the day is first (7.3.2024), with slashes the month (3/7/2024)",
		"7.13.2024":                              "there is no month 13",
		"2024-00-07":                             "there is no month 0",
		"7 Brumaire 2024":                        `there is no month "brumaire"`,
		"7 Ma 2024":                              `there is no month "ma"`,
		"7 Sept 2024":                            `there is no month "sept"`,
		"Friday, March 7, 2024":                  "2024-03-07 is a Thursday, not a Friday",
		"Someday, March 7, 2024":                 `there is no day of the week "someday"`,
		"7st March 2024":                         "the day must be 7th, got 7st",
		"11st March 2024":                        "the day must be 11th, got 11st",
		"21th March 2024":                        "the day must be 21st, got 21th",
		"March 7, 1949":                          "the year must be from 1950 to 2049, got 1949",
		"20500101":                               "got 2050",
		"March 7, 24":                            unread,
		"March 7":                                unread,
		"March 7,  2024":                         unread,
		" March 7, 2024":                         unread,
		"March 7, 2024 ":                         unread,
		"March 7, 20240":                         unread,
		"March 007, 2024":                        unread,
		"2024-3-7":                               unread,
		"7.3.024":                                unread,
		"7.3.202":                                unread,
		"7t March 2024":                          unread,
		"the 7 of March, 2024":                   unread,
		"7.3/2024":                               unread,
		"2024":                                   unread,
		"yesterday":                              unread,
		"7 März 2024":                            "symbol 'ä' at position 3",
		"7\tMarch 2024":                          `symbol '\t' at position 1`,
		"March 7, 2024, at noon!":                "symbol '!'",
		"March \xff":                             "not UTF-8: the byte at offset 6",
		"\u212aMar":                              "symbol '\u212a'", // the Kelvin sign, whose small letter is a k
		"Wednesday, September 30th, 2026, or so": "at most 29 symbols, got 38",
	} {
		must.Refuse(solve(task, source))(t, "task dates: ", want)
	}
	must.Refuse(Named("dates", 10))(t, "task dates: the maximum source length is 29 symbols and can't be changed to 10")
	if _, err := Named("dates", 29); err != nil {
		t.Error(err)
	}
}

// Every format is drawn about equally often. Every sample is within the rule's limits and has an answer.
func TestSampleDates(t *testing.T) {
	t.Parallel()
	task := named(t, "dates", 0)
	rng := rand.New(rand.NewPCG(1, 2))
	days := make(map[string]bool)
	formats := make(map[string]int)
	longest, samples := 0, 40_000
	for range samples {
		source := task.Sample(rng, task.MaxLen)
		answer := must.Get(solve(task, source))(t)
		if _, err := time.Parse(time.DateOnly, answer); err != nil || strings.Trim(lower(source)+answer, task.Alphabet) != "" {
			t.Fatalf("%q: got %q, %v, want a date within the limits", source, answer, err)
		}
		days[answer] = true
		longest = max(longest, len(source))
		for _, format := range dateFormats {
			if _, ok := readDate(format, lower(source)); ok {
				formats[format]++
			}
		}
	}
	for _, format := range dateFormats {
		if got, want := formats[format], samples/len(dateFormats); got < want*9/10 || got > want*11/10 {
			t.Errorf("format %s: %d of %d samples, want about %d", format, got, samples, want)
		}
	}
	if longest != task.MaxLen {
		t.Errorf("the longest sample has %d symbols, want %d", longest, task.MaxLen)
	}
	if len(days) < 20_000 {
		t.Errorf("%d different days, want at least 20,000", len(days))
	}
}

// TestDatesRoundTrip writes dates in every format and reads them again. A source can be read only in
// the format in which it was written.
func TestDatesRoundTrip(t *testing.T) {
	t.Parallel()
	step := 5
	if testing.Short() {
		step = 31
	}
	end := time.Date(lastYear+1, time.January, 1, 0, 0, 0, 0, time.UTC)
	for date := time.Date(firstYear, time.January, 1, 0, 0, 0, 0, time.UTC); date.Before(end); date = date.AddDate(0, 0, step) {
		for i, format := range dateFormats {
			source := formatDate(format, date, i%2 == 0, date.Day()%2 == 0)
			want := date.Format(time.DateOnly)
			if got, err := isoDate(source); err != nil || got != want {
				t.Fatalf("%q: got %q, %v; want %s", source, got, err, want)
			}
			for _, other := range dateFormats {
				if _, ok := readDate(other, lower(source)); ok != (other == format) {
					t.Fatalf("format %s reads %q: %t, want %t (it was written in format %s)", other, source, ok, !ok, format)
				}
			}
		}
	}
}

// TestTooManyDates asks for more sources than there are days held out, although more sources are held out. NewSplit
// draws more than a million sources: here, the days of one year, each written in up to six ways.
func TestTooManyDates(t *testing.T) {
	t.Parallel()
	rule, rng := named(t, "dates", 0), rand.New(rand.NewPCG(1, 1))
	var sources []string
	answers, heldOut := make(map[string]string), 0
	for day := range 365 {
		for range 6 {
			source := writeDate(rng, time.Date(2023, time.January, 1+day, 0, 0, 0, 0, time.UTC))
			answers[source] = must.Get(rule.Answer(source))(t)
			sources = append(sources, source)
		}
		if data.Place(1, answers[sources[6*day]]) < 1.0/8 {
			heldOut++
		}
	}
	rule.Sample = func(rng *rand.Rand, _ int) string { return sources[rng.IntN(len(sources))] }
	rule.Answer = func(source string) (string, error) { return answers[source], nil }
	must.Refuse(data.NewSplit(rule, 1, heldOut+1))(t, fmt.Sprintf("validation asks for %d sources, but only %d were found", heldOut+1, heldOut))
	if _, err := data.NewSplit(rule, 1, heldOut); err != nil {
		t.Errorf("for %d sources, one for each day that is held out: %v", heldOut, err)
	}
}

func TestDatesAsTagging(t *testing.T) {
	rule := named(t, "dates", 0)
	rule.Kind, rule.MaxAnswer = data.KindTagging, 0
	must.Refuse(solve(rule, "7.3.2024"))(t, "task dates: for kind tagging, an answer can't be longer than its source", "for longer answers, use kind seq2seq")
}

func FuzzDates(f *testing.F) {
	for _, s := range []string{"March 7, 2024", "7-mar-24", "31.2.2000", "the 1st of may, 1999", "20240230", "Sun 2 jan 2000", "", "7//3", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		task := named(t, "dates", 0)
		answer, err := solve(task, source)
		if err != nil {
			return
		}
		date, err := time.Parse(time.DateOnly, answer)
		if err != nil || date.Year() < firstYear || date.Year() > lastYear {
			t.Fatalf("%q: got %q, %v, want a date within the limits", source, answer, err)
		}
		for _, same := range []string{strings.ToUpper(source), lower(source), answer} {
			if got, err := solve(task, same); got != answer || err != nil {
				t.Fatalf("%q is %s, but for %q got %q, %v", source, answer, same, got, err)
			}
		}
		// Check that some format writes the day this way.
		var written []string
		for _, format := range dateFormats {
			for i := range 4 {
				written = append(written, lower(formatDate(format, date, i&1 != 0, i&2 != 0)))
			}
		}
		if !writtenAs(lower(source), written) {
			t.Fatalf("%q is read as %s, but the formats write this day only as %q", source, answer, written)
		}
	})
}

// writtenAs reports whether source is in the list written, apart from leading zeros and abbreviations.
func writtenAs(source string, written []string) bool {
	short := func(s string) string {
		var out []string
		for _, word := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,./-", r) }) {
			if word = strings.TrimPrefix(word, "0"); word[0] > '9' {
				word = word[:min(3, len(word))]
			}
			out = append(out, word)
		}
		return fmt.Sprint(out)
	}
	for _, s := range written {
		if short(s) == short(source) {
			return true
		}
	}
	return false
}
