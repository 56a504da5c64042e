package tokenizer

import (
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/learn"
)

// A Tokenizer turns text into ids and ids into text. New makes one from texts, and Read and Open read one.
type Tokenizer interface {
	// Len returns the number of ids, including unknown and special ones. Ids are from 0 to Len − 1.
	Len() int

	// Unknown returns the id for text that the tokenizer doesn't know, or -1 if it has no such id.
	Unknown() int

	// Special returns the ids of special tokens by name, such as "<|endoftext|>". A special token marks something about
	// a text, and isn't part of it. Heed's own tokenizers have none; their unknown id isn't special, because it stands
	// for a part of the text. Callers must not change the map.
	Special() map[string]int

	// Encode returns the ids of a text. It treats the name of a special token as ordinary text. It returns an
	// *InvalidUTF8Error if text isn't UTF-8, and an *UnknownSymbolError if the tokenizer doesn't know a character and
	// has no unknown id.
	Encode(text string) ([]int, error)

	// Tokenize is like Encode, but also returns the part of the text that each id comes from. Parts are whole
	// characters, in the order of the text. They don't overlap, unless BPE splits a character: then the part of each
	// of its tokens includes the whole character. With Characters and BPE, the parts cover the text. With Tokens and
	// Words, they leave out the white space.
	Tokenize(text string, o Options) ([]Token, error)

	// Decode returns the text of ids, with U+FFFD (�) for the unknown id and names for special tokens. It returns an
	// error if an id isn't from 0 to Len − 1. The text that an id adds depends only on the id before it, except with a
	// Pipeline. If ids begin or end inside a character, the text has only some bytes of that character; a Decoder
	// returns whole characters.
	Decode(ids []int) (string, error)
}

// A Token is an id and the part of the text that it comes from, text[Start:End].
type Token struct{ ID, Start, End int }

// Options change how Tokenize reads a text.
type Options struct {
	// Special turns the names of special tokens in the text into their ids. Set it only for text from the program
	// itself, such as a chat template, and never for text from a user.
	Special bool
}

// Units says what the ids of a Tokenizer stand for.
type Units string

const (
	// Characters gives each character an id.
	Characters Units = "characters"
	// Tokens splits text at white space and drops it. Decode puts one space between tokens.
	Tokens Units = "tokens"
	// Words splits text into runs of letters, runs of digits, and single other marks, and drops white space. Combining
	// marks belong to the letter before them. A letter of Chinese, Japanese, Thai and other scripts without spaces is a
	// word. A word that New doesn't learn has the id of its lower-case form, if that has one. Decode puts one space
	// between words.
	Words Units = "words"
	// BPE is byte-pair encoding as in GPT-2. It starts with an id for each of the 256 bytes. Again and again, it gives
	// an id to the pair of neighbouring ids that is most frequent in the texts. Pairs never cross the word boundaries
	// of GPT-2's pattern. No text is unknown, and decoding the ids of a text always gives the text. If you decode only
	// a part of the ids, the text may begin or end inside a character.
	BPE Units = "bpe"
	// Published stands for the pieces of a published tokenizer, which Open opens. New can't learn one.
	Published Units = "published"
)

// New learns a tokenizer from texts. The argument size limits the number of ids.
//
// For Characters, Tokens and Words, a size of 0 means the largest possible one, 2^20 ids. New keeps the most common
// characters, tokens or words. Of equally common ones, it keeps the first by code points. Characters get ids in the
// order of code points, tokens and words by falling frequency. The last id is the unknown one, and also stands for
// U+FFFD.
//
// For BPE, size must be from 256 to 2^20. New stops early when no pair occurs twice. Of equally common pairs, New
// merges the one with the lowest ids first. A word longer than 256 bytes counts as several words.
//
// New reads the texts one after the other, and keeps none of them. Its memory is bounded: if there are more than about
// a million different words for BPE, or four million for Tokens and Words, it forgets the rarest half of them.
//
// New returns an error if the units or the size are invalid, or if the texts have nothing to learn from. If a text
// isn't UTF-8, the error wraps an *InvalidUTF8Error.
func New(units Units, texts iter.Seq[string], size int) (Tokenizer, error) {
	minSize := 2
	switch units {
	case Characters, Tokens, Words:
	case BPE:
		minSize = 256
	default:
		return nil, fmt.Errorf("units must be %s, %s, %s or %s, got %q", Characters, Tokens, Words, BPE, units)
	}
	if size < minSize && (size != 0 || units == BPE) {
		return nil, fmt.Errorf("a tokenizer for %s needs a size of at least %d, got %d", units, minSize, size)
	}
	if size > format.MaxEntries {
		return nil, fmt.Errorf("a tokenizer may have a size of at most %d, got %d", format.MaxEntries, size)
	}
	if size == 0 {
		size = format.MaxEntries
	}
	n := 0
	var invalid error
	t, err := learned(units, func(yield func(string) bool) {
		for text := range texts {
			if err := checkUTF8(text); err != nil {
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
		return nil, fmt.Errorf("can't make a tokenizer for %s from %d texts: %w", units, n, err)
	}
	return t, nil
}

// learned learns a tokenizer from texts that are UTF-8.
func learned(units Units, texts iter.Seq[string], size int) (Tokenizer, error) {
	switch units {
	case Characters:
		v, err := NewVocab(string(learn.Characters(texts, size-1)))
		if err != nil {
			return nil, err
		}
		v.unknown = true
		return v, nil
	case Tokens, Words:
		return newSpaced(units, learn.Tokens(texts, func(text string) iter.Seq[string] { return split(units, text) }, size-1))
	}
	v := learn.TrainBPE(texts, size)
	if v == nil {
		return nil, errors.New("all of them are empty")
	}
	content, err := bpeFile(v)
	if err != nil {
		return nil, err
	}
	return readJSON(content)
}

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
