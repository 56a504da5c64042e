// Package learn learns vocabularies from texts: the most common characters, the most common tokens, or the merges of
// byte-pair encoding. Its memory is bounded, however many texts there are.
package learn

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
)

// Characters returns the most common characters of texts, at most limit of them, in the order of code points. It
// leaves out U+FFFD.
func Characters(texts iter.Seq[string], limit int) []rune {
	counts := map[rune]int{}
	for text := range texts {
		for _, r := range text {
			counts[r]++
		}
	}
	delete(counts, utf8.RuneError)
	characters := slices.SortedFunc(maps.Keys(counts), func(a, b rune) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	characters = characters[:min(limit, len(characters))]
	slices.Sort(characters)
	return characters
}

// Tokens returns the most common tokens of texts, which split returns for each text, at most limit of them, by falling
// frequency. It leaves out U+FFFD.
func Tokens(texts iter.Seq[string], split func(text string) iter.Seq[string], limit int) []string {
	counts := newWordCounts(format.MaxFile) // more tokens wouldn't fit into a file
	for text := range texts {
		for token := range split(text) {
			counts.add(token)
		}
	}
	delete(counts.counts, string(utf8.RuneError))
	tokens := counts.commonest()
	return slices.Clone(tokens[:min(limit, len(tokens))])
}
