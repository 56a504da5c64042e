package tokenizer

import (
	"fmt"
	"iter"
	"strings"

	"github.com/heed-go/heed/internal/text"
)

// spaced is the Tokenizer for Tokens and Words. The last id is the unknown one.
type spaced struct {
	units  Units
	tokens []string
	ids    map[string]int
}

func newSpaced(units Units, tokens []string) (*spaced, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("a vocabulary needs at least one token, got none")
	}
	s := &spaced{units: units, tokens: tokens, ids: make(map[string]int, len(tokens))}
	for id, token := range tokens {
		first := ""
		for first = range split(units, token) {
			break
		}
		if token == "" || token != first || token == unknownToken {
			return nil, fmt.Errorf("token %d of a vocabulary of %s is %.100q: it must be one of them, without white space, and not %s", id, units, token, unknownToken)
		}
		s.ids[token] = id
	}
	return s, nil
}

// split returns the tokens or the words of a text. Between them is only white space.
func split(units Units, s string) iter.Seq[string] {
	if units == Words {
		return text.Words(s)
	}
	return strings.FieldsSeq(s)
}

// id returns the id of a token. A word that has none has the id of its lower-case form.
func (s *spaced) id(token string) int {
	id, ok := s.ids[token]
	if !ok && s.units == Words {
		id, ok = s.ids[strings.ToLower(token)]
	}
	if !ok {
		return s.Unknown()
	}
	return id
}

func (s *spaced) Len() int                { return len(s.tokens) + 1 }
func (s *spaced) Unknown() int            { return len(s.tokens) }
func (s *spaced) Special() map[string]int { return nil }

func (s *spaced) Encode(text string) ([]int, error) {
	if err := checkUTF8(text); err != nil {
		return nil, err
	}
	ids := []int{}
	for token := range split(s.units, text) {
		ids = append(ids, s.id(token))
	}
	return ids, nil
}

func (s *spaced) Tokenize(source string, _ Options) ([]Token, error) {
	ids, err := s.Encode(source)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, 0, len(ids))
	for start, end := range text.Places(source, split(s.units, source)) {
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
