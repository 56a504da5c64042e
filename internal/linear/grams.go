package linear

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode"
)

// Grams says which parts of a text are features. Case is ignored.
type Grams struct {
	// Words is the largest number of words in an n-gram of words. A word is a run of letters, a run of digits, or
	// another character that isn't white space. 0 means no n-grams of words.
	Words int

	// Characters holds the smallest and largest length of n-grams of characters. They lie inside the parts of the
	// text between white space, and such a part has a space at both ends. {0, 0} means none.
	Characters [2]int
}

// DefaultGrams are words, pairs of words, and 2 to 5 characters.
var DefaultGrams = Grams{Words: 2, Characters: [2]int{2, 5}}

const longestGram = 16 // words or characters

func (g Grams) check() error {
	if g.Words < 0 || g.Words > longestGram {
		return fmt.Errorf("linear: expected n-grams of 0 to %d words, got %d", longestGram, g.Words)
	}
	low, high := g.Characters[0], g.Characters[1]
	if g.Characters != [2]int{} && (low < 1 || high < low || high > longestGram) {
		return fmt.Errorf("linear: expected lengths of n-grams of characters from 1 to %d, the smallest first, or 0 and 0; got %d and %d",
			longestGram, low, high)
	}
	if g == (Grams{}) {
		return fmt.Errorf("linear: expected n-grams of words or of characters, got none")
	}
	return nil
}

// A gram is a hash and the number of times that it occurs. Its hash has the group in its highest bits, so grams in
// order of hashes are in order of groups.
type gram struct {
	hash  uint64
	count int
}

// Groups of features. The values of a group in a text have Euclidean norm 1. The first two are the n-grams of words
// and of characters of the first text of a pair, or of the only text. Then come those of the second text, and those
// that the texts share.
const (
	groupBits   = 3
	groupShift  = 64 - groupBits
	kinds       = 2 // words and characters
	secondGroup = 1 * kinds
	sharedGroup = 2 * kinds
	groups      = 3 * kinds
)

const hashMask = 1<<groupShift - 1

// scratch is memory that a goroutine uses again for each text.
type scratch struct {
	runes        []rune
	hashes, last []uint64
	grams        []gram
	index        []uint32
	value        []float32
}

// extend adds x to the hash h. The constant is 2^64 divided by the golden ratio, made odd. finish spreads the
// result: the finaliser of MurmurHash3. Files of models contain hashes, so these functions must never change.
func extend(h, x uint64) uint64 { return (bits.RotateLeft64(h, 23) ^ x) * 0x9e3779b97f4a7c15 }

func finish(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return (h ^ h>>33) & hashMask
}

// count returns the n-grams of a text in order of their hashes. The result is valid until s is used again.
func (g Grams) count(s *scratch, text string, pairs bool) []gram {
	s.grams = s.grams[:0]
	if !pairs {
		g.add(s, text, 0)
		return s.grams
	}
	first, second, _ := strings.Cut(text, "\t")
	g.add(s, first, 0)
	middle := len(s.grams)
	g.add(s, second, secondGroup)
	a, b := s.grams[:middle], s.grams[middle:]
	const move = secondGroup << groupShift
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x.hash+move < y.hash:
			a = a[1:]
		case x.hash+move > y.hash:
			b = b[1:]
		default:
			s.grams = append(s.grams, gram{x.hash + sharedGroup<<groupShift, min(x.count, y.count)})
			a, b = a[1:], b[1:]
		}
	}
	return s.grams
}

// add appends the n-grams of one text to s.grams, in order.
func (g Grams) add(s *scratch, text string, group uint64) {
	s.runes = s.runes[:0]
	for _, r := range text {
		s.runes = append(s.runes, unicode.ToLower(r))
	}
	for kind, hash := range [kinds]func(*scratch){g.words, g.characters} {
		s.hashes = s.hashes[:0]
		hash(s)
		slices.Sort(s.hashes)
		mark := (group + uint64(kind)) << groupShift
		for i := 0; i < len(s.hashes); {
			start := i
			for i < len(s.hashes) && s.hashes[i] == s.hashes[start] {
				i++
			}
			s.grams = append(s.grams, gram{mark | s.hashes[start], i - start})
		}
	}
}

// words appends the hashes of the n-grams of words of s.runes to s.hashes.
func (g Grams) words(s *scratch) {
	if g.Words == 0 {
		return
	}
	s.last = s.last[:0] // the last words' hashes
	for i := 0; i < len(s.runes); {
		c := classOf(s.runes[i])
		start := i
		h := uint64(0)
		for i < len(s.runes) && (i == start || c != other) && classOf(s.runes[i]) == c {
			h = extend(h, uint64(s.runes[i]))
			i++
		}
		if c == space {
			continue
		}
		s.last = append(s.last, h)
		s.last = s.last[max(0, len(s.last)-g.Words):]
		h = 0
		for n := range s.last {
			h = extend(h, s.last[len(s.last)-1-n])
			s.hashes = append(s.hashes, finish(h))
		}
	}
}

// characters appends the hashes of the n-grams of characters of s.runes to s.hashes.
func (g Grams) characters(s *scratch) {
	low, high := g.Characters[0], g.Characters[1]
	if high == 0 {
		return
	}
	for i := 0; i < len(s.runes); {
		if classOf(s.runes[i]) == space {
			i++
			continue
		}
		start := i
		for i < len(s.runes) && classOf(s.runes[i]) != space {
			i++
		}
		part := s.runes[start:i]
		letter := func(k int) uint64 { // of the part with a space at both ends
			if k == 0 || k == len(part)+1 {
				return ' '
			}
			return uint64(part[k-1])
		}
		size := len(part) + 2
		for k := range max(1, size-low+1) { // a part shorter than low is one n-gram
			h := uint64(0)
			for n := 1; n <= high && k+n <= size; n++ {
				h = extend(h, letter(k+n-1))
				if n >= low || n == size {
					s.hashes = append(s.hashes, finish(h))
				}
			}
		}
	}
}

type class int

const (
	space class = iota
	letters
	digits
	other
)

func classOf(r rune) class {
	switch {
	case 'a' <= r && r <= 'z':
		return letters
	case r == ' ':
		return space
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return letters
	case unicode.IsDigit(r):
		return digits
	case unicode.IsSpace(r):
		return space
	}
	return other
}
