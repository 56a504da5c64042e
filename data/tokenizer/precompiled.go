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
	a.budget.take(stepsOfForm * len(a.text))
	var t *transformer // nil while nothing has changed
	done := 0          // bytes of a.text before the part that is next
	keep := func(part string) {
		if done += len(part); t != nil {
			for _, r := range part {
				t.add(formed{r: r})
			}
		}
	}
	replace := func(part, text string) {
		if t == nil {
			t = &transformer{rewriter: rewriter{in: a}}
			r, n := utf8.DecodeLastRuneInString(a.text[:done])
			if t.keep(done - n); n > 0 {
				t.add(formed{r: r})
			}
		}
		done += len(part)
		left := utf8.RuneCountInString(part) // characters of the part that the text's don't stand for yet
		for _, r := range text {
			t.add(formed{r: r, added: 1 - min(1, left)}) // the last ones stand beside
			left = max(0, left-1)
		}
		t.drop(left)
	}
	rest, state := clustered(a.text), -1
	for rest != "" && !a.budget.spent() {
		cluster := rest[:1]
		if rest[0] < utf8.RuneSelf && (len(rest) == 1 || rest[1] < utf8.RuneSelf && rest[:2] != "\r\n") {
			rest, state = rest[1:], -1
		} else {
			cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		}
		cluster = a.text[len(a.text)-len(rest)-len(cluster) : len(a.text)-len(rest)]
		if len(cluster) < 6 {
			if text, ok := p.replacement(cluster); ok {
				replace(cluster, text)
				continue
			}
		}
		for i, r := range cluster {
			part := cluster[i : i+utf8.RuneLen(r)]
			if text, ok := p.replacement(part); ok {
				replace(part, text)
				continue
			}
			keep(part)
		}
	}
	if t == nil {
		return a
	}
	return t.result()
}
