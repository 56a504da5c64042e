package linear

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// TokenGrams are the features for tagging: a text is a token with its neighbours, as Neighbours returns it.
var TokenGrams = Grams{Neighbours: true}

// separator divides a token from its neighbours.
const separator = "\x1f"

// Neighbours returns token i with the two tokens before it and the two after it, as a text for TokenGrams.
func Neighbours(tokens []string, i int) string {
	var window [5]string
	for k := range window {
		if n := i + k - 2; n >= 0 && n < len(tokens) {
			window[k] = strings.ReplaceAll(tokens[n], separator, " ")
		}
	}
	return strings.Join(window[:], separator)
}

// longestAffix is the greatest length of a beginning or an end of a token that is a feature.
const longestAffix = 4

// neighbours appends the hashes of the features of a token with its neighbours to s.hashes: the token, without regard
// to case too, its beginnings, its ends and its shape; the neighbours, their ends and their shapes; and pairs of these
// tokens. They are the usual features of linear models for tags (Ratnaparkhi, 1996).
func (Grams) neighbours(s *Scratch, text string) {
	var window [5]string
	for i, part := range strings.SplitN(text, separator, len(window)) {
		window[i] = part
	}
	kind := uint64(0)
	add := func(parts ...string) {
		kind++
		h := kind
		for _, part := range parts {
			for _, r := range part {
				h = extend(h, uint64(r))
			}
			h = extend(h, 0)
		}
		s.hashes = append(s.hashes, finish(h))
	}
	add(window[2])
	for i, part := range window {
		window[i] = strings.Map(unicode.ToLower, part)
		add(shapeOf(part))
		add(last(window[i], 3))
		add(window[i])
	}
	before2, before, token, after, after2 := window[0], window[1], window[2], window[3], window[4]
	for n := 1; n <= longestAffix; n++ {
		add(token[:len(token)-len(last(token, utf8.RuneCountInString(token)-n))])
		add(last(token, n))
	}
	add(before, token)
	add(token, after)
	add(before2, before)
	add(after, after2)
	add(before, after)
	add(last(before, 3), last(token, 3))
}

// last returns the last n characters of a token, or the whole token if it is shorter.
func last(token string, n int) string {
	start := len(token)
	for ; n > 0 && start > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(token[:start])
		start -= size
	}
	return token[start:]
}

// shapeOf returns a token with A for upper-case letters, a for others, 0 for digits, and runs of one of these cut to
// two.
func shapeOf(token string) string {
	var shape []rune
	for _, r := range token {
		switch {
		case unicode.IsUpper(r):
			r = 'A'
		case unicode.IsLetter(r):
			r = 'a'
		case unicode.IsDigit(r):
			r = '0'
		}
		if n := len(shape); n < 2 || shape[n-1] != r || shape[n-2] != r {
			shape = append(shape, r)
		}
	}
	return string(shape)
}
