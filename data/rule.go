package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
)

// A Kind says what a model makes of a source.
type Kind string

// A Rule is what a model can learn: every source, which is a string, has one answer. Named has Heed's own rules;
// anybody's is made by filling in the fields. Those that aren't functions go to JSON, and are all that a trained model
// needs.
type Rule struct {
	Name  string `json:"name"`            // of letters, digits, - and _
	About string `json:"about,omitempty"` // what the answer is, in a few words
	Kind  Kind   `json:"kind"`

	Alphabet  string   `json:"alphabet,omitempty"`   // every symbol that a model meets in a source or an answer, once
	Classes   []string `json:"classes,omitempty"`    // every answer there is, for classification only
	MaxLen    int      `json:"max_len"`              // symbols of the longest source; for text, of a context
	MaxAnswer int      `json:"max_answer,omitempty"` // symbols of the longest answer, for seq2seq only
	Example   string   `json:"example,omitempty"`    // a source to try

	// Without an Alphabet, Source makes ids of sources and Target makes ids of answers, and MaxLen and MaxAnswer count
	// these ids. Tagging needs a Target, which gives each symbol of a source its tag. Seq2seq without a Target has one
	// vocabulary for both. Other kinds have no Target. Classification cuts a source that is too long.
	Source tokenizer.Tokenizer `json:"-"`
	Target tokenizer.Tokenizer `json:"-"`

	// Sample returns a random source of at most maxLen symbols, which is the rule's MaxLen. It takes all its random
	// numbers from rng. Sample and Answer are called by several goroutines at once.
	Sample func(rng *rand.Rand, maxLen int) string `json:"-"`

	// Answer returns the answer to a source that has 1 to MaxLen symbols of the Alphabet, or an error that says why it
	// has none.
	Answer func(source string) (string, error) `json:"-"`

	// Spell returns a source and its answer as a model meets them, if not as they are; it leaves a source that has no
	// answer as it is. The answer is "" where there is none, or no Answer to ask. Read returns the answer that such a
	// spelling stands for. Both may be nil.
	Spell func(source, answer string) (string, string) `json:"-"`
	Read  func(spelled string) string                  `json:"-"`

	// ByAnswer makes a Split keep answers apart, where many sources have the same one, and not sources alone.
	ByAnswer bool `json:"-"`

	// Longest is what Named may be asked to set MaxLen to; 0 if it can't be changed.
	Longest int `json:"-"`
}

// rules are all of Heed's own, the one to learn by default first.
var rules = [...]Rule{
	reverseRule,
	copyRule,
	sortRule,
	addRule,
	datesRule,
	bracketsRule,
}

// Names returns the name of every rule that Named knows, first that of the rule to learn by default.
func Names() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// Named returns Heed's own rule of that name, for sources of at most maxLen symbols; 0 takes the rule's own MaxLen. An
// unknown name is an error, and so is a maxLen that the rule can't have.
func Named(name string, maxLen int) (Rule, error) {
	i := slices.IndexFunc(rules[:], func(r Rule) bool { return r.Name == name })
	if i < 0 {
		return Rule{}, fmt.Errorf("unknown task %q: the tasks are %s", name, strings.Join(Names(), ", "))
	}
	r := rules[i]
	switch {
	case maxLen == 0 || maxLen == r.MaxLen:
	case r.Longest == 0:
		return Rule{}, fmt.Errorf("task %s: the longest source has %d symbols, which can't be changed to %d", name, r.MaxLen, maxLen)
	case maxLen < 1 || maxLen > r.Longest:
		return Rule{}, fmt.Errorf("task %s: the longest source may have 1 to %d symbols (0: the default, %d), got %d", name, r.Longest, r.MaxLen, maxLen)
	default:
		r.MaxLen = maxLen
		r.Example = r.Example[:min(len(r.Example), maxLen)]
	}
	return r, nil
}

// An Example is a source with its answer, which may be left out.
type Example struct{ Source, Answer string }

// draw returns a random example.
func (r *Rule) draw(rng *rand.Rand) (Example, error) {
	source := r.Sample(rng, r.MaxLen)
	answer, err := r.Answer(source)
	if err != nil {
		return Example{}, fmt.Errorf("task %s: its Sample %q has no answer: %w", r.Name, source, err)
	}
	return Example{source, answer}, nil
}

// key returns what a Split keeps apart.
func (r *Rule) key(e Example) string {
	if r.ByAnswer {
		return e.Answer
	}
	return e.Source
}
