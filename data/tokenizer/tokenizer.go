package tokenizer

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Tokenizer turns text into ids and ids into text. New and Read return Heed's own.
type Tokenizer interface {
	// Len returns the number of ids, all kinds included. Ids are below it.
	Len() int

	// Unknown returns the id of all text that the tokenizer doesn't have, or -1 if there is no such id.
	Unknown() int

	// Special returns the ids of special tokens by their names, such as "<|endoftext|>". A special token says something
	// about a text and is no part of it. Heed's own tokenizers have none: their unknown id isn't special, because it
	// stands for a part of the text. The caller must not change the map.
	Special() map[string]int

	// Encode returns the ids of a text. It never makes a special token of it: a special token's name is text like any
	// other. A byte that isn't UTF-8 is an *InvalidUTF8Error. A character that the tokenizer doesn't have is an
	// *UnknownSymbolError if there is no unknown id.
	Encode(text string) ([]int, error)

	// Tokenize is like Encode, but also returns the part of the text that each id comes from. Parts are whole
	// characters, in the order of the text, and don't overlap, with one exception: if BPE splits a character, the part
	// of each of its tokens includes the whole character. The parts of Characters and BPE cover the text. Between the
	// parts of Tokens there is white space.
	Tokenize(text string, o Options) ([]Token, error)

	// Decode returns the text of ids, with U+FFFD (�) for the unknown id and the names of special tokens. A negative
	// id, or one that isn't below Len, is an error. What an id adds to the text depends only on the id before it. Ids
	// that begin or end inside a character give some of its bytes; a Decoder returns whole characters.
	Decode(ids []int) (string, error)
}

// A Token is an id and the part of a text that it comes from, text[Start:End].
type Token struct{ ID, Start, End int }

// Options change how Tokenize reads a text.
type Options struct {
	// Special makes special tokens of their names in the text. Set it for text of a program's own, such as a chat
	// template's, and never for a user's.
	Special bool
}

// Units are what a Tokenizer takes text apart into.
type Units string

const (
	// Characters makes each character a unit.
	Characters Units = "characters"
	// Tokens are split at white space, which is dropped: Decode puts one space between any two.
	Tokens Units = "tokens"
	// BPE makes common sequences of bytes a unit each, by byte-pair encoding as in GPT-2: it starts from the 256 bytes,
	// merges the pair of neighbours that the texts have most often into a new unit, again and again, and never across
	// the words of GPT-2's pattern. Nothing is unknown, and Decode gives back every text as it was; what it makes of a
	// part of a text's ids may begin or end amid a character, with some of its bytes.
	BPE Units = "bpe"
)

// unknownToken is what an unknown id becomes as text, and its token in a file.
const unknownToken = string(utf8.RuneError)

// New returns the tokenizer of these units that has learned from texts, with at most so many ids.
//
// Of characters and of tokens, the last id is for all that isn't in it, U+FFFD included. What the texts have most of
// goes in first, and of what is equally common what comes first by code points; a size of 0 sets no limit. Characters
// have their ids in the order of code points, tokens the commonest first.
//
// BPE needs a size of at least 256. It has fewer ids where no pair is left that the texts have twice. Of pairs that are
// equally common that of the lowest ids is merged first, and a word counts as several if it is longer than 256 bytes.
//
// It is an error, which wraps an *InvalidUTF8Error, if a text isn't UTF-8, and one if the texts have nothing in them.
func New(units Units, texts iter.Seq[string], size int) (Tokenizer, error) {
	least, collect := 2, collectCharacters
	switch units {
	case Characters:
	case Tokens:
		collect = collectTokens
	case BPE:
		least, collect = 256, collectBPE
	default:
		return nil, fmt.Errorf("units must be %s, %s or %s, got %q", Characters, Tokens, BPE, units)
	}
	if size < least && (size != 0 || units == BPE) {
		return nil, fmt.Errorf("a tokenizer of %s needs a size of at least %d, got %d", units, least, size)
	}
	n := 0
	var invalid error
	t, err := collect(func(yield func(string) bool) {
		for text := range texts {
			if err := CheckUTF8(text); err != nil {
				invalid = fmt.Errorf("text %d (from 0): %w", n, err)
				return
			}
			if n++; !yield(text) {
				return
			}
		}
	}, size)
	if invalid != nil {
		return nil, invalid
	}
	if err != nil {
		return nil, fmt.Errorf("a tokenizer of %s can't be made of %d texts: %w", units, n, err)
	}
	return t, nil
}

func collectCharacters(texts iter.Seq[string], size int) (Tokenizer, error) {
	counts := map[rune]int{}
	for text := range texts {
		for _, r := range text {
			counts[r]++
		}
	}
	delete(counts, utf8.RuneError)
	symbols := slices.SortedFunc(maps.Keys(counts), func(a, b rune) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if size > 0 {
		symbols = symbols[:min(size-1, len(symbols))]
	}
	slices.Sort(symbols)
	v, err := NewVocab(string(symbols))
	if err != nil {
		return nil, err
	}
	v.unknown = true
	return v, nil
}

func collectTokens(texts iter.Seq[string], size int) (Tokenizer, error) {
	counts := map[string]*int{} // by pointer: an assignment would make the latest text's memory the key
	for text := range texts {
		for token := range strings.FieldsSeq(text) {
			n := counts[token]
			if n == nil {
				n = new(int)
				counts[strings.Clone(token)] = n
			}
			*n++
		}
	}
	delete(counts, unknownToken)
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(*counts[b], *counts[a]), cmp.Compare(a, b))
	})
	if size > 0 {
		words = slices.Clone(words[:min(size-1, len(words))])
	}
	return newTokens(words)
}

// CheckUTF8 returns an *InvalidUTF8Error if a text isn't UTF-8.
func CheckUTF8(text string) error {
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

// spaced is the Tokenizer of Tokens. The last id is the unknown one.
type spaced struct {
	tokens []string
	ids    map[string]int
}

func newTokens(tokens []string) (*spaced, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("a vocabulary needs at least one token, got none")
	}
	s := &spaced{tokens: tokens, ids: make(map[string]int, len(tokens))}
	for id, token := range tokens {
		if token == "" || token == unknownToken || strings.ContainsFunc(token, unicode.IsSpace) {
			return nil, fmt.Errorf("token %d of a vocabulary is %.100q: it must have something in it, no white space, and not be %s", id, token, unknownToken)
		}
		s.ids[token] = id
	}
	return s, nil
}

func (s *spaced) Len() int                { return len(s.tokens) + 1 }
func (s *spaced) Unknown() int            { return len(s.tokens) }
func (s *spaced) Special() map[string]int { return nil }

func (s *spaced) Encode(text string) ([]int, error) {
	if err := CheckUTF8(text); err != nil {
		return nil, err
	}
	ids := []int{}
	for token := range strings.FieldsSeq(text) {
		id, ok := s.ids[token]
		if !ok {
			id = s.Unknown()
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *spaced) Tokenize(text string, _ Options) ([]Token, error) {
	ids, err := s.Encode(text)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, 0, len(ids))
	end := 0
	for token := range strings.FieldsSeq(text) {
		start := end + strings.Index(text[end:], token)
		end = start + len(token)
		tokens = append(tokens, Token{ids[len(tokens)], start, end})
	}
	return tokens, nil
}

func (s *spaced) Decode(ids []int) (string, error) {
	var text strings.Builder
	for i, id := range ids {
		if id < 0 || id > len(s.tokens) {
			return "", fmt.Errorf("id %d at position %d isn't one of %d tokens, nor that of unknown ones, %d", id, i, len(s.tokens), s.Unknown())
		}
		if i > 0 {
			text.WriteByte(' ')
		}
		if id == s.Unknown() {
			text.WriteString(unknownToken)
		} else {
			text.WriteString(s.tokens[id])
		}
	}
	return text.String(), nil
}
