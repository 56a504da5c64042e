package characters

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// CombiningClass returns the canonical combining class of a character in Unicode 9.
func CombiningClass(r rune) uint8 {
	if !unicode.Is(marks9, r) {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// Decompose returns the full decomposition of a character in Unicode 9. The form is norm.NFD or norm.NFKD.
func Decompose(form norm.Form, r rune) []rune {
	const first, vowels, finals, count = 0xAC00, 21, 28, 11172
	if i := r - first; i >= 0 && i < count { // Hangul: section 3.12 of the Unicode standard
		parts := []rune{0x1100 + i/(vowels*finals), 0x1161 + i%(vowels*finals)/finals}
		if final := i % finals; final > 0 {
			parts = append(parts, 0x11A7+final)
		}
		return parts
	}
	if d := form.PropertiesString(string(r)).Decomposition(); d != nil && unicode.Is(decomposed9, r) {
		return []rune(string(d))
	}
	return []rune{r}
}

// Compose returns the character that a and b form together in Unicode 9, and whether they form one. Package norm
// compares only the last 16 bits of a and b, so Compose also checks that its result decomposes into a and b.
func Compose(a, b rune) (rune, bool) {
	both := string([]rune{a, b})
	text := norm.NFC.String(both)
	r, n := utf8.DecodeRuneInString(text)
	return r, n == len(text) && unicode.Is(decomposed9, r) && norm.NFD.String(text) == norm.NFD.String(both)
}
