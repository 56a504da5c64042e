package trie

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// precompiled is the normalizer of SentencePiece: a table of strings and what replaces them. The strings are in a
// double-array trie, in the format of Darts-clone (https://github.com/s-yata/darts-clone).
type Charsmap struct {
	units []uint32
	texts string // replacements, each ended by a NUL
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
	p := &Charsmap{units: make([]uint32, size/4), texts: string(table[4+size:])}
	for i := range p.units {
		p.units[i] = binary.LittleEndian.Uint32(table[4+4*i:])
	}
	if !utf8.ValidString(p.texts) {
		return nil, errors.New("its precompiled_charsmap has replacements that aren't UTF-8")
	}
	const longest = 256 // Unicode's longest compatibility decomposition has 33 bytes
	for text := range strings.SplitSeq(p.texts, "\x00") {
		if len(text) > longest {
			return nil, fmt.Errorf("its precompiled_charsmap has a replacement of %d bytes, more than %d", len(text), longest)
		}
	}
	return p, nil
}

// Shortest returns what replaces a string: the value of the shortest key that the string begins with.
func (p *Charsmap) Shortest(s string) (string, bool) {
	place := offsetOf(p.units[0])
	for i := range len(s) {
		place ^= uint32(s[i])
		if s[i] == 0 || int(place) >= len(p.units) {
			return "", false
		}
		unit := p.units[place]
		if unit&(1<<31|0xff) != uint32(s[i]) {
			return "", false
		}
		place ^= offsetOf(unit)
		if int(place) >= len(p.units) {
			return "", false
		}
		if unit>>8&1 == 1 {
			start := p.units[place] &^ (1 << 31)
			if int(start) > len(p.texts) {
				return "", false
			}
			text, _, _ := strings.Cut(p.texts[start:], "\x00")
			return text, utf8.ValidString(text)
		}
	}
	return "", false
}

// offsetOf returns the distance from a unit to its children.
func offsetOf(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// Longest returns the value of the Longest key that a string begins with, and the key's length, or 0.
func (p *Charsmap) Longest(s string, b *pipe.Budget) (value string, n int) {
	start := -1
	place := offsetOf(p.units[0])
	for i := range len(s) {
		place ^= uint32(s[i])
		if s[i] == 0 || int(place) >= len(p.units) || b.Spent() {
			break
		}
		b.Take(pipe.StepsOfNode)
		unit := p.units[place]
		if unit&(1<<31|0xff) != uint32(s[i]) {
			break
		}
		place ^= offsetOf(unit)
		if int(place) >= len(p.units) {
			break
		}
		if unit>>8&1 == 1 {
			if v := int(p.units[place] &^ (1 << 31)); v <= len(p.texts) {
				start, n = v, i+1
			}
		}
	}
	if n == 0 {
		return "", 0
	}
	if value, _, _ = strings.Cut(p.texts[start:], "\x00"); !utf8.ValidString(value) {
		return "", 0
	}
	return value, n
}
