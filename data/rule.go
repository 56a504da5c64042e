package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/text"
)

// A Kind says what a model predicts for a source.
type Kind string

// A Rule is a task that a model can learn. It gives every source string one answer. Named returns Heed's own rules. To
// make your own rule, fill in the fields. Only fields with a JSON name are saved with a trained model; its tokenizers
// are saved separately.
type Rule struct {
	Name  string `json:"name"`            // only letters, digits, - and _
	About string `json:"about,omitempty"` // a few words on the answer
	Kind  Kind   `json:"kind"`

	Alphabet  string   `json:"alphabet,omitempty"`   // all symbols of sources and answers, without repeats
	Classes   []string `json:"classes,omitempty"`    // all answers; only for classification
	MaxLen    int      `json:"max_len"`              // number of symbols in the longest source; for text, in a context
	MaxAnswer int      `json:"max_answer,omitempty"` // number of symbols in the longest answer; only for seq2seq
	Example   string   `json:"example,omitempty"`    // a source to try

	// Instead of an Alphabet, a rule may have tokenizers: Source encodes sources, Target encodes answers, and MaxLen
	// and MaxAnswer count their ids. With a Source, tagging also needs a Target, and each symbol of a source has one
	// tag. Seq2seq without a Target uses Source for both. Other kinds can't have a Target. Classification
	// cuts a source that is too long.
	Source tokenizer.Tokenizer `json:"-"`
	Target tokenizer.Tokenizer `json:"-"`

	// Sample returns a random source of at most maxLen symbols. The argument maxLen is the rule's MaxLen. Sample must
	// get all random numbers from rng. Several goroutines may call Sample and Answer at the same time.
	Sample func(rng *rand.Rand, maxLen int) string `json:"-"`

	// Answer returns the answer to a source. The source has 1 to MaxLen symbols of the Alphabet. If it has no answer,
	// the error says why.
	Answer func(source string) (string, error) `json:"-"`

	// Spell converts a source and its answer to the text that the model sees. The answer is "" if the source has none,
	// or if the rule has no Answer. Read converts a spelled answer back. Both may be nil: then the model sees the
	// source and the answer unchanged.
	Spell func(source, answer string) (string, string) `json:"-"`
	Read  func(spelled string) string                  `json:"-"`

	// With ByAnswer, a Split separates training and validation by answer, not by source. Use it if many sources have
	// the same answer.
	ByAnswer bool `json:"-"`

	// Longest is the largest maxLen that Named accepts; 0 if MaxLen can't be changed.
	Longest int `json:"-"`
}

// rules lists Heed's own rules, with the default rule first.
var rules = [...]Rule{
	reverseRule,
	copyRule,
	sortRule,
	addRule,
	datesRule,
	bracketsRule,
}

// Names returns the names of all rules that Named knows. The first is the default rule's.
func Names() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// Named returns Heed's own rule with this name, for sources of at most maxLen symbols. If maxLen is 0, the rule keeps
// its default MaxLen. Named returns an error if the name is unknown or the rule can't have this maxLen.
func Named(name string, maxLen int) (Rule, error) {
	i := slices.IndexFunc(rules[:], func(r Rule) bool { return r.Name == name })
	if i < 0 {
		return Rule{}, fmt.Errorf("unknown task %q: the tasks are %s%s", name, strings.Join(Names(), ", "), text.DidYouMean(name, Names()))
	}
	r := rules[i]
	switch {
	case maxLen == 0 || maxLen == r.MaxLen:
	case r.Longest == 0:
		return Rule{}, fmt.Errorf("task %s: the maximum source length is %d symbols and can't be changed to %d", name, r.MaxLen, maxLen)
	case maxLen < 1 || maxLen > r.Longest:
		return Rule{}, fmt.Errorf("task %s: the maximum source length must be from 1 to %d symbols (0: the default, %d), got %d", name, r.Longest, r.MaxLen, maxLen)
	default:
		r.MaxLen = maxLen
		r.Example = r.Example[:min(len(r.Example), maxLen)]
	}
	return r, nil
}

// An Example is a source with its answer. The answer may be empty, see Coder.Batch.
type Example struct{ Source, Answer string }

// draw returns a random example.
func (r *Rule) draw(rng *rand.Rand) (Example, error) {
	source := r.Sample(rng, r.MaxLen)
	answer, err := r.Answer(source)
	if err != nil {
		return Example{}, fmt.Errorf("task %s: the source %q from Sample has no answer: %w", r.Name, source, err)
	}
	return Example{source, answer}, nil
}

// key returns the string by which a Split separates examples: the answer with ByAnswer, else the source.
func (r *Rule) key(e Example) string {
	if r.ByAnswer {
		return e.Answer
	}
	return e.Source
}
