package pipe

import "fmt"

// A Budget bounds the memory and the time that a text takes with a tokenizer from a file, whatever the file says. It
// counts bytes, tokens and steps, never the clock, so the same text always has the same result. A part of a tokenizer
// that finds the Budget spent returns at once, with any result, because the error replaces it.
type Budget struct {
	Bytes  int64 // by which the text may still grow while it is normalised, split or decoded
	tokens int64 // that the text may still become
	Steps  int64 // that the text may still take, each about 4 ns
	Err    error
}

// These limits are for each byte of a text, and for a text of any length. Published files need far less: the longest
// compatibility decomposition makes a text 11 times as long.
const (
	MostGrowth, freeGrowth = 16, 1 << 20 // bytes of the normalised or decoded text
	mostTokens, freeTokens = 4, 1 << 20
	MostSteps, freeSteps   = 400, 1 << 22
)

// Steps of parts of the work, as measured with texts and files that make them slow.
const (
	StepsOfNode  = 2  // of a trie
	StepsOfPart  = 8  // per byte that a normalizer, splitter or model reads
	StepsOfForm  = 40 // per byte that is decomposed or composed, or split into grapheme clusters
	StepsOfMerge = 60 // per byte that byte-pair encoding starts with
)

// NewBudget returns the budget for a text with this number of bytes.
func NewBudget(size int) *Budget {
	n := int64(size)
	return &Budget{Bytes: (MostGrowth-1)*n + freeGrowth, tokens: mostTokens*n + freeTokens, Steps: MostSteps*n + freeSteps}
}

// Fits reports whether the text may grow by n bytes.
func (b *Budget) Fits(n int) bool {
	if b.Err == nil && int64(n) > b.Bytes {
		b.Err = fmt.Errorf("with this tokenizer, the text would grow to more than %d times its bytes plus %d", MostGrowth, freeGrowth)
	}
	return b.Err == nil
}

// Take counts n steps.
func (b *Budget) Take(n int) { b.Steps -= int64(n) }

// Spent reports whether the text may take no more steps, or has an error already.
func (b *Budget) Spent() bool {
	if b.Err == nil && b.Steps < 0 {
		b.Err = fmt.Errorf("with this tokenizer, the text would take more than %d steps per byte plus %d", MostSteps, freeSteps)
	}
	return b.Err != nil
}

// Add counts n tokens.
func (b *Budget) Add(n int) error {
	if b.tokens -= int64(n); b.Err == nil && b.tokens < 0 {
		b.Err = fmt.Errorf("with this tokenizer, the text would have more than %d tokens per byte plus %d", mostTokens, freeTokens)
	}
	return b.Err
}
