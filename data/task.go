package data

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// DefaultTask names the task to take when none is asked for.
const DefaultTask = "reverse"

// Task is a rule that a model can learn: every source string has one answer, never longer than the source. Named makes
// them. The fields are there to be read.
type Task struct {
	Name     string
	Alphabet string // every symbol that a source or an answer may hold, once
	MaxLen   int    // length of the longest source, in symbols

	vocab  *Vocab // of Alphabet; nil in a Task that Named didn't make
	sample func(rng *rand.Rand) string
	answer func(source string) (string, error) // of a source within Alphabet and MaxLen

	columns func(source, answer string) (string, string) // how a model sees them; nil if as they are
}

// Named is the task of that name, for sources of at most maxLen symbols.
//
//	reverse  a word, from its end to its start      lamp → pmal
//	copy     a word, as it is                       lamp → lamp
//	sort     a word, its letters in order           lamp → almp
//	add      the sum of two numbers from 0 to 99    12+34 → 46
//
// A word is of 1 to maxLen letters from a to z. maxLen may be from 1 to 64; 0 takes the default, 10. Sums have at most 5
// symbols: for add, maxLen is 0 or 5.
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
	return Task{}, fmt.Errorf("unknown task %q: the tasks are %s", name, strings.Join(TaskNames(), ", "))
}

// TaskNames is the name of every task, DefaultTask first.
func TaskNames() []string {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i] = rule.name
	}
	return names
}

var rules = [...]struct {
	name string
	task func(maxLen int) (Task, error)
}{
	{"reverse", wordTask(reversed)},
	{"copy", wordTask(strings.Clone)},
	{"sort", wordTask(sorted)},
	{"add", addTask},
}

// Sample is a random source. Those of reverse, copy and sort have a length uniform in 1 to MaxLen, and uniform letters;
// those of add are two numbers uniform in 0 to 99, without leading zeros.
func (t Task) Sample(rng *rand.Rand) string {
	if t.vocab == nil {
		return ""
	}
	return t.sample(rng)
}

// Answer is the answer to a source. The source must hold 1 to MaxLen symbols, and only those of the alphabet: another is
// an *UnknownSymbolError. For add it must be two numbers of one or two digits with a + between them.
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
	if _, err := t.vocab.Encode(source); err != nil {
		return "", fmt.Errorf("source %q: %w", source, err)
	}
	return t.answer(source)
}
