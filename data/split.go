package data

import (
	"fmt"
	"slices"
)

// Split draws a task's sources for training and for validation. No source is ever drawn for both: one source in eight
// is held out, chosen by a seeded hash of the source that is the same on every machine. Validation has only those,
// training has only the others. Of dates it is one day in eight, in whichever format: no day is ever drawn for both.
//
// An eighth leaves room for 1,000 validation sources in the smallest default task: of the 10,000 sources of add, about
// 1,250 are held out.
type Split struct {
	task       Task
	seed       uint64
	validation []string
}

// How much NewSplit is willing to do. Finding all of n equally likely sources takes n·ln n draws: these find all of add
// and of the words of up to three letters, and more words than anybody asks for beyond.
const (
	maxValidation = 1 << 20
	extraDraws    = 1 << 20
	drawsASource  = 64
)

// NewSplit is the split of a task that a seed decides, with so many distinct validation sources (of dates: sources of
// distinct days), from 1 to 1,048,576. It is an error if a bounded number of draws finds fewer that are held out: the error says how many, which for short
// sources is all there are.
func NewSplit(task Task, seed uint64, validation int) (*Split, error) {
	if task.vocab == nil {
		return nil, fmt.Errorf("no task to split: make one with Named")
	}
	if validation < 1 || validation > maxValidation {
		return nil, fmt.Errorf("task %s: validation needs 1 to %d sources, got %d", task.Name, maxValidation, validation)
	}
	s := &Split{task: task, seed: seed}
	rng := newRand(seed, forValidation, 0, 0)
	seen := make(map[string]bool)
	trains := false
	for range extraDraws + drawsASource*validation {
		source := task.Sample(rng)
		switch key := task.keyOf(source); {
		case !s.heldOut(key):
			trains = true
		case len(s.validation) < validation && !seen[key]:
			seen[key] = true
			s.validation = append(s.validation, source)
		}
		if trains && len(s.validation) == validation {
			return s, nil
		}
	}
	if !trains {
		return nil, fmt.Errorf("task %s: seed %d leaves no source to train on", task.Name, seed)
	}
	return nil, fmt.Errorf("task %s, sources of at most %d symbols: %d validation sources wanted, but found only %d that are held out: ask for fewer",
		task.Name, task.MaxLen, validation, len(s.validation))
}

// HeldOut says whether a source is kept from training. Any string may be asked about.
func (s *Split) HeldOut(source string) bool { return s.heldOut(s.task.keyOf(source)) }

func (s *Split) heldOut(key string) bool { return hash(s.seed, key)>>61 == 0 }

// Validation is the validation sources, distinct, in the order they were drawn in. The slice is the caller's.
func (s *Split) Validation() []string { return slices.Clone(s.validation) }

// Train is the size sources of one training step, drawn afresh: they depend on the seed, the epoch and the step alone,
// and may repeat. A smaller size takes the first of them; one below 1 takes none.
func (s *Split) Train(epoch, step, size int) []string {
	rng := newRand(s.seed, forTraining, epoch, step)
	sources := make([]string, max(size, 0))
	for i := range sources {
		// This ends: NewSplit saw that some sources train.
		for sources[i] = s.task.Sample(rng); s.HeldOut(sources[i]); {
			sources[i] = s.task.Sample(rng)
		}
	}
	return sources
}
