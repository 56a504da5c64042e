package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The functions in this file use the tables of unicodetables.go, not Go's: each part of the reference library has its
// own version of Unicode, and Go's version changes with Go.

type pieceClass uint8

const (
	otherClass pieceClass = iota
	letterClass
	numberClass
	spaceClass
)

// asciiClasses has the class of each ASCII character.
var asciiClasses = func() (classes [utf8.RuneSelf]pieceClass) {
	for r := range classes {
		classes[r] = classIn(rune(r))
	}
	return classes
}()

// classOf returns the class of a character in the patterns of scanners.
func classOf(r rune) pieceClass {
	if 0 <= r && r < utf8.RuneSelf {
		return asciiClasses[r]
	}
	return classIn(r)
}

func classIn(r rune) pieceClass {
	switch {
	case unicode.Is(letters16, r):
		return letterClass
	case unicode.IsSpace(r):
		return spaceClass
	case unicode.Is(numbers16, r):
		return numberClass
	}
	return otherClass
}

// caseOf reports whether r is in [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], and whether it is in [\p{Ll}\p{Lm}\p{Lo}\p{M}].
func caseOf(r rune) (upper, lower bool) {
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

// isWord reports whether r matches \w in Unicode's sense: UTS #18, annex C.
func isWord(r rune) bool {
	return unicode.Is(letters16, r) || unicode.Is(marks16, r) || unicode.Is(otherWords16, r)
}

// isNumber reports whether r is a number for the pre-tokenizer Digits.
func isNumber(r rune) bool { return unicode.Is(numbers16, r) || unicode.Is(otherNumbers17, r) }

// isPunctuation reports whether r is punctuation for BERT: in Unicode's category P, or any printable ASCII character
// but letters, digits and the space.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.Is(punctuation8, r)
}

// A lowering says that every step-th character from first to last is a capital letter. Its lower case is by greater.
type lowering struct{ first, last, step, by rune }

// lower returns a character in lower case. Only İ becomes two characters.
func lower(r rune) string {
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

// clustered returns a text with the grapheme clusters of Unicode 17 for package uniseg, which has Unicode 15: marks of
// the same length stand for the marks that Unicode 15 lacks.
func clustered(text string) string {
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
