package data

import (
	"fmt"
	"slices"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/setting"
)

// A Split draws a rule's examples for training and for validation. No source is used for both. A seeded hash, the same
// on every machine, holds out one source in eight for validation; training has only the others. If the rule has
// ByAnswer, such as the rule dates, the hash holds out one answer in eight. So no day is in both parts, whatever its
// format.
//
// One eighth is enough for 1,000 validation sources in Heed's smallest rule, add: it holds out about 1,250 of 10,000
// sources. NewSplit makes a Split.
type Split struct {
	rule       Rule
	seed       uint64
	validation []Example
}

// Limits for NewSplit. Finding all of n equally likely sources takes about n·ln n draws. With these limits, NewSplit
// finds all sources of add and all words of up to three letters, and enough of the longer words.
const (
	maxValidation = 1 << 20
	extraDraws    = 1 << 20
	drawsASource  = 64
)

// NewSplit returns the split of a rule for a seed. The argument validation is the number of distinct validation
// sources, or of distinct answers if the rule has ByAnswer. It must be from 0 to 1,048,576. The rule must have Sample
// and Answer. NewSplit returns an error if validation is out of range, or if a bounded number of draws finds fewer
// held-out sources. The error says how many were found. If sources are short, these may be all that exist.
func NewSplit(rule Rule, seed uint64, validation int) (*Split, error) {
	if rule.MaxLen < 1 || rule.MaxLen > longest {
		return nil, fmt.Errorf("task %s: MaxLen must be from 1 to %d, got %d", rule.Name, longest, rule.MaxLen)
	}
	if validation < 0 || validation > maxValidation {
		return nil, setting.Errorf("task %s: %s must be from 0 to %d sources, got %d", rule.Name, setting.Path("validation"), maxValidation, validation)
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
	return nil, setting.Errorf("task %s, sources of at most %d symbols: %s asks for %d sources, but only %d were found: use a smaller number",
		rule.Name, rule.MaxLen, setting.Path("validation"), validation, len(s.validation))
}

func (s *Split) heldOut(key string) bool { return Place(s.seed, key) < 1.0/8 }

// Validation returns a copy of the validation examples, in the order in which they were drawn. Their sources differ;
// with ByAnswer, so do their answers.
func (s *Split) Validation() []Example { return slices.Clone(s.validation) }

// exampleBytes is the minimum memory of an Example: two string headers, and one word for the content of each string.
const exampleBytes = 2*16 + 2*8

// Train draws size examples for one training step. They depend only on the seed, the epoch and the step, and may
// repeat. With a smaller size, Train returns the first of the same examples; with a size below 1, none. Train returns
// an error if a sample has no answer, or if memory is too small for size examples.
func (s *Split) Train(epoch, step, size int) ([]Example, error) {
	if err := memory.Check(memory.Product(max(size, 0), exampleBytes)); err != nil {
		return nil, fmt.Errorf("task %s: %d examples: %w", s.rule.Name, size, err)
	}
	rng := newRand(s.seed, forTraining, epoch, step)
	examples := make([]Example, 0, max(size, 0))
	for len(examples) < size { // This loop ends, because NewSplit has found a source for training.
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
