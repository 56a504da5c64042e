// Package text formats text for people. It escapes untrusted text, such as a user's data, names, paths and a model's
// output: terminals obey control characters, and direction marks reverse the text that a reader sees. It also formats
// counts, bytes and seconds.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns s with Go escapes for characters that aren't printable and for bytes that aren't UTF-8. It keeps all
// kinds of spaces, and newlines.
func Escape(s string) string { return EscapeExcept(s, "\n") }

// Shorten returns s or, if it has more than head+tail characters, the beginning (head characters) and the end (tail
// characters) with an ellipsis between.
func Shorten(s string, head, tail int) string {
	r := []rune(s)
	if len(r) <= head+tail {
		return s
	}
	return string(r[:head]) + " … " + string(r[len(r)-tail:])
}

// Label returns the name of a class or a tag for a table, escaped: "(none)" if it is empty, and cut if it is long.
func Label(name string) string {
	if name == "" {
		return "(none)"
	}
	return Cut(name, 24)
}

// Cut returns s or, if it has more than limit characters, its first ones with an ellipsis. It escapes newlines, too.
func Cut(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return EscapeExcept(s, "")
}

// EscapeExcept is like Escape, but leaves the characters in keep unescaped, instead of newlines.
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

// OneLine returns an error's text on one line. It cuts the middle of a long text, because the text may contain a user's
// input.
func OneLine(err error) string {
	return Shorten(strings.Join(strings.Fields(err.Error()), " "), 400, 100)
}
