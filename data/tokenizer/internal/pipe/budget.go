package pipe

import "fmt"

// A Budget bounds the memory and the time that a text takes with a tokenizer from a file, whatever the file says. It
// counts bytes, tokens and steps and never reads a clock, so the same text always has the same result. A part of a
// tokenizer that finds the Budget spent returns at once. Its result doesn't matter, because the caller returns the
// error.
type Budget struct {
	Bytes  int64 // how much the text may still grow while it is normalised, split or decoded
	tokens int64 // how many tokens the text may still become
	Steps  int64 // how many steps the work may still take; a step takes about 4 ns
	Err    error
}

// The first limit of each line counts for every byte of a text. The second one is added for the whole text. Published
// files need far less: the longest compatibility decomposition makes a text 11 times as long.
const (
	MaxGrowth, freeGrowth = 16, 1 << 20 // bytes of the normalised or decoded text
	maxTokens, freeTokens = 4, 1 << 20
	MaxSteps, freeSteps   = 400, 1 << 22
)

// These are the steps of parts of the work, measured with texts and files that make the parts slow.
const (
	StepsOfNode  = 2  // of a trie
	StepsOfPart  = 8  // per byte that a normalizer, splitter or model reads
	StepsOfForm  = 40 // per byte that is decomposed or composed, or split into grapheme clusters
	StepsOfMerge = 60 // per byte that byte-pair encoding starts with
)

// NewBudget returns the budget for a text with this number of bytes.
func NewBudget(size int) *Budget {
	n := int64(size)
	return &Budget{Bytes: (MaxGrowth-1)*n + freeGrowth, tokens: maxTokens*n + freeTokens, Steps: MaxSteps*n + freeSteps}
}

// Fits reports whether the text may grow by n bytes.
func (b *Budget) Fits(n int) bool {
	if b.Err == nil && int64(n) > b.Bytes {
		b.Err = fmt.Errorf("with this tokenizer, the text would grow to more than %d times its bytes plus %d", MaxGrowth, freeGrowth)
	}
	return b.Err == nil
}

// Take counts n steps.
func (b *Budget) Take(n int) { b.Steps -= int64(n) }

// Spent reports whether the text may take no more steps, or has an error already.
func (b *Budget) Spent() bool {
	if b.Err == nil && b.Steps < 0 {
		b.Err = fmt.Errorf("with this tokenizer, the text would take more than %d steps per byte plus %d", MaxSteps, freeSteps)
	}
	return b.Err != nil
}

// Add counts n tokens.
func (b *Budget) Add(n int) error {
	if b.tokens -= int64(n); b.Err == nil && b.tokens < 0 {
		b.Err = fmt.Errorf("with this tokenizer, the text would have more than %d tokens per byte plus %d", maxTokens, freeTokens)
	}
	return b.Err
}
