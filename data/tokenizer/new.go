package tokenizer

import (
	"errors"
	"fmt"
	"iter"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/learn"
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
