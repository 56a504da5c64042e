package model

import (
	"slices"
	"strings"
	"unicode"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
)

// A mark is a visible character for a token or character that has no visible form.
type mark struct{ mark, meaning string }

// marks makes labels of tokens. The label of a symbol is its text, with marks for invisible characters. The label of
// any other token is a mark. The field used lists the marks in use.
type marks struct {
	symbols tokenizer.Tokenizer
	special map[int]mark // marks of ids that aren't symbols
	used    []mark
}

// newMarks returns the marks of sources and the marks of answers. If shared is true, sources and answers have one
// vocabulary, and both results are the same.
func newMarks(c data.Coder, shared bool) (sources, answers *marks) {
	l := c.Layout()
	source, target := c.Tokenizers()
	special, padding := map[int]mark{l.Start: {"►", "the start"}, l.End: {"■", "the end"}}, mark{"○", "padding"}
	if l.Segments > 0 {
		special[l.Separator] = mark{"│", "the separator of the two texts"}
	}
	if shared {
		if l.Pad >= source.Len() { // for text there is no padding: all ids are symbols
			special[l.Pad] = padding
		}
		sources = &marks{symbols: source, special: special}
		return sources, sources
	}
	return &marks{symbols: source, special: map[int]mark{l.Pad: padding}}, &marks{symbols: target, special: special}
}

func (m *marks) labels(ids []int) []string {
	labels := make([]string, len(ids))
	for i, id := range ids {
		labels[i] = m.label(id)
	}
	return labels
}

func (m *marks) label(id int) string {
	if mark, ok := m.special[id]; ok {
		return m.use(mark)
	}
	if id == m.symbols.Unknown() {
		return m.use(mark{"�", "a symbol that the model doesn't know"})
	}
	text, err := m.symbols.Decode([]int{id})
	if err != nil {
		return "?"
	}
	var label strings.Builder
	for i, r := range text {
		switch {
		case r == ' ':
			label.WriteString(m.use(m.unlikeSymbols("·▫", "a space")))
		case r == '\n':
			label.WriteString(m.use(m.unlikeSymbols("¶◊", "a new line")))
		case r == '\t':
			label.WriteString(m.use(m.unlikeSymbols("→►", "a tab")))
		case unicode.In(r, unicode.Mn, unicode.Me) && i == 0:
			label.WriteString("◌" + string(r))
		case !unicode.IsPrint(r):
			label.WriteString(m.use(m.unlikeSymbols("¤■", "a character that can't be printed")))
		default:
			label.WriteRune(r)
		}
	}
	return label.String()
}

// use adds a mark to used, and returns its character.
func (m *marks) use(mark mark) string {
	if !slices.Contains(m.used, mark) {
		m.used = append(m.used, mark)
	}
	return mark.mark
}

// unlikeSymbols returns a mark. Its character is the first of characters that isn't a symbol of the vocabulary, or
// otherwise the last.
func (m *marks) unlikeSymbols(characters, meaning string) mark {
	var c rune
	for _, c = range characters {
		if ids, err := m.symbols.Encode(string(c)); err != nil || len(ids) != 1 || ids[0] == m.symbols.Unknown() {
			break
		}
	}
	return mark{string(c), meaning}
}
