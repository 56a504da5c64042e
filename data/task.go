package data

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// DefaultTask names the task to take when none is asked for.
const DefaultTask = "reverse"

// Task is a rule that a model can learn: every source string has one answer. Named makes them. The fields are there to be
// read.
type Task struct {
	Name      string
	Alphabet  string // every symbol that a model meets in a source or an answer, once
	MaxLen    int    // length of the longest source, in symbols
	MaxAnswer int    // length of the longest answer

	vocab  *Vocab // of Alphabet; nil in a Task that Named didn't make
	sample func(rng *rand.Rand) string
	answer func(source string) (string, error) // of a source within Alphabet and MaxLen

	key     func(source string) (string, error)          // what a Split keeps apart; nil for the source itself
	fold    func(source string) string                   // the source in symbols of Alphabet; nil if as it is
	columns func(source, answer string) (string, string) // how a Labeler lays them out; nil if as they are
	longer  bool                                         // an answer may be longer than its source: no Labeler fits
}

// Named is the task of that name, for sources of at most maxLen symbols.
//
//	reverse  a word, from its end to its start      lamp → pmal
//	copy     a word, as it is                       lamp → lamp
//	sort     a word, its letters in order           lamp → almp
//	add      the sum of two numbers from 0 to 99    12+34 → 46
//	dates    a date from 1950 to 2049, in ISO 8601  March 7, 2024 → 2024-03-07
//
// A word is of 1 to maxLen letters from a to z. maxLen may be from 1 to 64; 0 takes the default, 10. Sums have at most 5
// symbols: for add, maxLen is 0 or 5. Dates have at most 29: for dates, maxLen is 0 or 29.
//
// Dates come in many formats. Names of months and of days of the week may be cut to three letters, a day or a month may
// have a leading zero, and capital letters are the same as small ones:
//
//	March 7, 2024 · March 7 2024 · March 7th, 2024 · Thursday, March 7, 2024
//	7 March 2024 · 7th March 2024 · 7th of March 2024 · the 7th of March, 2024
//	Thu, 7 Mar 2024 · Thu 7 Mar 2024
//	7-Mar-24 · 7.3.2024, the day first · 3/7/2024, the month first
//	2024-03-07 · 2024/03/07 · 20240307
//
// After hyphens, dots and slashes a year may have two digits: 50 to 99 are of the 1900s, 00 to 49 of the 2000s. Answers
// to dates may be longer than their sources, so that they need a Translator; a Labeler fits the other tasks.
func Named(name string, maxLen int) (Task, error) {
	for _, rule := range rules {
		if rule.name != name {
			continue
		}
		task, err := rule.task(maxLen)
		if err != nil {
			return Task{}, fmt.Errorf("task %s: %w", name, err)
		}
		task.Name = name
		task.vocab, err = NewVocab(task.Alphabet)
		return task, err
	}
	return Task{}, fmt.Errorf("unknown task %q: the tasks are %s, %s", name, strings.Join(TaskNames(), ", "), datesName)
}

// TaskNames is the name of every task that a Labeler fits, DefaultTask first. Named knows dates as well, which need a
// Translator.
func TaskNames() []string {
	var names []string
	for _, rule := range rules {
		if rule.name != datesName {
			names = append(names, rule.name)
		}
	}
	return names
}

const datesName = "dates"

var rules = [...]struct {
	name string
	task func(maxLen int) (Task, error)
}{
	{"reverse", wordTask(reversed)},
	{"copy", wordTask(strings.Clone)},
	{"sort", wordTask(sorted)},
	{"add", addTask},
	{datesName, datesTask},
}

// Sample is a random source. Those of reverse, copy and sort have a length uniform in 1 to MaxLen, and uniform letters;
// those of add are two numbers uniform in 0 to 99, without leading zeros; those of dates are uniform in the days there
// are and in the formats.
func (t Task) Sample(rng *rand.Rand) string {
	if t.vocab == nil {
		return ""
	}
	return t.sample(rng)
}

// Answer is the answer to a source. The source must hold 1 to MaxLen symbols, and only those of the alphabet: another is
// an *UnknownSymbolError. For add it must be two numbers of one or two digits with a + between them; for dates, a day
// that there is, in one of the formats that Named lists, and the day of the week must be its own.
func (t Task) Answer(source string) (string, error) {
	answer, err := t.check(source)
	if err != nil {
		return "", fmt.Errorf("task %s: %w", t.Name, err)
	}
	return answer, nil
}

func (t Task) check(source string) (string, error) {
	if t.vocab == nil {
		return "", fmt.Errorf("no such task: make one with Named")
	}
	if source == "" {
		return "", fmt.Errorf("the source is empty, want 1 to %d symbols", t.MaxLen)
	}
	if n := utf8.RuneCountInString(source); n > t.MaxLen {
		return "", fmt.Errorf("a source has at most %d symbols, got %d", t.MaxLen, n)
	}
	if _, err := t.encode(source); err != nil {
		return "", fmt.Errorf("source %q: %w", source, err)
	}
	return t.answer(source)
}

// encode is the ids of a source's symbols.
func (t Task) encode(source string) ([]int, error) {
	if t.fold != nil {
		source = t.fold(source)
	}
	return t.vocab.Encode(source)
}

// keyOf is what a Split keeps apart of a source: the source itself, unless the task has sources that mean the same.
func (t Task) keyOf(source string) string {
	if t.key == nil {
		return source
	}
	key, err := t.key(source)
	if err != nil { // no source
		return source
	}
	return key
}
