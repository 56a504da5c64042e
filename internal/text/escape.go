// Package text makes what people read. It escapes text that may hold anything: a terminal obeys control characters, and
// marks of direction turn around what a reader sees. A user's data, names and paths and a model's text may have either.
// It also says counts, bytes and seconds in words.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns s with escapes, as Go has them, for what isn't printable and for bytes that aren't UTF-8. Spaces of
// every kind and ends of lines stay.
func Escape(s string) string { return EscapeExcept(s, "\n") }

// Shorten returns s or, where it has more than head+tail characters, so many of its beginning and of its end.
func Shorten(s string, head, tail int) string {
	r := []rune(s)
	if len(r) <= head+tail {
		return s
	}
	return string(r[:head]) + " … " + string(r[len(r)-tail:])
}

// EscapeExcept is like Escape, but leaves the characters in keep unescaped, instead of ends of lines.
func EscapeExcept(s, keep string) string {
	var escaped strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		part := s[i : i+size]
		if strings.ContainsRune(keep, r) || (unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)) && (r != utf8.RuneError || size > 1) {
			escaped.WriteString(part)
		} else {
			escaped.WriteString(strings.Trim(strconv.Quote(part), `"`))
		}
	}
	return escaped.String()
}
