package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// wordPiece is the model of BERT. It takes the longest token that a word begins with, then the longest token that
// continues the word, and so on. A word that can't be covered is one unknown token.
type wordPiece struct {
	tokens      []string
	first, next *trie // tokens that begin a word, and tokens that continue it, without their prefix
	unknownID   int
	longest     int // most characters of a word; longer words are unknown
}

// parseWordPiece makes the model WordPiece of a tokenizer.json.
func parseWordPiece(members members) (model, error) {
	var file struct {
		Type    string  `json:"type"`
		Unknown string  `json:"unk_token"`
		Prefix  *string `json:"continuing_subword_prefix"`
		Longest *int    `json:"max_input_chars_per_word"`
	}
	tokens, err := members.takeVocab()
	if err == nil {
		err = checkLengths(tokens)
	}
	if err == nil {
		err = members.decode(&file)
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
	return &wordPiece{tokens: tokens, first: newTrie(tokens), next: newTrie(next), unknownID: id, longest: longest}, nil
}

func (m *wordPiece) vocabulary() []string { return m.tokens }
func (m *wordPiece) unknown() int         { return m.unknownID }

func (m *wordPiece) encode(tokens []ptoken, piece string, b *budget) ([]ptoken, error) {
	n, keys := len(tokens), m.first
	if len(piece) > m.longest && utf8.RuneCountInString(piece) > m.longest {
		return append(tokens, ptoken{m.unknownID, 0, len(piece)}), nil
	}
	for start := 0; start < len(piece); {
		size, id := keys.longest(piece[start:], b)
		if b.spent() {
			return tokens[:n], b.err
		}
		if id < 0 {
			return append(tokens[:n], ptoken{m.unknownID, 0, len(piece)}), nil
		}
		tokens = append(tokens, ptoken{int(id), start, start + size})
		start += size
		keys = m.next
	}
	return tokens, nil
}
