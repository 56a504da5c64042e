package data

import (
	"fmt"
	"slices"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/setting"
)

// Split draws a rule's examples for training and for validation. No source is ever drawn for both: one source in eight
// is held out, chosen by a seeded hash of the source that is the same on every machine. Validation has only those,
// training has only the others. Of a rule whose sources are kept apart ByAnswer, such as dates, it is one answer in
// eight: no day is ever drawn for both, in whichever format.
//
// An eighth leaves room for 1,000 validation sources in the smallest of Heed's own rules: of the 10,000 sources of add,
// about 1,250 are held out. Make one with NewSplit.
type Split struct {
	rule       Rule
	seed       uint64
	validation []Example
}

// How much NewSplit is willing to do. Finding all of n equally likely sources takes n·ln n draws: these find all of add
// and of the words of up to three letters, and more words than anybody asks for beyond.
const (
	maxValidation = 1 << 20
	extraDraws    = 1 << 20
	drawsASource  = 64
)

// NewSplit returns the split of a rule that a seed decides, with so many distinct validation sources (or answers, where
// the rule keeps those apart), from 0 to 1,048,576. It is an error if a bounded number of draws finds fewer
// that are held out: the error says how many, which for short sources is all there are. The rule must have its Sample
// and Answer.
func NewSplit(rule Rule, seed uint64, validation int) (*Split, error) {
	if rule.MaxLen < 1 || rule.MaxLen > longest {
		return nil, fmt.Errorf("task %s: MaxLen must be from 1 to %d, got %d", rule.Name, longest, rule.MaxLen)
	}
	if validation < 0 || validation > maxValidation {
		return nil, setting.Errorf("task %s: %s takes 0 to %d sources, got %d", rule.Name, setting.Path("validation"), maxValidation, validation)
	}
	s := &Split{rule: rule, seed: seed}
	rng := newRand(seed, forValidation, 0, 0)
	seen := make(map[string]bool)
	trains := false
	for range extraDraws + drawsASource*validation {
		e, err := rule.draw(rng)
		if err != nil {
			return nil, err
		}
		switch key := rule.key(e); {
		case !s.heldOut(key):
			trains = true
		case len(s.validation) < validation && !seen[key]:
			seen[key] = true
			s.validation = append(s.validation, e)
		}
		if trains && len(s.validation) == validation {
			return s, nil
		}
	}
	if !trains {
		return nil, fmt.Errorf("task %s: seed %d leaves no source to train on", rule.Name, seed)
	}
	return nil, setting.Errorf("task %s, sources of at most %d symbols: %s asks for %d, but found only %d that are held out: ask for fewer",
		rule.Name, rule.MaxLen, setting.Path("validation"), validation, len(s.validation))
}

// HeldOut reports whether a source is kept from training. Any string may be asked about.
func (s *Split) HeldOut(source string) bool {
	if s.rule.ByAnswer {
		if answer, err := s.rule.Answer(source); err == nil {
			source = answer
		}
	}
	return s.heldOut(source)
}

func (s *Split) heldOut(key string) bool { return HeldOut(s.seed, key, 1.0/8) }

// Validation returns the validation examples, distinct, in the order they were drawn in. The slice is the caller's.
func (s *Split) Validation() []Example { return slices.Clone(s.validation) }

// exampleBytes is what an Example takes at least: two strings, and a word of memory for what is in each.
const exampleBytes = 2*16 + 2*8

// Train returns the size examples of one training step, drawn afresh: they depend on the seed, the epoch and the step
// alone, and may repeat. A smaller size takes the first of them; one below 1 takes none. A sample that has no answer is
// an error, and so is a size that there is no memory for.
func (s *Split) Train(epoch, step, size int) ([]Example, error) {
	if err := memory.Check(memory.Product(max(size, 0), exampleBytes)); err != nil {
		return nil, fmt.Errorf("task %s: %d examples: %w", s.rule.Name, size, err)
	}
	rng := newRand(s.seed, forTraining, epoch, step)
	examples := make([]Example, 0, max(size, 0))
	for len(examples) < size { // This ends: NewSplit saw that some sources train.
		e, err := s.rule.draw(rng)
		if err != nil {
			return nil, err
		}
		if !s.heldOut(s.rule.key(e)) {
			examples = append(examples, e)
		}
	}
	return examples, nil
}
