package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// A Decoder turns ids into text one at a time, for programs that show text while a model writes it. It returns only
// whole characters. It holds back the bytes of an unfinished character, and text that later ids may change. Together,
// the results of Next and Flush are the text that Decode returns for the ids, with U+FFFD (�) for each unfinished
// character, and for each other byte that isn't part of one.
//
// Tokenizer must be set. A Decoder is for one text at a time and one goroutine. Don't copy it after the first Next.
type Decoder struct {
	Tokenizer   Tokenizer
	SkipSpecial bool // leave special tokens out of the text

	held []byte // text that Next hasn't returned, such as the first bytes of a character
	last []int  // the last id, or nothing at the start of a text

	next func(id int) error // with a Pipeline: decodes an id
	end  func() error       // with a Pipeline: ends the text
}

// Next returns the text that an id adds, which may be empty. If the tokenizer doesn't have the id, Next returns an
// error and leaves the Decoder unchanged. If the text exceeds the limits of Pipeline.Decode, Next returns errors
// until the next Flush.
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
	if err := d.add(id); err != nil {
		return "", err
	}
	end := wholeEnd(d.held)
	text := valid(string(d.held[:end]))
	d.held = d.held[:copy(d.held, d.held[end:])]
	return text, nil
}

// add appends the text that an id adds to d.held.
func (d *Decoder) add(id int) error {
	if p, ok := d.Tokenizer.(*Pipeline); ok {
		if !p.pipeline.Has(id) {
			return fmt.Errorf("id %d isn't one of the tokenizer's ids", id)
		}
		if d.next == nil {
			d.next, d.end = p.pipeline.Stream(func(text string) { d.held = append(d.held, text...) })
		}
		return d.next(id)
	}
	before, err := d.Tokenizer.Decode(d.last)
	if err != nil {
		return err
	}
	both, err := d.Tokenizer.Decode(append(d.last, id))
	if err != nil {
		return err
	}
	d.last, d.held = []int{id}, append(d.held, strings.TrimPrefix(both, before)...)
	return nil
}

// Flush returns the rest of the text, with U+FFFD for an unfinished character, and makes the Decoder ready for another
// text.
func (d *Decoder) Flush() string {
	if d.end != nil {
		d.end() // ignores an error: the text is cut, and there is no id to return the error for
	}
	text := valid(string(d.held))
	d.last, d.held, d.next, d.end = nil, nil, nil, nil
	return text
}

// wholeEnd returns the index of an unfinished character at the end of text, or len(text) if there is none.
func wholeEnd(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// valid returns text with one U+FFFD for each unfinished character, and for each other byte that isn't part of one. The
// WHATWG Encoding Standard, and so browsers, and Python's errors="replace" do the same.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	text, _ = unicode.UTF8.NewDecoder().String(text) // it replaces everything that is invalid
	return text
}
