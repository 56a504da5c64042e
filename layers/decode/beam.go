package decode

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// BeamOptions controls how Beam searches.
type BeamOptions struct {
	// Width is the number of hypotheses that Beam follows per prompt, and the largest number that it returns. It must
	// be at least 1.
	Width int

	// MaxTokens is the largest number of new tokens in a hypothesis, the end token included. It must be at least 1.
	MaxTokens int

	// End lists the tokens that end a hypothesis. They aren't part of the result.
	End []int

	// LengthPenalty is α in Hypothesis.Score. With 0, Beam compares total log probabilities, which favours short
	// hypotheses. With 1, it compares the mean per token. It must be from −10 to 10.
	LengthPenalty float64

	Rules // limits which tokens are chosen

	// RepetitionPenalty is like Sampler.RepetitionPenalty. With a Width above 1, it changes log probabilities instead
	// of logits.
	RepetitionPenalty float64

	// Renormalize divides the probabilities of the tokens that may come next by their sum, after the penalty and the
	// Rules.
	Renormalize bool

	Ends BeamEnd // when the search for a prompt with Width finished hypotheses ends
}

// A BeamEnd says when Beam's search for a prompt ends, once it has Width finished hypotheses.
type BeamEnd int

const (
	// EndSure ends the search when no unfinished hypothesis can replace a finished one. For this, Beam assumes that all
	// further tokens, up to MaxTokens, have probability 1. With a LengthPenalty, a lower MaxTokens therefore ends the
	// search sooner.
	EndSure BeamEnd = iota

	// EndLikely ends the search when no unfinished hypothesis would replace a finished one if it ended where it is.
	EndLikely

	// EndFull ends the search at once.
	EndFull
)

// A Hypothesis is one continuation of a prompt.
type Hypothesis struct {
	Tokens  []int   // without the prompt, and without the end token
	LogProb float64 // the sum of the natural logarithms of the tokens' probabilities, the end token included; with the penalty and the Rules

	// Score is LogProb / n^α, where n is the number of tokens, the end token included, and α the LengthPenalty. (Wu et
	// al., 2016, equation 14, divide by ((5+n)/6)^α.)
	Score float64

	// Finished reports whether the hypothesis ended with an end token. Otherwise it was cut off: by MaxTokens, by an
	// error, or because the model had no more room.
	Finished bool
}

// Beam searches for the continuations with the highest scores. For each prompt it follows the Width likeliest
// hypotheses of equal length and extends each by every token. It returns up to Width hypotheses per prompt, best first.
// Hypotheses that were cut off compete with finished ones. Among equal scores, the hypothesis found first comes first.
//
// An end token finishes a hypothesis only if the hypothesis is then still among the Width likeliest. The search for a
// prompt ends when there are Width finished hypotheses, and as BeamOptions.Ends says. With a Width of 1 and without
// LengthPenalty, or with EndFull, Beam is greedy. With a vocabulary of V tokens and a Width of V^(MaxTokens−1), the
// search is exhaustive. With the same options, the results equal the transformers library's, whose early_stopping
// is "never" for EndSure, false for EndLikely and true for EndFull.
//
// The model must have at least len(prompts)·Width sequences, and each prompt must have at least one token. For prompt
// p, Beam uses the sequences p·Width to p·Width+Width−1. It appends prompts[p] to sequence p·Width, after any tokens
// already in that sequence. After Beam, the contents of these sequences are meaningless.
//
// Beam checks ctx before every step. If ctx is done, it returns ctx.Err() and the best hypotheses so far, including
// unfinished ones. After an error of the model it also returns the best hypotheses so far. If an argument is invalid,
// or if the model has no room for a prompt, Beam returns only an error.
func Beam(ctx context.Context, m Model, prompts [][]int, o BeamOptions) ([][]Hypothesis, error) {
	if o.Width < 1 {
		return nil, fmt.Errorf("decode: a beam's Width must be at least 1, got %d", o.Width)
	}
	if !(math.Abs(o.LengthPenalty) <= 10) { // with a far larger penalty all scores would be 0
		return nil, fmt.Errorf("decode: the LengthPenalty must be from -10 to 10, got %v", o.LengthPenalty)
	}
	if o.Ends < EndSure || o.Ends > EndFull {
		return nil, fmt.Errorf("decode: Ends must be EndSure, EndLikely or EndFull, got %d", o.Ends)
	}
	penalty := Sampler{RepetitionPenalty: o.RepetitionPenalty}
	if err := penalty.Check(); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if err := checkModel(m, prompts, o.Width, o.MaxTokens, o.End); err != nil {
		return nil, err
	}
	if err := o.Rules.check(m.Vocab()); err != nil {
		return nil, err
	}
	s := &search{BeamOptions: o, model: m}
	for p, prompt := range prompts {
		s.beams = append(s.beams, newBeam(o, prompt, p*o.Width, m.Room(p*o.Width)-len(prompt)))
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
	tokens := make([][]int, s.model.Batch()) // tokens for the model's next step
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

// arrange gives every hypothesis a sequence of the model that holds all its tokens except the last, and puts the last
// token in tokens for the next step.
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

// beam is the search for one prompt.
type beam struct {
	BeamOptions
	prompt  []int
	first   int          // the first of the model's sequences for this beam
	longest int          // the largest number of tokens in a hypothesis
	live    []hypothesis // unfinished hypotheses, all equally long, likeliest first; none when the search is over
	best    []Hypothesis // the Width best completed hypotheses, best first
	scores  []float64    // the result of changed
}

// hypothesis is a continuation that has no end token yet.
type hypothesis struct {
	tokens   []int
	logProb  float64
	sequence int // the model's sequence with these tokens; after extend, the sequence lacks the last token
}

func newBeam(o BeamOptions, prompt []int, first, room int) *beam {
	longest := o.MaxTokens
	if room < longest {
		longest = room + 1 // the last token needs no room, because it isn't appended to the model
	}
	return &beam{BeamOptions: o, prompt: prompt, first: first, longest: longest, live: []hypothesis{{sequence: first}}}
}

// candidate is a hypothesis with its next token.
type candidate struct {
	hypothesis
	token int
}

// extend extends every live hypothesis by every token and keeps the likeliest results. If the search is over, it leaves
// no live hypotheses. logits has one row for each sequence of the model. After an error the beam is unchanged.
func (b *beam) extend(logits [][]float64) error {
	candidates, err := b.candidates(logits)
	if err != nil {
		return err
	}
	if len(candidates) == 0 { // the Rules allow no token
		for _, h := range b.live {
			b.complete(h, false)
		}
	}
	b.live = nil
	for place, c := range candidates {
		if slices.Contains(b.End, c.token) {
			if place < b.Width {
				b.complete(c.hypothesis, true)
			}
		} else if len(b.live) < b.Width {
			c.tokens = append(slices.Clip(c.tokens), c.token) // Clip forces a copy: several candidates may extend the same hypothesis
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
	case len(b.best) == b.Width && (b.Ends == EndFull || b.best[b.Width-1].Score >= b.bound()):
		b.live = nil
	}
	return nil
}

// bound returns an upper bound for the score of the live hypotheses, when they finish. With EndLikely, it is a guess.
// More tokens never raise the log probability.
func (b *beam) bound() float64 {
	length := b.longest
	if b.Ends == EndLikely || b.LengthPenalty < 0 {
		length = len(b.live[0].tokens)
	}
	return b.score(b.live[0].logProb, length)
}

// candidates returns extended hypotheses, likeliest first. The Width + len(End) likeliest tokens for each hypothesis
// are enough: at least Width of them aren't end tokens, and extend keeps at most Width hypotheses.
func (b *beam) candidates(logits [][]float64) ([]candidate, error) {
	var list []candidate
	for _, h := range b.live {
		row, logProb, err := b.changed(h, logits[h.sequence])
		if err != nil {
			return nil, err
		}
		for _, id := range top(row, b.Width+len(b.End), math.Inf(-1)) {
			c := candidate{hypothesis: h, token: id}
			c.logProb += logProb(id)
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(y.logProb, x.logProb) })
	return list, nil
}

// changed returns scores in the order of the probabilities of a hypothesis' next tokens, and a function that returns
// the logarithms of these probabilities: after the penalty and the Rules. Both are valid until the next call.
func (b *beam) changed(h hypothesis, row []float64) ([]float64, func(id int) float64, error) {
	penalty, last := Sampler{RepetitionPenalty: b.RepetitionPenalty}, len(h.tokens) == b.longest-1
	if b.Width == 1 && penalty.penalizes() {
		row = slices.Clone(row) // it belongs to the model
		penalty.penalize(row, b.prompt, h.tokens)
	}
	best, err := likeliest(row)
	if err != nil {
		return nil, nil, err
	}
	probs := newLogProbs(row, best)
	if !b.Rules.changes(len(h.tokens), last) && (b.Width == 1 || !penalty.penalizes()) {
		return row, probs.of, nil
	}
	scores := b.scores[:0]
	for id := range row {
		scores = append(scores, probs.of(id))
	}
	b.scores = scores
	if b.Width > 1 {
		penalty.penalize(scores, b.prompt, h.tokens)
	}
	b.Rules.apply(scores, b.prompt, h.tokens, b.End, last)
	if best := slices.Index(scores, slices.Max(scores)); b.Renormalize && !math.IsInf(scores[best], -1) {
		probs := newLogProbs(slices.Clone(scores), best)
		for id := range scores {
			scores[id] = probs.of(id)
		}
	}
	return scores, func(id int) float64 { return scores[id] }, nil
}

// complete adds a hypothesis to best if it is among the Width best.
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

// score returns the Score of a hypothesis with the given log probability and length.
func (b *beam) score(logProb float64, length int) float64 {
	return logProb / math.Pow(float64(max(length, 1)), b.LengthPenalty)
}
