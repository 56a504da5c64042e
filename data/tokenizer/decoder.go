package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Decoder turns ids into text one at a time, for programs that show text while a model writes it. It returns whole
// characters only, and holds back the bytes of an unfinished one. Together, the results of Next and Flush are the text
// that Decode returns for all ids, with U+FFFD (�) for each byte that isn't part of a character.
//
// Tokenizer must be set. A Decoder is for one text at a time and one goroutine.
type Decoder struct {
	Tokenizer   Tokenizer
	SkipSpecial bool // leave special tokens out of the text

	last []int  // the last id, or nothing at the start of a text
	held string // the first bytes of a character
}

// Next returns the text that an id adds, which may be empty. If the tokenizer doesn't have the id, Next returns an
// error and leaves the Decoder unchanged.
func (d *Decoder) Next(id int) (string, error) {
	if n := d.Tokenizer.Len(); id < 0 || id >= n {
		return "", fmt.Errorf("id %d isn't one of the tokenizer's %d ids", id, n)
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

// Flush returns a U+FFFD for each byte that the Decoder holds back, and makes the Decoder ready for another text.
func (d *Decoder) Flush() string {
	text := valid(d.held)
	d.last, d.held = nil, ""
	return text
}

// wholeEnd returns the index of an unfinished character at the end of text, or len(text) if there is none.
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

// valid returns text with U+FFFD for each byte that isn't part of a character.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}
