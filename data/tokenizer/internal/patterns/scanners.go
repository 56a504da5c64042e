// Package patterns has the regular expressions that published tokenizers split texts with. Go's regular expressions
// lack the lookahead of these patterns, so a Scanner written by hand stands for each.
package patterns

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/characters"
)

// A Scanner returns the length in bytes of a pattern's match at the start of a text. The text must not be empty. Each
// pattern here matches at the start of every text, so one match after the other splits the text into pieces.
//
// In all patterns, \s is Unicode's White_Space.
type Scanner func(text string) int

// Scanners has the Scanner of each known pattern.
var Scanners = map[string]Scanner{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`: GPT2,

	// cl100k of GPT-4, which Llama 3 uses, too: as published files spell it, and as newer versions of tiktoken do.
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: scanCL100K,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:        scanCL100K,

	// The pattern of Qwen, where each digit is a piece.
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: scanQwen,

	// The pattern o200k of GPT-4o.
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: scanO200K,
}

// scanCL100K scans the pattern of cl100k.
func scanCL100K(text string) int { return scanWords(text, 3) }

// scanQwen scans the pattern of Qwen.
func scanQwen(text string) int { return scanWords(text, 1) }

// scanWords scans the patterns of cl100k and Qwen. They differ in the maximum number of digits in a piece.
func scanWords(text string, digits int) int {
	if n := contraction(text); n > 0 {
		return n
	}
	r, n := utf8.DecodeRuneInString(text)
	class := characters.ClassOf(r)
	if class != characters.Letter && class != characters.Number && r != '\r' && r != '\n' { // one character may stand before letters
		if end := run(text, n, characters.Letter); end > n {
			return end
		}
	}
	switch class {
	case characters.Letter:
		return run(text, n, characters.Letter)
	case characters.Number:
		return number(text, digits)
	}
	if end := others(text, "\r\n"); end > 0 {
		return end
	}
	return whiteSpaceEnd(text)
}

// scanO200K scans the pattern of o200k, which also splits before capital letters.
func scanO200K(text string) int {
	r, n := utf8.DecodeRuneInString(text)
	class := characters.ClassOf(r)
	before := 0 // bytes of the character that may stand before a word
	if class != characters.Letter && class != characters.Number && r != '\r' && r != '\n' {
		before = n
	}
	for _, word := range [...]func(text string, start int) int{lowerWord, upperWord} {
		end := word(text, before)
		if end < 0 && before > 0 {
			end = word(text, 0)
		}
		if end >= 0 {
			return end + contraction(text[end:])
		}
	}
	if class == characters.Number {
		return number(text, 3)
	}
	if end := others(text, "\r\n/"); end > 0 {
		return end
	}
	return whiteSpaceEnd(text)
}

// lowerWord returns the end of a match of upper*lower+ that begins at start, or -1. Modifiers, marks and letters
// without case count both as upper and as lower.
func lowerWord(text string, start int) int {
	end, last := start, -1 // where the upper letters end, and where the last of them that is also a lower letter ends
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		upper, lower := characters.CaseOf(r)
		if !upper {
			break
		}
		if end += n; lower {
			last = end
		}
	}
	if lowers := lowerRun(text, end); lowers > end {
		return lowers
	}
	return last
}

// upperWord returns the end of a match of upper+lower* that begins at start, or -1.
func upperWord(text string, start int) int {
	end := start
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		if upper, _ := characters.CaseOf(r); !upper {
			break
		}
		end += n
	}
	if end == start {
		return -1
	}
	return lowerRun(text, end)
}

// lowerRun returns where the lower letters that begin at start end.
func lowerRun(text string, start int) int {
	for start < len(text) {
		r, n := utf8.DecodeRuneInString(text[start:])
		if _, lower := characters.CaseOf(r); !lower {
			break
		}
		start += n
	}
	return start
}

// contraction returns the length of a match of (?i:'s|'t|'re|'ve|'m|'ll|'d) at the start of text, or 0. Without
// regard to case, the long s, U+017F, is an s.
func contraction(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(text) > 2 && text[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(text) > 2 && text[2]|0x20 == 'l' {
			return 3
		}
	}
	if strings.HasPrefix(text[1:], "ſ") {
		return 1 + len("ſ")
	}
	return 0
}

// run returns where the characters of a class that begin at start end.
func run(text string, start int, class characters.Class) int {
	for start < len(text) {
		r, n := utf8.DecodeRuneInString(text[start:])
		if characters.ClassOf(r) != class {
			break
		}
		start += n
	}
	return start
}

// number returns the length of the digits at the start of text. It counts at most this number of digits.
func number(text string, digits int) int {
	end := 0
	for ; digits > 0 && end < len(text); digits-- {
		r, n := utf8.DecodeRuneInString(text[end:])
		if characters.ClassOf(r) != characters.Number {
			break
		}
		end += n
	}
	return end
}

// others returns the length of a match of " ?[^\s\p{L}\p{N}]+[ends]*" at the start of text, or 0.
func others(text, ends string) int {
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	end := run(text, start, characters.Other)
	if end == start {
		return 0
	}
	for end < len(text) && strings.IndexByte(ends, text[end]) >= 0 {
		end++
	}
	return end
}

// whiteSpaceEnd returns the length of a match of "\s*[\r\n]+|\s+(?!\S)|\s+" at the start of text, which is white space.
func whiteSpaceEnd(text string) int {
	end := run(text, 0, characters.Space)
	if line := strings.LastIndexAny(text[:end], "\r\n"); line >= 0 {
		return line + 1
	}
	if _, n := utf8.DecodeLastRuneInString(text[:end]); end < len(text) && n < end {
		return end - n // the last white space belongs to the next piece
	}
	return end
}

// Pieces splits a text by GPT-2's pattern.
func Pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := GPT2(text)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// GPT2 is the Scanner of GPT-2's pattern:
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// In JavaScript, unlike here, \s lacks U+0085 and includes U+FEFF.
func GPT2(text string) int {
	if text[0] == '\'' {
		for _, end := range [...]string{"s", "t", "re", "ve", "m", "ll", "d"} {
			if strings.HasPrefix(text[1:], end) {
				return 1 + len(end)
			}
		}
	}
	start := 0
	if text[0] == ' ' && len(text) > 1 && characters.ClassOf(firstRune(text[1:])) != characters.Space {
		start = 1
	}
	class := characters.ClassOf(firstRune(text[start:]))
	last, end := start, start // where the last character of the class starts and ends
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		if characters.ClassOf(r) != class {
			break
		}
		last, end = end, end+n
	}
	if class == characters.Space && end < len(text) && last > 0 {
		return last // the last white space belongs to the next piece
	}
	return end
}

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}
