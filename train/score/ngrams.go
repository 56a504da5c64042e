package score

import "unicode"

// An ngram has up to 6 units. The rest are zero.
type ngram[T comparable] [6]T

// grams returns how often each n-gram occurs in a text.
func grams[T comparable](units []T, n int) map[ngram[T]]int {
	counts := map[ngram[T]]int{}
	for i := 0; i+n <= len(units); i++ {
		var g ngram[T]
		copy(g[:n], units[i:])
		counts[g]++
	}
	return counts
}

// isSpace reports whether r is white space in Python, and so in sacreBLEU.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
