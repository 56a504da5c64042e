package models

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
)

// WordPiece is the model of BERT. It takes the longest token that a word begins with, then the longest token that
// continues the word, and so on. A word that can't be covered is one unknown token.
type WordPiece struct {
	tokens      []string
	first, next *trie.Trie // tokens that begin a word, and tokens that continue one, without their prefix
	unknownID   int
	longest     int // maximum number of characters in a word; longer words are unknown
}

// ParseWordPiece makes the model WordPiece of a tokenizer.json.
func ParseWordPiece(members format.Members) (*WordPiece, error) {
	var file struct {
		Type    string  `json:"type"`
		Unknown string  `json:"unk_token"`
		Prefix  *string `json:"continuing_subword_prefix"`
		Longest *int    `json:"max_input_chars_per_word"`
	}
	tokens, err := members.TakeVocab()
	if err == nil {
		err = format.CheckLengths(tokens)
	}
	if err == nil {
		err = members.Decode(&file)
	}
	if err != nil {
		return nil, err
	}
	id := slices.Index(tokens, file.Unknown)
	if id < 0 || file.Unknown == "" {
		return nil, fmt.Errorf("its unk_token %.100q isn't in the vocab", file.Unknown)
	}
	prefix, longest := "##", 100
	if file.Prefix != nil {
		prefix = *file.Prefix
	}
	if file.Longest != nil {
		longest = *file.Longest
	}
	if longest < 1 {
		return nil, errors.New("its max_input_chars_per_word must be at least 1")
	}
	next := make([]string, len(tokens))
	for id, token := range tokens {
		if rest, ok := strings.CutPrefix(token, prefix); ok {
			next[id] = rest
		}
	}
	return &WordPiece{tokens: tokens, first: trie.New(tokens), next: trie.New(next), unknownID: id, longest: longest}, nil
}

// Vocabulary returns the tokens by their ids.
func (m *WordPiece) Vocabulary() []string { return m.tokens }

// Unknown returns the id of the unknown token.
func (m *WordPiece) Unknown() int { return m.unknownID }

// Encode appends the tokens of a piece, which is a word.
func (m *WordPiece) Encode(tokens []pipe.Token, piece string, b *pipe.Budget) ([]pipe.Token, error) {
	n, keys := len(tokens), m.first
	if len(piece) > m.longest && utf8.RuneCountInString(piece) > m.longest {
		return append(tokens, pipe.Token{ID: m.unknownID, Start: 0, End: len(piece)}), nil
	}
	for start := 0; start < len(piece); {
		size, id := keys.Longest(piece[start:], b)
		if b.Spent() {
			return tokens[:n], b.Err
		}
		if id < 0 {
			return append(tokens[:n], pipe.Token{ID: m.unknownID, Start: 0, End: len(piece)}), nil
		}
		tokens = append(tokens, pipe.Token{ID: int(id), Start: start, End: start + size})
		start += size
		keys = m.next
	}
	return tokens, nil
}
