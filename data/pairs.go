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
		return pairTokenizer{r.Source}
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

// Input returns the tokens of a source of a rule with Published: of one text or, with a tab in the source, of two.
// The argument p is the tokenizer, perhaps with another limit. Parts of the second text count bytes of the source.
func (r *Rule) Input(p *tokenizer.Pipeline, source string) (tokenizer.Input, error) {
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

// A pairTokenizer encodes two texts with a tab between them.
type pairTokenizer struct{ tokenizer.Tokenizer }

func (p pairTokenizer) separator() int { return p.Tokenizer.Len() }

func (p pairTokenizer) Len() int { return p.separator() + 1 }

func (p pairTokenizer) Encode(source string) ([]int, error) {
	first, second, ok := strings.Cut(source, "\t")
	if !ok || strings.TrimSpace(first) == "" || strings.TrimSpace(second) == "" || strings.Contains(second, "\t") {
		return nil, fmt.Errorf("it must be two texts with one tab between them, got %.100q", source)
	}
	ids, err := p.Tokenizer.Encode(first)
	if err != nil {
		return nil, err
	}
	more, err := p.Tokenizer.Encode(second)
	return slices.Concat(ids, []int{p.separator()}, more), err
}

func (p pairTokenizer) Decode(ids []int) (string, error) {
	var s strings.Builder
	for len(ids) > 0 {
		end := slices.Index(ids, p.separator())
		if end == 0 {
			s.WriteByte('\t')
			ids = ids[1:]
			continue
		}
		if end < 0 {
			end = len(ids)
		}
		text, err := p.Tokenizer.Decode(ids[:end])
		if err != nil {
			return "", err
		}
		s.WriteString(text)
		ids = ids[end:]
	}
	return s.String(), nil
}

// cutPair shortens the longer of the two texts, and then both in turn, until ids has at most n elements.
func (p pairTokenizer) cutPair(ids []int, n int) []int {
	first := slices.Index(ids, p.separator())
	second := len(ids) - first - 1
	if len(ids) <= n || first < 0 {
		return ids[:min(len(ids), n)]
	}
	room := n - 1
	kept := min(first, max(room-second, (room+1)/2))
	return slices.Concat(ids[:kept], ids[first:][:room-kept+1])
}
