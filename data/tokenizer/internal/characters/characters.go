// Package characters has classes of characters, lower case and decompositions, each from the version of Unicode that
// the same part of the reference library has.
package characters

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The functions in this file use the tables of tables.go instead of Go's. Go's version of Unicode changes with Go.

// A Class is a class of characters in the regular expressions of package patterns.

type Class uint8

const (
	Other Class = iota
	Letter
	Number
	Space
)

// asciiClasses has the Class of each ASCII character.
var asciiClasses = func() (classes [utf8.RuneSelf]Class) {
	for r := range classes {
		classes[r] = classIn(rune(r))
	}
	return classes
}()

// ClassOf returns the Class of a character.
func ClassOf(r rune) Class {
	if 0 <= r && r < utf8.RuneSelf {
		return asciiClasses[r]
	}
	return classIn(r)
}

func classIn(r rune) Class {
	switch {
	case unicode.Is(letters16, r):
		return Letter
	case unicode.IsSpace(r):
		return Space
	case unicode.Is(numbers16, r):
		return Number
	}
	return Other
}

// CaseOf reports whether r counts as an upper-case and as a lower-case letter: whether it is in
// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], and whether it is in [\p{Ll}\p{Lm}\p{Lo}\p{M}].
func CaseOf(r rune) (upper, lower bool) {
	switch {
	case r < utf8.RuneSelf:
		return 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z'
	case unicode.Is(lowers16, r):
		return false, true
	case unicode.Is(uppers16, r):
		return true, false
	}
	both := unicode.Is(letters16, r) || unicode.Is(marks16, r)
	return both, both
}

// IsWord reports whether r matches \w in Unicode's sense: UTS #18, annex C.
func IsWord(r rune) bool {
	return unicode.Is(letters16, r) || unicode.Is(marks16, r) || unicode.Is(otherWords16, r)
}

// IsNumber reports whether r is a number for the pre-tokenizer Digits.
func IsNumber(r rune) bool { return unicode.Is(numbers16, r) || unicode.Is(otherNumbers17, r) }

// IsPunctuation reports whether r is punctuation for BERT. In ASCII, these are all printable characters except letters,
// digits and the space. Elsewhere, it is Unicode's category P.
func IsPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.Is(punctuation8, r)
}

// A lowering has capital letters: every step-th character from first to last. Adding by gives their lower case.
type lowering struct{ first, last, step, by rune }

// Lower returns a character in lower case. Only İ becomes two characters.
func Lower(r rune) string {
	switch {
	case 'A' <= r && r <= 'Z':
		return string(r + 'a' - 'A')
	case r < utf8.RuneSelf:
		return string(r)
	case r == 'İ':
		return "i̇"
	}
	i, _ := slices.BinarySearchFunc(lower17, r, func(l lowering, r rune) int { return int(l.last - r) })
	if i < len(lower17) && lower17[i].first <= r && (r-lower17[i].first)%lower17[i].step == 0 {
		r += lower17[i].by
	}
	return string(r)
}

// Clustered prepares a text for package uniseg, so that it finds the grapheme clusters of Unicode 17. Package uniseg
// has Unicode 15. Clustered replaces each mark that Unicode 15 lacks by another mark with the same number of bytes.
func Clustered(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r > 0x800 && unicode.Is(extends17, r) }) {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case !unicode.Is(extends17, r):
			return r
		case r < 1<<16:
			return 0x20D0 // a mark of three bytes
		}
		return 0xE0100 // a mark of four bytes
	}, text)
}

// Cleaned removes control characters and U+FFFD, and returns a space for all white space.
func Cleaned(r rune) string {
	switch {
	case unicode.Is(removed8, r):
		return ""
	case unicode.IsSpace(r):
		return " "
	}
	return string(r)
}

// IsChinese reports whether r is in the blocks of CJK ideographs that BERT surrounds by spaces.
func IsChinese(r rune) bool {
	switch {
	case 0x4E00 <= r && r <= 0x9FFF, 0x3400 <= r && r <= 0x4DBF, 0xF900 <= r && r <= 0xFAFF:
		return true
	case 0x20000 <= r && r <= 0x2A6DF, 0x2A700 <= r && r <= 0x2B73F, 0x2B740 <= r && r <= 0x2B81F, 0x2B920 <= r && r <= 0x2CEAF, 0x2F800 <= r && r <= 0x2FA1F:
		return true
	}
	return false
}

// IsAccent reports whether StripAccents removes a character.
func IsAccent(r rune) bool { return unicode.Is(marks9, r) }

// IsBERTAccent reports whether BERT removes a character as an accent.
func IsBERTAccent(r rune) bool { return unicode.Is(nonspacing8, r) }
