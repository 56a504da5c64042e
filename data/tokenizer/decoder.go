package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Decoder turns ids into text one at a time, for text that is shown while it is written. It returns whole characters
// only: the bytes of an unfinished one are held back. What Next and Flush return makes up the text that Decode returns
// for all ids at once, with U+FFFD (�) for each byte that belongs to no character.
//
// Set Tokenizer; the other fields may be zero. A Decoder is for one text at a time and one goroutine.
type Decoder struct {
	Tokenizer   Tokenizer
	SkipSpecial bool // leave special tokens out of the text

	last []int  // the id before the next one, or none
	held string // the first bytes of a character
}

// Next returns the text that an id adds, which may be empty. An id that the tokenizer doesn't have is an error, after
// which the Decoder is as before.
func (d *Decoder) Next(id int) (string, error) {
	if n := d.Tokenizer.Len(); id < 0 || id >= n {
		return "", fmt.Errorf("id %d isn't one of the tokenizer's %d", id, n)
	}
	if d.SkipSpecial {
		for _, special := range d.Tokenizer.Special() {
			if id == special {
				return "", nil
			}
		}
	}
	before := ""
	var err error
	if len(d.last) > 0 {
		if before, err = d.Tokenizer.Decode(d.last); err != nil {
			return "", err
		}
	}
	both, err := d.Tokenizer.Decode(append(d.last, id))
	if err != nil {
		return "", err
	}
	text := d.held + strings.TrimPrefix(both, before)
	end := wholeEnd(text)
	d.last, d.held = []int{id}, text[end:]
	return valid(text[:end]), nil
}

// Flush returns the text held back, a U+FFFD for each byte of an unfinished character, and makes the Decoder ready for
// another text.
func (d *Decoder) Flush() string {
	text := valid(d.held)
	d.last, d.held = nil, ""
	return text
}

// wholeEnd returns where the unfinished character at the end of a text begins, or the length if there is none.
func wholeEnd(text string) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// valid returns a text with U+FFFD for each byte that belongs to no character.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}
