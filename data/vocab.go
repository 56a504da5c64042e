package data

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Vocab gives each of its symbols, which are characters, an id: its place among the symbols, from 0. It doesn't change.
type Vocab struct {
	symbols []rune
	ascii   [utf8.RuneSelf]int // id+1 of a symbol below RuneSelf, 0 where there is none
	others  map[rune]int       // ids of the rest
}

// NewVocab returns the vocabulary of the characters of a string, in their order. The string must be valid UTF-8, hold
// at least one character and none twice. NewVocab(v.Symbols()) is v again.
func NewVocab(symbols string) (*Vocab, error) {
	if symbols == "" {
		return nil, fmt.Errorf("a vocabulary needs at least one symbol, got none")
	}
	v := &Vocab{others: make(map[rune]int)}
	for i, r := range symbols {
		if invalidAt(symbols, i, r) {
			return nil, fmt.Errorf("symbols of a vocabulary: %w", &InvalidUTF8Error{Offset: int64(i)})
		}
		id := len(v.symbols)
		if first, ok := v.id(r); ok {
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

// Len returns the number of symbols. Ids are below it.
func (v *Vocab) Len() int { return len(v.symbols) }

// Symbols returns every symbol, in the order of the ids: what to save, for NewVocab to restore.
func (v *Vocab) Symbols() string { return string(v.symbols) }

// Encode returns the id of each character of s. A character that isn't a symbol is an *UnknownSymbolError, and a byte
// that isn't UTF-8 an *InvalidUTF8Error.
func (v *Vocab) Encode(s string) ([]int, error) {
	ids := make([]int, 0, len(s))
	for i, r := range s {
		if invalidAt(s, i, r) {
			return nil, &InvalidUTF8Error{Offset: int64(i)}
		}
		id, ok := v.id(r)
		if !ok {
			return nil, v.unknown(r, len(ids))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Decode returns the string of the symbols with these ids. An id that is no symbol's is an error.
func (v *Vocab) Decode(ids []int) (string, error) {
	var s strings.Builder
	for i, id := range ids {
		if id < 0 || id >= len(v.symbols) {
			return "", fmt.Errorf("id %d at position %d isn't one of %d symbols", id, i, len(v.symbols))
		}
		s.WriteRune(v.symbols[id])
	}
	return s.String(), nil
}

func (v *Vocab) id(r rune) (id int, ok bool) {
	if r < utf8.RuneSelf {
		id = v.ascii[r] - 1
		return id, id >= 0
	}
	id, ok = v.others[r]
	return id, ok
}

func (v *Vocab) unknown(r rune, position int) error {
	return &UnknownSymbolError{Symbol: r, Position: position, Known: v.Symbols()}
}

// An UnknownSymbolError is a character that a vocabulary doesn't have.
type UnknownSymbolError struct {
	Symbol   rune
	Position int    // in what was to be encoded, in characters from 0
	Known    string // the symbols that the vocabulary has
}

// Error names the symbol, its position and, where they are at most 100, the known symbols.
func (e *UnknownSymbolError) Error() string {
	n := utf8.RuneCountInString(e.Known)
	if n > 100 {
		return fmt.Sprintf("symbol %q at position %d (from 0) isn't one of the %d known", e.Symbol, e.Position, n)
	}
	return fmt.Sprintf("symbol %q at position %d (from 0) isn't one of the %d known: %q", e.Symbol, e.Position, n, e.Known)
}

// An InvalidUTF8Error is a byte that is no part of valid UTF-8.
type InvalidUTF8Error struct {
	Offset int64 // of the first such byte, from 0
}

// Error says where the byte is.
func (e *InvalidUTF8Error) Error() string {
	return fmt.Sprintf("not UTF-8: the byte at offset %d (from 0) is no part of a character", e.Offset)
}

// invalidAt says whether r, as range found it at s[i:], stands for a byte that isn't UTF-8, not for the character
// U+FFFD, which is three bytes long.
func invalidAt(s string, i int, r rune) bool {
	if r != utf8.RuneError {
		return false
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return size == 1
}
