package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Vocab is a Tokenizer for a fixed set of characters, its symbols. A symbol's id is its index, from 0. A Vocab that
// New has made also has a last id for all other characters.
type Vocab struct {
	symbols []rune
	unknown bool
	ascii   [utf8.RuneSelf]int // id+1 of each symbol below RuneSelf, or 0
	others  map[rune]int       // ids of the other symbols
}

// NewVocab returns a vocabulary with the characters of symbols, in their order. It returns an error if symbols isn't
// UTF-8, is empty or has a character twice.
func NewVocab(symbols string) (*Vocab, error) {
	if symbols == "" {
		return nil, fmt.Errorf("a vocabulary needs at least one symbol, got none")
	}
	v := &Vocab{others: make(map[rune]int)}
	for i, r := range symbols {
		if invalidAt(symbols, i, r) {
			return nil, fmt.Errorf("the symbols of a vocabulary: %w", &InvalidUTF8Error{Offset: int64(i)})
		}
		id := len(v.symbols)
		if first, ok := v.ID(r); ok {
			return nil, fmt.Errorf("a vocabulary holds each symbol once, got %q as symbols %d and %d", r, first, id)
		}
		if r < utf8.RuneSelf {
			v.ascii[r] = id + 1
		} else {
			v.others[r] = id
		}
		v.symbols = append(v.symbols, r)
	}
	return v, nil
}

// Len returns the number of ids: one per symbol, and the unknown id if there is one.
func (v *Vocab) Len() int {
	if v.unknown {
		return len(v.symbols) + 1
	}
	return len(v.symbols)
}

// Unknown returns the id of all characters that aren't symbols, or -1 if there is none.
func (v *Vocab) Unknown() int {
	if v.unknown {
		return len(v.symbols)
	}
	return -1
}

// Special returns nil: a Vocab has no special tokens.
func (v *Vocab) Special() map[string]int { return nil }

// Symbols returns all symbols in the order of their ids. If v has no unknown id, NewVocab(v.Symbols()) equals v.
func (v *Vocab) Symbols() string { return string(v.symbols) }

// Encode returns the id of each character of s. A character that isn't a symbol gets the unknown id; without one,
// Encode returns an *UnknownSymbolError. It returns an *InvalidUTF8Error if s isn't UTF-8.
func (v *Vocab) Encode(s string) ([]int, error) {
	ids := make([]int, 0, len(s))
	for i, r := range s {
		if invalidAt(s, i, r) {
			return nil, &InvalidUTF8Error{Offset: int64(i)}
		}
		id, ok := v.ID(r)
		if !ok {
			return nil, &UnknownSymbolError{Symbol: r, Position: len(ids), Known: v.Symbols()}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Tokenize is like Encode, but also returns the bytes of s that each id comes from. It ignores the Options.
func (v *Vocab) Tokenize(s string, _ Options) ([]Token, error) {
	ids, err := v.Encode(s)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, 0, len(ids))
	for start, r := range s {
		tokens = append(tokens, Token{ids[len(tokens)], start, start + utf8.RuneLen(r)})
	}
	return tokens, nil
}

// Decode returns the symbols with these ids, with U+FFFD (�) for the unknown id. It returns an error for any other id.
func (v *Vocab) Decode(ids []int) (string, error) {
	var s strings.Builder
	for i, id := range ids {
		switch {
		case id >= 0 && id < len(v.symbols):
			s.WriteRune(v.symbols[id])
		case v.unknown && id == len(v.symbols):
			s.WriteString(unknownToken)
		default:
			return "", fmt.Errorf("id %d at position %d isn't one of %d symbols", id, i, v.Len())
		}
	}
	return s.String(), nil
}

// ID returns the id of a character, and whether it has one. If v has an unknown id, every character has an id.
func (v *Vocab) ID(r rune) (id int, ok bool) {
	if r < utf8.RuneSelf {
		id = v.ascii[r] - 1
		ok = id >= 0
	} else {
		id, ok = v.others[r]
	}
	if !ok && v.unknown {
		return len(v.symbols), true
	}
	return id, ok
}

// An UnknownSymbolError says that a vocabulary doesn't have a character.
type UnknownSymbolError struct {
	Symbol   rune
	Position int    // position in the text, in characters from 0
	Known    string // the vocabulary's symbols
}

// Error names the symbol, its position and, if there are at most 100, the known symbols.
func (e *UnknownSymbolError) Error() string {
	n := utf8.RuneCountInString(e.Known)
	if n > 100 {
		return fmt.Sprintf("symbol %q at position %d (from 0) isn't one of the %d known", e.Symbol, e.Position, n)
	}
	return fmt.Sprintf("symbol %q at position %d (from 0) isn't one of the %d known: %q", e.Symbol, e.Position, n, e.Known)
}

// An InvalidUTF8Error says that a text isn't valid UTF-8.
type InvalidUTF8Error struct {
	Offset int64 // index of the first invalid byte, from 0
}

// Error names the offset.
func (e *InvalidUTF8Error) Error() string {
	return fmt.Sprintf("not UTF-8: the byte at offset %d (from 0) is no part of a character", e.Offset)
}

// invalidAt reports whether r, the character that range returned at byte i of s, stands for an invalid byte. A U+FFFD
// that is in the text has three bytes, and is valid.
func invalidAt(s string, i int, r rune) bool {
	if r != utf8.RuneError {
		return false
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return size == 1
}

// unknownToken is the text of the unknown id, and its token in a file.
const unknownToken = string(utf8.RuneError)

// checkUTF8 returns an *InvalidUTF8Error if a text isn't UTF-8.
func checkUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i, r := range text {
		if invalidAt(text, i, r) {
			return &InvalidUTF8Error{Offset: int64(i)}
		}
	}
	return nil
}
