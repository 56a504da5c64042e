package data

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/textfile"
)

// OpenText reads the files once, to count the characters and to collect the vocabulary in the order of code points. It
// returns an error if a file is missing, unreadable, empty or not a regular file, or if it isn't text in its encoding.
// Close the Text after use.
//
// If t isn't nil, the Text uses that tokenizer, such as a saved model's. With a *tokenizer.Vocab, the Text has
// characters; if the Vocab lacks one of them, the error wraps a *tokenizer.UnknownSymbolError. With another Tokenizer,
// the Text has tokens. OpenText then encodes the text in parts, unless it is Whole. Each part ends before white space,
// or where the first nine tenths of the characters (for training) end.
func OpenText(files TextFiles, t tokenizer.Tokenizer) (*Text, error) {
	vocab, characters := t.(*tokenizer.Vocab)
	if t != nil && (characters && vocab == nil || t.Len() == 0) {
		return nil, fmt.Errorf("text %q: the tokenizer has no symbols", files.name())
	}
	source, err := files.open()
	if err != nil {
		return nil, err
	}
	text, err := newText(files.name(), source, vocab)
	if err == nil && t != nil && !characters {
		text.whole = files.Whole
		if err = text.tokenize(t, 0); err != nil {
			err = fmt.Errorf("text %q: %w", files.name(), err)
		}
	}
	if err != nil {
		source.close()
		return nil, err
	}
	text.close = source.close
	return text, nil
}

func newText(name string, source textSource, vocab *tokenizer.Vocab) (*Text, error) {
	if source.size == 0 {
		return nil, fmt.Errorf("text %q is empty: give a text with at least one character", name)
	}
	t := &Text{name: name, source: source, size: source.size, starts: source.starts, vocab: vocab}
	t.readers.New = func() any { return bufio.NewReader(nil) }
	if err := t.scan(); err != nil {
		return nil, fmt.Errorf("text %q: %w", name, err)
	}
	return t, nil
}

// scan reads the whole text and sets chars, places and sum. It also sets vocab if there is none yet.
func (t *Text) scan() error {
	sum := sha256.New()
	reader := bufio.NewReaderSize(io.TeeReader(io.NewSectionReader(t.source, 0, t.size), sum), 1<<16)
	var seen runeSet
	for offset := int64(0); offset < t.size; t.chars++ {
		r, n, err := reader.ReadRune()
		switch {
		case err == io.EOF:
			return errChanged
		case err != nil:
			return err
		case r == utf8.RuneError && n == 1:
			return fmt.Errorf("%w: %s", &tokenizer.InvalidUTF8Error{Offset: offset}, textfile.Advice)
		}
		if t.vocab == nil {
			seen.add(r)
		} else if _, ok := t.vocab.ID(r); !ok {
			return &tokenizer.UnknownSymbolError{Symbol: r, Position: t.chars, Known: t.vocab.Symbols()}
		}
		if t.chars == math.MaxInt {
			return fmt.Errorf("more than %d characters", math.MaxInt)
		}
		t.beginDocuments(offset+1, t.chars)
		if t.chars%stride == 0 {
			t.places = append(t.places, offset)
		}
		offset += int64(n)
	}
	t.sum = fmt.Sprintf("%x", sum.Sum(nil))
	if t.vocab != nil {
		return nil
	}
	var err error
	t.vocab, err = tokenizer.NewVocab(seen.String())
	return err
}

// runeSet is a set of characters, with one bit per character.
type runeSet [utf8.MaxRune/64 + 1]uint64

func (s *runeSet) add(r rune) { s[r/64] |= 1 << (r % 64) }

// String returns the characters in the set, in the order of code points.
func (s *runeSet) String() string {
	var runes []rune
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			runes = append(runes, rune(64*i+bits.TrailingZeros64(word)))
		}
	}
	return string(runes)
}
