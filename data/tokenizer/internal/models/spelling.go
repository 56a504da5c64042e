package models

import "strings"

// Spell returns the spelling of a byte-level token in a file.
func Spell(token string) string {
	var s strings.Builder
	for i := range len(token) {
		s.WriteRune(byteRunes[token[i]])
	}
	return s.String()
}

// Unspell returns the byte-level token with this spelling. It returns false if the spelling is empty or has a character
// that stands for no byte.
func Unspell(s string) (string, bool) {
	if strings.IndexFunc(s, func(r rune) bool { return r < '!' || '~' < r }) < 0 {
		return s, s != ""
	}
	var token []byte
	for _, r := range s {
		b, ok := runeBytes[r]
		if !ok {
			return "", false
		}
		token = append(token, b)
	}
	return string(token), len(token) > 0
}

// ByteOf returns the byte that a token such as <0x0A> stands for, and whether it is such a token.
func ByteOf(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	var b byte
	for _, c := range token[3:5] {
		switch {
		case '0' <= c && c <= '9':
			b = b<<4 | byte(c-'0')
		case 'A' <= c && c <= 'F':
			b = b<<4 | byte(c-'A'+10)
		default:
			return 0, false
		}
	}
	return b, true
}

// byteRunes has the character that stands for each byte in a file. A byte that is printable in Latin-1 stands for
// itself. For the other bytes, the characters from U+0100 on stand, in the same order. So printable bytes come first in
// the order of code points.
var byteRunes, runeBytes = func() (runes [256]rune, bytes map[rune]byte) {
	next := rune(256)
	bytes = map[rune]byte{}
	for b := range runes {
		switch {
		case '!' <= b && b <= '~' || '¡' <= b && b <= '¬' || '®' <= b:
			runes[b] = rune(b)
		default:
			runes[b] = next
			next++
		}
		bytes[runes[b]] = byte(b)
	}
	return runes, bytes
}()
