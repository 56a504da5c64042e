package data

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
)

// SourceTokenizer returns the tokenizer of a rule's sources: Source or, with Pairs, a tokenizer for two texts with a
// tab between them. Its last id is the separator, which stands for the tab. With Published, the ids that the tokenizer
// encodes include special tokens. The rule must have a Source.
func (r *Rule) SourceTokenizer() tokenizer.Tokenizer {
	p, ok := r.Source.(*tokenizer.Pipeline)
	switch {
	case ok && r.Published != (Published{}):
		return publishedTokenizer{p.WithLimit(0), r}
	case r.Pairs:
		return pairTokenizer{symbolTokenizer{r.Source, "\t"}}
	}
	return r.Source
}

// A publishedTokenizer encodes the sources of a rule with Published, with special tokens.
type publishedTokenizer struct {
	*tokenizer.Pipeline
	rule *Rule
}

func (p publishedTokenizer) Encode(source string) (ids []int, err error) {
	input, err := p.rule.Input(p.Pipeline, source)
	for _, t := range input.Tokens {
		ids = append(ids, t.ID)
	}
	return ids, err
}

// Parts returns the texts of a source: with Pairs, the texts before and after its tab, and otherwise the source itself.
func (r *Rule) Parts(source string) []string {
	if first, second, ok := strings.Cut(source, "\t"); ok && r.Pairs {
		return []string{first, second}
	}
	return []string{source}
}

// Input returns the tokens of a source of a rule with Published: of one text or, with a tab in the source, of two. For
// tagging, the text is the words of the source with spaces between them. The argument p is the tokenizer, perhaps with
// another limit. Parts count bytes of the source.
func (r *Rule) Input(p *tokenizer.Pipeline, source string) (tokenizer.Input, error) {
	if r.Kind == KindTagging {
		return taggedInput(p, source)
	}
	first, second, ok := strings.Cut(source, "\t")
	if !ok || !kinds[r.Kind].pairs {
		return p.Input(source)
	}
	input, err := p.Input(first, second)
	for i, text := range input.Texts {
		if text == 1 {
			input.Tokens[i].Start += len(first) + 1
			input.Tokens[i].End += len(first) + 1
		}
	}
	return input, err
}

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
