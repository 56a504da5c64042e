package data

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
)

// A symbolTokenizer adds a symbol to a tokenizer, with an id after all others. A text has its name in its place.
type symbolTokenizer struct {
	tokenizer.Tokenizer
	name string
}

// symbol returns the id of the symbol.
func (s symbolTokenizer) symbol() int { return s.Tokenizer.Len() }

func (s symbolTokenizer) Len() int { return s.symbol() + 1 }

func (s symbolTokenizer) Encode(text string) (ids []int, err error) {
	for i, part := range strings.Split(text, s.name) {
		if i > 0 {
			ids = append(ids, s.symbol())
		}
		some, err := s.Tokenizer.Encode(part)
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	return ids, nil
}

func (s symbolTokenizer) Decode(ids []int) (string, error) {
	var b strings.Builder
	for len(ids) > 0 {
		end := slices.Index(ids, s.symbol())
		if end == 0 {
			b.WriteString(s.name)
			ids = ids[1:]
			continue
		}
		if end < 0 {
			end = len(ids)
		}
		text, err := s.Tokenizer.Decode(ids[:end])
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		ids = ids[end:]
	}
	return b.String(), nil
}

// A pairTokenizer encodes two texts with a tab between them.
type pairTokenizer struct{ symbolTokenizer }

func (p pairTokenizer) Encode(source string) ([]int, error) {
	first, second, ok := strings.Cut(source, "\t")
	if !ok || strings.TrimSpace(first) == "" || strings.TrimSpace(second) == "" || strings.Contains(second, "\t") {
		return nil, fmt.Errorf("it must be two texts with one tab between them, got %.100q", source)
	}
	return p.symbolTokenizer.Encode(source)
}

// cutPair shortens the longer of the two texts, and then both in turn, until ids has at most n elements.
func (p pairTokenizer) cutPair(ids []int, n int) []int {
	first := slices.Index(ids, p.symbol())
	second := len(ids) - first - 1
	if len(ids) <= n || first < 0 {
		return ids[:min(len(ids), n)]
	}
	room := n - 1
	kept := min(first, max(room-second, (room+1)/2))
	return slices.Concat(ids[:kept], ids[first:][:room-kept+1])
}
