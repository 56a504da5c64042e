package decode

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// BeamOptions say how Beam searches.
type BeamOptions struct {
	// Width is how many hypotheses of each prompt are followed at a time, and how many are returned. It must be at
	// least 1.
	Width int

	// MaxTokens is how many new tokens a hypothesis gets at most, its end token included. It must be at least 1.
	MaxTokens int

	// End are the tokens that end a hypothesis. They are no part of it.
	End []int

	// LengthPenalty is the α of the Score that hypotheses are compared by. 0 compares log probabilities, which favours
	// short hypotheses; 1 compares their means over the tokens. It must be from 0 to 10.
	LengthPenalty float64
}

// A Hypothesis is one continuation of a prompt.
type Hypothesis struct {
	Tokens  []int   // without the prompt, and without the end token
	LogProb float64 // the sum of the tokens' log probabilities, the end token's included: a natural logarithm

	// Score is LogProb divided by n^α, where n is the number of tokens, the end token included, and α the
	// LengthPenalty. (Wu et al., 2016, equation 14, divide by ((5+n)/6)^α.)
	Score float64

	// Finished reports whether an end token came. Otherwise the hypothesis was cut off, by MaxTokens or because the
	// model had no more room.
	Finished bool
}

// Beam searches for the continuations of prompts that have the highest scores. For each prompt it follows the Width
// likeliest hypotheses of one length, and extends each by every token. It returns up to Width hypotheses for each
// prompt, best first. Hypotheses that are cut off compete with finished ones. Of equal ones, the one that was found
// first comes first.
//
// A hypothesis is finished if it is one of the Width likeliest with its end token. The search of a prompt is over once
// it has Width hypotheses and those still followed can't beat the last of these, even if all their tokens up to the
// longest possible length were certain. With a LengthPenalty, a lower MaxTokens therefore ends the search sooner. A
// Width of 1 without LengthPenalty is greedy. With a vocabulary of V, a Width of V^(MaxTokens−1) finds the best that
// there are.
//
// The model must have at least len(prompts)·Width sequences. A prompt has at least one token. Beam appends prompts[p]
// to sequence p·Width, whatever that holds already. The Width sequences from there on hold hypotheses; afterwards they
// are of no use.
//
// Beam looks at ctx before every step. If ctx is done, it returns ctx.Err() and the best that it has found, with the
// hypotheses that it was following cut off there. It does so with any error on the way. Arguments that can't be right
// are errors without a result: a prompt that there is no room for, say.
func Beam(ctx context.Context, m Model, prompts [][]int, o BeamOptions) ([][]Hypothesis, error) {
	if o.Width < 1 {
		return nil, fmt.Errorf("decode: a beam's Width must be at least 1, got %d", o.Width)
	}
	if !(o.LengthPenalty >= 0 && o.LengthPenalty <= 10) { // the scores of far more would all be 0
		return nil, fmt.Errorf("decode: the LengthPenalty must be from 0 to 10, got %v", o.LengthPenalty)
	}
	if err := checkModel(m, prompts, o.Width, o.MaxTokens, o.End); err != nil {
		return nil, err
	}
	s := &search{BeamOptions: o, model: m}
	for p, prompt := range prompts {
		s.beams = append(s.beams, newBeam(o, p*o.Width, m.Room(p*o.Width)-len(prompt)))
	}
	err := s.run(ctx, prompts)
	found := make([][]Hypothesis, len(prompts))
	for p, b := range s.beams {
		for _, h := range b.live { // after an error
			b.complete(h, false)
		}
		found[p] = b.best
	}
	return found, err
}

// search is the state of one call of Beam.
type search struct {
	BeamOptions
	model Model
	beams []*beam // one for each prompt
}

func (s *search) run(ctx context.Context, prompts [][]int) error {
	tokens := make([][]int, s.model.Batch()) // the model's next step
	for p, prompt := range prompts {
		tokens[s.beams[p].first] = prompt
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		logits, err := step(s.model, tokens)
		if err != nil {
			return err
		}
		for p, b := range s.beams {
			if err := b.extend(logits); err != nil {
				return fmt.Errorf("decode: prompt %d: %w", p, err)
			}
		}
		if !slices.ContainsFunc(s.beams, func(b *beam) bool { return len(b.live) > 0 }) {
			return nil
		}
		if err := s.arrange(tokens); err != nil {
			return err
		}
	}
}

// arrange gives every hypothesis a sequence of the model that holds all its tokens but the last, and sets tokens to
// those last ones.
func (s *search) arrange(tokens [][]int) error {
	parents := make([]int, len(tokens))
	for i := range parents {
		parents[i] = i
	}
	clear(tokens)
	moved := false
	for _, b := range s.beams {
		for j := range b.live {
			h, sequence := &b.live[j], b.first+j
			moved = moved || h.sequence != sequence
			parents[sequence], h.sequence = h.sequence, sequence
			tokens[sequence] = h.tokens[len(h.tokens)-1:]
		}
	}
	if !moved {
		return nil
	}
	if err := s.model.Reorder(parents); err != nil {
		return fmt.Errorf("decode: reordering the model's sequences: %w", err)
	}
	return nil
}

// beam is the search after one prompt.
type beam struct {
	BeamOptions
	first   int          // the first of the model's sequences that this beam has
	longest int          // how many tokens a hypothesis can have
	live    []hypothesis // those that are followed, all of one length, likeliest first; empty when the search is over
	best    []Hypothesis // the Width best of those that aren't followed any more, best first
}

// hypothesis is a continuation that is followed. It has had no end token.
type hypothesis struct {
	tokens   []int
	logProb  float64
	sequence int // the model's sequence that holds its tokens; after extend, all but the last
}

func newBeam(o BeamOptions, first, room int) *beam {
	longest := o.MaxTokens
	if room < longest {
		longest = room + 1 // the last token needs no room, as nothing follows it
	}
	return &beam{BeamOptions: o, first: first, longest: longest, live: []hypothesis{{sequence: first}}}
}

// candidate is a hypothesis and a token to extend it by.
type candidate struct {
	hypothesis
	token int
}

// extend extends every hypothesis by every token and follows the likeliest results. It ends the search where it can.
// The logits are those of the model's sequences. After an error the beam is as it was before.
func (b *beam) extend(logits [][]float64) error {
	candidates, err := b.candidates(logits)
	if err != nil {
		return err
	}
	b.live = nil
	for place, c := range candidates {
		if slices.Contains(b.End, c.token) {
			if place < b.Width {
				b.complete(c.hypothesis, true)
			}
		} else if len(b.live) < b.Width {
			c.tokens = append(slices.Clip(c.tokens), c.token) // a copy, as several candidates may extend one hypothesis
			b.live = append(b.live, c.hypothesis)
		}
	}
	switch {
	case len(b.live) == 0:
	case len(b.live[0].tokens) == b.longest:
		for _, h := range b.live {
			b.complete(h, false)
		}
		b.live = nil
	case len(b.best) == b.Width && b.best[b.Width-1].Score >= b.score(b.live[0].logProb, b.longest):
		b.live = nil
	}
	return nil
}

// candidates returns the extended hypotheses, likeliest first. Of each hypothesis it takes the Width + len(End)
// likeliest: at least Width of these aren't end tokens, and no more than Width hypotheses are followed.
func (b *beam) candidates(logits [][]float64) ([]candidate, error) {
	var list []candidate
	for _, h := range b.live {
		row := logits[h.sequence]
		best, err := likeliest(row)
		if err != nil {
			return nil, err
		}
		probs := newLogProbs(row, best)
		for _, id := range top(row, b.Width+len(b.End)) {
			c := candidate{hypothesis: h, token: id}
			c.logProb += probs.of(id)
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(y.logProb, x.logProb) })
	return list, nil
}

// complete adds a hypothesis to the best, if it is one of the Width best.
func (b *beam) complete(h hypothesis, finished bool) {
	length := len(h.tokens)
	if finished {
		length++
	}
	c := Hypothesis{Tokens: h.tokens, LogProb: h.logProb, Score: b.score(h.logProb, length), Finished: finished}
	place := len(b.best)
	for place > 0 && b.best[place-1].Score < c.Score {
		place--
	}
	b.best = slices.Insert(b.best, place, c)
	b.best = b.best[:min(len(b.best), b.Width)]
}

// score returns the Score of a log probability of so many tokens. A hypothesis that is extended doesn't become
// likelier: its Score is at most that of its present log probability at the longest length.
func (b *beam) score(logProb float64, length int) float64 {
	return logProb / math.Pow(float64(max(length, 1)), b.LengthPenalty)
}
