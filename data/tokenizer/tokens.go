package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
)

// spaced is the Tokenizer for Tokens. The last id is the unknown one.
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
			return nil, fmt.Errorf("token %d of a vocabulary is %.100q: it must not be empty, have white space, or be %s", id, token, unknownToken)
		}
		s.ids[token] = id
	}
	return s, nil
}

func (s *spaced) Len() int                { return len(s.tokens) + 1 }
func (s *spaced) Unknown() int            { return len(s.tokens) }
func (s *spaced) Special() map[string]int { return nil }

func (s *spaced) Encode(text string) ([]int, error) {
	if err := checkUTF8(text); err != nil {
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
	texts := make([]string, len(ids))
	for i, id := range ids {
		switch {
		case id == s.Unknown():
			texts[i] = unknownToken
		case id >= 0 && id < len(s.tokens):
			texts[i] = s.tokens[id]
		default:
			return "", fmt.Errorf("id %d at position %d isn't one of %d tokens or the unknown id, %d", id, i, len(s.tokens), s.Unknown())
		}
	}
	return strings.Join(texts, " "), nil
}
