package text

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Words returns the words of s in order: each run of letters, each run of digits, and every other character that isn't
// white space. Combining marks and the joiners U+200C and U+200D belong to the character before them. Of scripts that
// put no spaces between words (Han, Hiragana, Katakana, Thai, Lao, Khmer and Myanmar), each letter is a word. All bytes
// between words are white space. An invalid byte counts as the character U+FFFD.
func Words(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, last := 0, space // of the word that isn't finished yet
		for i, r := range s {
			now := classOf(r)
			if now == joined && last != space || now == last && (now == letter || now == digit) {
				continue
			}
			if last != space && !yield(s[start:i]) {
				return
			}
			start, last = i, now
		}
		if last != space {
			yield(s[start:])
		}
	}
}

// Places returns the start and the end of each of the words of s, in bytes. The words are parts of s, in order.
func Places(s string, words iter.Seq[string]) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		end := 0
		for word := range words {
			start := end + strings.Index(s[end:], word)
			if end = start + len(word); !yield(start, end) {
				return
			}
		}
	}
}

// VisibleWords returns the words of s like Words. But a character that can't be seen, such as a soft hyphen or a space
// without width, belongs to the word before it, if no white space is between them.
func VisibleWords(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, end := 0, 0 // of the word that isn't finished yet
		for first, last := range Places(s, Words(s)) {
			if r, n := utf8.DecodeRuneInString(s[first:last]); n == last-first && first == end && end > 0 && unicode.In(r, unicode.Cc, unicode.Cf) {
				end = last
				continue
			}
			if end > 0 && !yield(s[start:end]) {
				return
			}
			start, end = first, last
		}
		if end > 0 {
			yield(s[start:end])
		}
	}
}

// A class says how a character joins with others to words.
type class int

const (
	space class = iota
	letter
	digit
	joined // belongs to the character before it
	alone
)

func classOf(r rune) class {
	if r < utf8.RuneSelf { // ASCII, which most text is
		switch {
		case 'a' <= r|0x20 && r|0x20 <= 'z':
			return letter
		case '0' <= r && r <= '9':
			return digit
		case r == ' ' || '\t' <= r && r <= '\r':
			return space
		}
		return alone
	}
	switch {
	case unicode.In(r, unicode.M, unicode.Join_Control):
		return joined
	case unicode.IsLetter(r) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return letter
	case unicode.IsDigit(r):
		return digit
	case unicode.IsSpace(r):
		return space
	}
	return alone
}
