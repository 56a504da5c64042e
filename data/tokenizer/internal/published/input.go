package published

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// Input calls emit with the tokens of one text, or two, with the special tokens of the template, and cut to the maximum
// length. If limit isn't negative, it replaces the file's maximum length; 0 means none. A strategy that isn't empty
// replaces the file's. The argument source is 0 or 1 for a token of the first or the second text, and -1 for one of the
// template; word is the number of its piece of the text, or -1; typ is the token's type.
func (p *Pipeline) Input(texts []string, limit int, strategy string, emit func(t pipe.Token, source, word, typ int)) error {
	items := p.template.single
	switch len(texts) {
	case 1:
	case 2:
		items = p.template.pair
	default:
		return fmt.Errorf("a model reads one text or two, got %d", len(texts))
	}
	tokens, words := make([][]pipe.Token, len(texts)), make([][]int, len(texts))
	for i, text := range texts {
		var err error
		if tokens[i], err = Encode[pipe.Token](p, text, Options{Words: &words[i]}); err != nil {
			return err
		}
	}
	t := p.truncation
	t.strategy = cmp.Or(strategy, t.strategy, "LongestFirst")
	if limit >= 0 {
		t.length = limit
	}
	if err := t.cut(tokens, specials(items)); err != nil {
		return err
	}
	for i, kept := range tokens {
		if t.left {
			words[i] = words[i][len(words[i])-len(kept):]
		}
	}
	p.fill(items, texts, tokens, words, emit)
	return nil
}

// fill calls emit with the tokens of texts, which are parts of words, and of the template's items.
func (p *Pipeline) fill(items []templateItem, texts []string, tokens [][]pipe.Token, words [][]int, emit func(t pipe.Token, source, word, typ int)) {
	for _, item := range items {
		if item.text >= 0 {
			for i, t := range tokens[item.text] {
				emit(p.Trim(t, i == 0, texts[item.text]), item.text, words[item.text][i], item.typ)
			}
		}
		for _, id := range item.ids {
			emit(pipe.Token{ID: id}, -1, -1, item.typ)
		}
	}
}

// Windows is like Input for one text, which it cuts into windows of up to limit tokens. Each shares stride tokens of
// the text with the one before it, from none to half of its tokens.
func (p *Pipeline) Windows(text string, limit, stride int, emit func(window int, t pipe.Token, source, word, typ int)) error {
	var words []int
	tokens, err := Encode[pipe.Token](p, text, Options{Words: &words})
	if err != nil {
		return err
	}
	items := p.template.single
	room := limit - specials(items)
	if room < 1 {
		return fmt.Errorf("%d special tokens leave no room for a text in %d tokens", specials(items), limit)
	}
	for window, start, end := 0, 0, 0; ; window++ {
		end = min(start+room, len(tokens))
		p.fill(items, []string{text}, [][]pipe.Token{tokens[start:end]}, [][]int{words[start:end]}, func(t pipe.Token, source, word, typ int) { emit(window, t, source, word, typ) })
		if end == len(tokens) {
			return nil
		}
		start += room - max(0, min(stride, room/2))
	}
}

// Trim removes the white space at the ends of a token's part of a text, if the template trims. The argument first says
// whether it is the first token.
func (p *Pipeline) Trim(t pipe.Token, first bool, text string) pipe.Token {
	if !p.template.trim {
		return t
	}
	ends := p.spaces[t.ID]
	if p.spaced[t.ID] {
		ends = spacesOf(text[t.Start:t.End])
	}
	left, right := ends[0], ends[1]
	if p.template.keeps && left == 1 && (first || t.Start == 0) {
		left = 0
	}
	for ; left > 0 && t.Start < t.End; left-- {
		_, n := utf8.DecodeRuneInString(text[t.Start:])
		t.Start += n
	}
	for ; right > 0 && t.Start < t.End; right-- {
		_, n := utf8.DecodeLastRuneInString(text[:t.End])
		t.End -= n
	}
	return t
}

// spacesOf returns the number of white-space characters at the start and at the end of a token's spelling.
func spacesOf(token string) (ends [2]int32) {
	for i, trim := range [...]func(string, func(rune) bool) string{strings.TrimLeftFunc, strings.TrimRightFunc} {
		rest := trim(token, func(r rune) bool { return r == 'Ġ' || unicode.IsSpace(r) })
		ends[i] = int32(utf8.RuneCountInString(token) - utf8.RuneCountInString(rest))
	}
	return ends
}

// CutsStart reports whether Input cuts the start of a text, and not its end.
func (p *Pipeline) CutsStart() bool { return p.truncation.left }
