package trie

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// A Charsmap is the table of rules in a SentencePiece model, its precompiled_charsmap. Each rule replaces a key by a
// text. The keys are in a double-array trie, in the format of Darts-clone (https://github.com/s-yata/darts-clone).
type Charsmap struct {
	units []uint32
	texts string // a NUL ends each text
}

// NewCharsmap reads a precompiled_charsmap.
func NewCharsmap(table []byte) (*Charsmap, error) {
	if len(table) < 4 {
		return nil, errors.New("its precompiled_charsmap is too short")
	}
	size := int(binary.LittleEndian.Uint32(table))
	if size < 4 || size%4 != 0 || size > len(table)-4 {
		return nil, errors.New("its precompiled_charsmap has a trie that is longer than itself, or not made of units of 4 bytes")
	}
	m := &Charsmap{units: make([]uint32, size/4), texts: string(table[4+size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(table[4+4*i:])
	}
	if !utf8.ValidString(m.texts) {
		return nil, errors.New("its precompiled_charsmap has replacements that aren't UTF-8")
	}
	const longest = 256 // Unicode's longest compatibility decomposition has 33 bytes
	for text := range strings.SplitSeq(m.texts, "\x00") {
		if len(text) > longest {
			return nil, fmt.Errorf("its precompiled_charsmap has a replacement of %d bytes, more than %d", len(text), longest)
		}
	}
	return m, nil
}

// Shortest returns the text for the shortest key that s begins with, and whether there is one.
func (m *Charsmap) Shortest(s string) (string, bool) {
	place := offsetOf(m.units[0])
	for i := range len(s) {
		children, value, ok := m.step(place, s[i])
		if !ok || value > len(m.texts) {
			return "", false
		}
		if value >= 0 {
			return m.text(value)
		}
		place = children
	}
	return "", false
}

// Longest returns the text for the longest key that s begins with, and the length of the key; 0 if there is none.
func (m *Charsmap) Longest(s string, b *pipe.Budget) (text string, n int) {
	longest := -1 // its value
	place := offsetOf(m.units[0])
	for i := 0; i < len(s) && !b.Spent(); i++ {
		b.Take(pipe.StepsOfNode)
		children, value, ok := m.step(place, s[i])
		if !ok {
			break
		}
		if value >= 0 && value <= len(m.texts) {
			longest, n = value, i+1
		}
		place = children
	}
	if longest < 0 {
		return "", 0
	}
	text, ok := m.text(longest)
	if !ok {
		return "", 0
	}
	return text, n
}

// step adds a byte to a key, whose children are at place. It returns the place of the longer key's children, and its
// value, or -1 if it isn't a whole key. It returns false if no key begins with the longer key.
func (m *Charsmap) step(place uint32, b byte) (children uint32, value int, ok bool) {
	place ^= uint32(b)
	if b == 0 || int(place) >= len(m.units) || m.units[place]&(1<<31|0xff) != uint32(b) {
		return 0, 0, false
	}
	unit := m.units[place]
	if place ^= offsetOf(unit); int(place) >= len(m.units) {
		return 0, 0, false
	}
	value = -1
	if unit>>8&1 == 1 {
		value = int(m.units[place] &^ (1 << 31))
	}
	return place, value, true
}

// offsetOf returns the distance from a unit to its children.
func offsetOf(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// text returns the text that starts at byte value, and whether it is UTF-8.
func (m *Charsmap) text(value int) (string, bool) {
	text, _, _ := strings.Cut(m.texts[value:], "\x00")
	return text, utf8.ValidString(text)
}
