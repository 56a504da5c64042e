package data

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// WordVocab gives each of its words an id: its place among them, from 0. One id more, the last, is for every other
// word. It doesn't change.
//
// Text becomes words by one rule, after each character is made lower case. Letters and numbers in a row, with their
// accents, are a word, and so is every other character, such as a comma. White space and control and format characters
// end a word and are dropped. So "It's 5 o'clock!" is it, ', s, 5, o, ', clock and !. Scripts without spaces between
// words are better read by characters, with a Vocab.
type WordVocab struct {
	words []string
	ids   map[string]int
}

// CollectWords returns the vocabulary of the words that occur in the texts at least atLeast times, the commonest first,
// and in the order of their bytes those that are equally common. If there are more than most, only the first most are
// in it; 0 sets no limit. Text that isn't UTF-8 is an error that wraps an *InvalidUTF8Error, and having no word left is
// one, too.
//
// Leave some words of the training texts out, as with an atLeast of 2: a model learns from them what to make of unknown
// words, whose id it never meets otherwise.
func CollectWords(texts []string, most, atLeast int) (*WordVocab, error) {
	if most < 0 || atLeast < 0 {
		return nil, fmt.Errorf("most, where 0 sets no limit, and atLeast must be 0 or more, got %d and %d", most, atLeast)
	}
	counts := map[string]int{}
	for i, text := range texts {
		err := eachWord(text, func(word []byte) { counts[string(word)]++ })
		if err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
	}
	var words []string
	for word, n := range counts {
		if n >= atLeast {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("no word occurs at least %d times in %d texts with %d words that differ: lower that number, or give more text", atLeast, len(texts), len(counts))
	}
	slices.SortFunc(words, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if most > 0 {
		words = slices.Clone(words[:min(most, len(words))])
	}
	return NewWordVocab(words)
}

// NewWordVocab returns the vocabulary of these words, in their order. There must be at least one, none twice, and each
// as text becomes words. NewWordVocab(v.Words()) is v again.
func NewWordVocab(words []string) (*WordVocab, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("a vocabulary needs at least one word, got none")
	}
	v := &WordVocab{words: slices.Clone(words), ids: make(map[string]int, len(words))}
	for id, word := range words {
		if first, ok := v.ids[word]; ok {
			return nil, fmt.Errorf("a vocabulary holds each word once, got %.100q as words %d and %d", word, first, id)
		}
		var split []string
		if err := eachWord(word, func(w []byte) { split = append(split, string(w)) }); err != nil {
			return nil, fmt.Errorf("word %d of a vocabulary: %w", id, err)
		}
		if len(split) != 1 || split[0] != word {
			return nil, fmt.Errorf("word %d of a vocabulary is %.100q, which as text becomes %.100q: no text would have it", id, word, split)
		}
		v.ids[word] = id
	}
	return v, nil
}

// Len returns the number of ids: one more than there are words. Ids are below it.
func (v *WordVocab) Len() int { return len(v.words) + 1 }

// Unknown returns the id of every word that the vocabulary doesn't have.
func (v *WordVocab) Unknown() int { return len(v.words) }

// Words returns every word, in the order of the ids: what to save, for NewWordVocab to restore.
func (v *WordVocab) Words() []string { return slices.Clone(v.words) }

// Encode returns the id of each word of a text. A byte that isn't UTF-8 is an *InvalidUTF8Error.
func (v *WordVocab) Encode(text string) ([]int, error) {
	ids := []int{}
	err := eachWord(text, func(word []byte) {
		id, ok := v.ids[string(word)]
		if !ok {
			id = v.Unknown()
		}
		ids = append(ids, id)
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// Decode returns the words with these ids, with a space between any two, and U+FFFD (�) for an unknown word. Another id
// is an error.
func (v *WordVocab) Decode(ids []int) (string, error) {
	var s strings.Builder
	for i, id := range ids {
		if id < 0 || id > len(v.words) {
			return "", fmt.Errorf("id %d at position %d isn't one of %d words, nor that of unknown words, %d", id, i, len(v.words), v.Unknown())
		}
		if i > 0 {
			s.WriteByte(' ')
		}
		if id == len(v.words) {
			s.WriteRune(utf8.RuneError)
		} else {
			s.WriteString(v.words[id])
		}
	}
	return s.String(), nil
}

// eachWord calls do with every word of a text, as WordVocab says. The next call overwrites the word.
func eachWord(text string, do func(word []byte)) error {
	var word []byte
	open := false // the word is of letters and numbers, and goes on with more
	end := func() {
		if len(word) > 0 {
			do(word)
		}
		word, open = word[:0], false
	}
	for i, r := range text {
		if invalidAt(text, i, r) {
			return &InvalidUTF8Error{Offset: int64(i)}
		}
		r = unicode.ToLower(r)
		switch {
		case unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf):
			end()
			continue
		case unicode.IsMark(r) && len(word) > 0: // it belongs to the character before it
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			if !open {
				end()
				open = true
			}
		default:
			end()
		}
		word = utf8.AppendRune(word, r)
	}
	end()
	return nil
}
