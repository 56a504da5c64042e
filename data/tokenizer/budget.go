package tokenizer

import "fmt"

// A budget bounds the memory and the time that a text takes with a tokenizer from a file, whatever the file says. It
// counts bytes, tokens and steps, never the clock, so the same text always has the same result. A part of a tokenizer
// that finds the budget spent returns at once, with any result, because the error replaces it.
type budget struct {
	bytes  int64 // by which the text may still grow while it is normalised, split or decoded
	tokens int64 // that the text may still become
	steps  int64 // that the text may still take, each about 4 ns
	err    error
}

// These limits are for each byte of a text, and for a text of any length. Published files need far less: the longest
// compatibility decomposition makes a text 11 times as long.
const (
	mostGrowth, freeGrowth = 16, 1 << 20 // bytes of the normalised or decoded text
	mostTokens, freeTokens = 4, 1 << 20
	mostSteps, freeSteps   = 400, 1 << 22
)

// Steps of parts of the work, as measured with texts and files that make them slow.
const (
	stepsOfNode  = 2  // of a trie
	stepsOfPart  = 8  // per byte that a normalizer, splitter or model reads
	stepsOfForm  = 40 // per byte that is decomposed or composed, or split into grapheme clusters
	stepsOfMerge = 60 // per byte that byte-pair encoding starts with
)

// newBudget returns the budget for a text with this number of bytes.
func newBudget(size int) *budget {
	n := int64(size)
	return &budget{bytes: (mostGrowth-1)*n + freeGrowth, tokens: mostTokens*n + freeTokens, steps: mostSteps*n + freeSteps}
}

// fits reports whether the text may grow by n bytes.
func (b *budget) fits(n int) bool {
	if b.err == nil && int64(n) > b.bytes {
		b.err = fmt.Errorf("with this tokenizer, the text would grow to more than %d times its bytes plus %d", mostGrowth, freeGrowth)
	}
	return b.err == nil
}

// take counts n steps.
func (b *budget) take(n int) { b.steps -= int64(n) }

// spent reports whether the text may take no more steps, or has an error already.
func (b *budget) spent() bool {
	if b.err == nil && b.steps < 0 {
		b.err = fmt.Errorf("with this tokenizer, the text would take more than %d steps per byte plus %d", mostSteps, freeSteps)
	}
	return b.err != nil
}

// add counts n tokens.
func (b *budget) add(n int) error {
	if b.tokens -= int64(n); b.err == nil && b.tokens < 0 {
		b.err = fmt.Errorf("with this tokenizer, the text would have more than %d tokens per byte plus %d", mostTokens, freeTokens)
	}
	return b.err
}
