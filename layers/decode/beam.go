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
	// Width is how many hypotheses are followed at a time, and how many are found, for each prompt. It must be at least 1.
	Width int

	// MaxTokens cuts a hypothesis off after so many new tokens, its end token among them. It must be at least 1.
	MaxTokens int

	// End are the tokens that end a hypothesis, and are no part of it.
	End []int

	// LengthPenalty is α of the Score by which hypotheses of different lengths are compared. 0 compares log probabilities,
	// which favours short ones; 1 compares means of a token. It must be finite and at least 0.
	LengthPenalty float64
}

// A Hypothesis is one continuation of a prompt.
type Hypothesis struct {
	Tokens  []int   // without the prompt, and without the end token
	LogProb float64 // the sum of the tokens' log probabilities, the end token's among them: a natural logarithm

	// Score is LogProb divided by n^α, where n is the number of tokens, the end token among them, and α the LengthPenalty.
	// (Wu et al., 2016, equation 14, divide by ((5+n)/6)^α.)
	Score float64

	// Finished tells an end token from a hypothesis that was cut off, by MaxTokens or because the model had no more room.
	Finished bool
}

// Beam searches for the continuations of prompts that have the highest scores: of each it follows the Width likeliest
// hypotheses of one length, and extends them by every token. The result has for each prompt up to Width hypotheses, best
// first. Hypotheses that are cut off compete with the finished ones. Of equal ones, the first that was found comes first.
//
// A hypothesis finishes where its end token makes it one of the Width likeliest. The search of a prompt is over once it
// has Width hypotheses and those still followed can't beat the last of them, even if all their tokens up to the longest
// possible length were certain: with a LengthPenalty, a lower MaxTokens ends the search sooner. A Width of 1 without
// LengthPenalty is greedy. With a vocabulary of V, a Width of V^(MaxTokens−1) finds the best that there are.
//
// The model must have at least len(prompts)·Width sequences. prompts[p] is appended to sequence p·Width, whatever that
// holds already; the Width sequences from there become its hypotheses, and are of no use afterwards. A prompt is at least
// one token.
//
// Beam looks at ctx before every step. If ctx is done, it returns ctx.Err() and the best that it has, with the hypotheses
// that it was still following cut off there, as it does with any error on the way. Arguments that can't be right are
// errors with no result: a prompt longer than there is room for is a *RoomError. Logits that no token can be chosen from
// are a *LogitsError.
func Beam(ctx context.Context, m Model, prompts [][]int, o BeamOptions) ([][]Hypothesis, error) {
	if o.Width < 1 {
		return nil, fmt.Errorf("decode: a beam's Width must be at least 1, got %d", o.Width)
	}
	if !(o.LengthPenalty >= 0 && o.LengthPenalty <= math.MaxFloat64) {
		return nil, fmt.Errorf("decode: the LengthPenalty must be finite and at least 0, got %v", o.LengthPenalty)
	}
	if err := checkModel(ctx, m, prompts, o.Width, o.MaxTokens, o.End); err != nil {
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
	tokens := make([][]int, s.model.Batch()) // what to give the model next
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

// arrange gives every hypothesis a sequence of the model that holds all but its last token, and sets tokens to that.
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
	first   int          // of the model's sequences that are this beam's
	longest int          // how many tokens a hypothesis can have
	live    []hypothesis // those followed, all of one length, likeliest first; empty when the search is over
	best    []Hypothesis // the Width best that aren't followed any more, best first
}

// hypothesis is one that is being followed. It has had no end token.
type hypothesis struct {
	tokens   []int
	logProb  float64
	sequence int // of the model; it holds all of the tokens, or after extend all but the last
}

func newBeam(o BeamOptions, first, room int) *beam {
	longest := o.MaxTokens
	if room < longest {
		longest = room + 1 // the last token needs no room, as nothing follows it
	}
	return &beam{BeamOptions: o, first: first, longest: longest, live: []hypothesis{{sequence: first}}}
}

// candidate is a hypothesis with a token more.
type candidate struct {
	hypothesis
	token int
}

// extend makes every hypothesis longer by a token, of those that result follows the likeliest, and ends the search where
// it can. The logits are those of the model's sequences. After an error the beam is as it was before.
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
			c.tokens = append(slices.Clip(c.tokens), c.token) // a copy: several may extend one hypothesis
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

// candidates lists the extended hypotheses, likeliest first: of each hypothesis no more than could matter, as of Width
// and all end tokens at most Width aren't end tokens.
func (b *beam) candidates(logits [][]float64) ([]candidate, error) {
	var list []candidate
	for _, h := range b.live {
		row := logits[h.sequence]
		best, err := likeliest(row)
		if err != nil {
			return nil, err
		}
		probs, ranked := newLogProbs(row, best), rank(row)
		for range b.Width + len(b.End) {
			id, ok := ranked.next()
			if !ok {
				break
			}
			c := candidate{hypothesis: h, token: id}
			c.logProb += probs.of(id)
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(y.logProb, x.logProb) })
	return list, nil
}

// complete puts a hypothesis among the best, if it is one of them.
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

// score is that of a log probability of so many tokens. As log probabilities don't rise, that of a longer hypothesis is
// at most the score of its beginning's log probability at the longest length.
func (b *beam) score(logProb float64, length int) float64 {
	return logProb / math.Pow(float64(max(length, 1)), b.LengthPenalty)
}
