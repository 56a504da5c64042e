package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// precompiled is the normalizer of SentencePiece: a table of strings and what replaces them. The strings are in a
// double-array trie, in the format of Darts-clone (https://github.com/s-yata/darts-clone).
type precompiled struct {
	units []uint32
	texts string // replacements, each ended by a NUL
}

// parsePrecompiled reads a precompiled_charsmap in base64.
func parsePrecompiled(encoded string) (normalizer, error) {
	table, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("its precompiled_charsmap must be in base64")
	}
	p, err := newPrecompiled(table)
	if err != nil {
		return nil, err
	}
	return *p, nil
}

// newPrecompiled reads a precompiled_charsmap.
func newPrecompiled(table []byte) (*precompiled, error) {
	if len(table) < 4 {
		return nil, errors.New("its precompiled_charsmap is too short")
	}
	size := int(binary.LittleEndian.Uint32(table))
	if size < 4 || size%4 != 0 || size > len(table)-4 {
		return nil, errors.New("its precompiled_charsmap has a trie that is longer than itself, or not made of units of 4 bytes")
	}
	p := &precompiled{units: make([]uint32, size/4), texts: string(table[4+size:])}
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

// replacement returns what replaces a string: the value of the shortest key that the string begins with.
func (p precompiled) replacement(s string) (string, bool) {
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

func (p precompiled) normalize(a aligned) aligned {
	var all []formed
	done := 0 // bytes of a.text that are in all or, if all is nil, unchanged
	replace := func(part, text string) {
		if all == nil {
			all = make([]formed, 0, len(a.text))
			for _, r := range a.text[:done] {
				all = append(all, formed{r: r})
			}
		}
		done += len(part)
		more := utf8.RuneCountInString(text) - utf8.RuneCountInString(part)
		first := len(all)
		for _, r := range text {
			all = append(all, formed{r: r})
		}
		for i := max(first, len(all)-max(0, more)); i < len(all); i++ { // the last ones stand beside
			all[i].added = 1
		}
		if more < 0 && len(all) > 0 {
			all[len(all)-1].added += more
		}
	}
	rest, state := a.text, -1
	for rest != "" {
		cluster := rest[:1]
		if rest[0] < utf8.RuneSelf && (len(rest) == 1 || rest[1] < utf8.RuneSelf && rest[:2] != "\r\n") {
			rest, state = rest[1:], -1
		} else {
			cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		}
		if len(cluster) < 6 {
			if text, ok := p.replacement(cluster); ok {
				replace(cluster, text)
				continue
			}
		}
		for _, r := range cluster {
			if text, ok := p.replacement(string(r)); ok {
				replace(string(r), text)
				continue
			}
			if done += utf8.RuneLen(r); all != nil {
				all = append(all, formed{r: r})
			}
		}
	}
	if all == nil {
		return a
	}
	return transform(a, all)
}
