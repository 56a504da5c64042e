package data

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/text"
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

// AnswerTokenizer returns the tokenizer of a rule's answers: Target or, without it, Source. For seq2seq with Published,
// the ids that it encodes include special tokens.
func (r *Rule) AnswerTokenizer() tokenizer.Tokenizer {
	p, ok := r.Target.(*tokenizer.Pipeline)
	switch {
	case ok && r.Published != (Published{}) && r.Kind == KindSeq2Seq:
		return publishedTokenizer{p.WithLimit(0), r}
	case r.Target == nil:
		return r.Source
	}
	return r.Target
}

// A publishedTokenizer encodes the sources or answers of a rule with Published, with special tokens.
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

// Input returns the tokens of a source of a rule with Published: of one text or, with Pairs or Published.Tabs and a tab
// in the source, of two. For tagging, the text is the words of the source with spaces between them. The argument p is
// the tokenizer, perhaps with another limit. Parts count bytes of the source.
func (r *Rule) Input(p *tokenizer.Pipeline, source string) (tokenizer.Input, error) {
	if r.Kind == KindTagging && r.Target != nil {
		return taggedInput(p, source)
	}
	first, second, ok := strings.Cut(source, "\t")
	if !ok || !r.Pairs && !(r.Published.Tabs && kinds[r.Kind].pairs) {
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

// Pair returns the ids of two texts as a model with Published reads them, and whether it cuts them, because they have
// more than MaxLen: the longer text first or, with onlyFirst, only the first text. Unlike the texts of a source, the
// first text may have a tab.
func (r *Rule) Pair(first, second string, onlyFirst bool) (ids []int, cut bool, err error) {
	p := r.Source.(*tokenizer.Pipeline)
	if onlyFirst {
		p = p.OnlyFirst()
	}
	input, err := p.WithLimit(0).Input(first, second)
	if cut = len(input.Tokens) > r.MaxLen; cut {
		input, err = p.WithLimit(r.MaxLen).Input(first, second)
	}
	for _, t := range input.Tokens {
		ids = append(ids, t.ID)
	}
	return ids, cut, cmp.Or(err, r.Published.known(ids))
}

// taggedInput returns the tokens of the words of a source, with spaces between them: a tokenizer may have pieces that
// join a word with the mark after it, and files have spaces there. Parts count bytes of the source.
func taggedInput(p *tokenizer.Pipeline, source string) (tokenizer.Input, error) {
	type word struct{ spaced, start, end int } // where it begins in the spaced text, and its part of the source
	var words []word
	var spaced strings.Builder
	for start, end := range text.Places(source, text.VisibleWords(source)) {
		if spaced.Len() > 0 {
			spaced.WriteByte(' ')
		}
		words = append(words, word{spaced.Len(), start, end})
		spaced.WriteString(source[start:end])
	}
	input, err := p.Input(spaced.String())
	offset := func(place int) int {
		after, _ := slices.BinarySearchFunc(words, place+1, func(w word, place int) int { return w.spaced - place })
		w := words[max(0, after-1)]
		return min(w.start+place-w.spaced, w.end)
	}
	for i, t := range input.Tokens {
		if input.Texts[i] >= 0 && words != nil {
			input.Tokens[i].Start, input.Tokens[i].End = offset(t.Start), offset(t.End)
		}
	}
	return input, err
}
