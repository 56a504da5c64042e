package decode

import (
	"fmt"
	"math"
	"slices"
)

// Rules limit which tokens may come next. The zero Rules allow every token. Their order and results match the
// transformers library. Ids without a logit have no effect, except in ForceFirst and ForceLast, where they are errors.
type Rules struct {
	// NoRepeat is the length of sequences that don't occur twice in the prompt and its continuation; 0 means that
	// tokens may repeat as they like.
	NoRepeat int

	// BadWords lists sequences that don't occur. A sequence of one token that is an end token has no effect.
	BadWords [][]int

	// MinTokens is the number of new tokens before which no end token is chosen.
	MinTokens int

	// If ForceFirst isn't empty, the first new token is one of these. If ForceLast isn't empty, the last possible
	// token, number MaxTokens, is one of ForceLast. Beam counts the probability of a forced token as 1.
	ForceFirst, ForceLast []int

	// Suppress lists tokens that are never chosen, and SuppressFirst tokens that aren't chosen first or, after a token
	// of ForceFirst, second.
	Suppress, SuppressFirst []int
}

// check returns an error if the Rules don't fit a vocabulary.
func (r *Rules) check(vocab int) error {
	if r.NoRepeat < 0 {
		return fmt.Errorf("decode: NoRepeat must be at least 1, or 0 for no limit, got %d", r.NoRepeat)
	}
	for _, id := range slices.Concat(r.ForceFirst, r.ForceLast) {
		if id < 0 || id >= vocab {
			return fmt.Errorf("decode: a forced token must be from 0 to %d, got %d", vocab-1, id)
		}
	}
	return nil
}

// changes reports whether apply may change scores for a token after n new tokens.
func (r *Rules) changes(n int, last bool) bool {
	return r.NoRepeat > 0 || len(r.BadWords) > 0 || n < r.MinTokens || n == 0 && len(r.ForceFirst) > 0 || last && len(r.ForceLast) > 0 ||
		len(r.Suppress) > 0 || n <= 1 && len(r.SuppressFirst) > 0
}

// apply sets the scores of tokens that may not come next to −Inf, and of forced tokens to 0. The argument end lists the
// end tokens, and last says whether the next token is the last possible one.
func (r *Rules) apply(scores []float64, prompt, tokens, end []int, last bool) {
	bar := func(ids ...int) {
		for _, id := range ids {
			if id >= 0 && id < len(scores) {
				scores[id] = math.Inf(-1)
			}
		}
	}
	force := func(ids []int) {
		if len(ids) > 0 {
			for i := range scores {
				scores[i] = math.Inf(-1)
			}
		}
		for _, id := range ids {
			scores[id] = 0
		}
	}
	if r.NoRepeat > 0 || len(r.BadWords) > 0 {
		sequence := slices.Concat(prompt, tokens)
		ends := func(n int, tail []int) bool { return slices.Equal(sequence[n-len(tail):n], tail) }
		start := len(sequence) + 1 - r.NoRepeat // of the tokens that may not come again with the same next one
		for n := max(0, r.NoRepeat-1); r.NoRepeat > 0 && start >= 0 && n < len(sequence); n++ {
			if ends(n, sequence[start:]) {
				bar(sequence[n])
			}
		}
		for _, word := range r.BadWords {
			n := len(word) - 1
			if n == 0 && !slices.Contains(end, word[0]) || n > 0 && n <= len(sequence) && ends(len(sequence), word[:n]) {
				bar(word[n])
			}
		}
	}
	if len(tokens) < r.MinTokens {
		bar(end...)
	}
	first := 0 // tokens before the first one that isn't forced
	if len(r.ForceFirst) > 0 {
		first = 1
	}
	if len(tokens) == 0 {
		force(r.ForceFirst)
	}
	if last {
		force(r.ForceLast)
	}
	bar(r.Suppress...)
	if len(tokens) == first {
		bar(r.SuppressFirst...)
	}
}
