package task

import (
	"slices"
	"strings"
	"unicode"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
)

// A mark stands for a token that can't be seen.
type mark struct{ mark, meaning string }

// marks labels tokens: a symbol as it is, any other as a mark. It remembers the marks that it used.
type marks struct {
	symbols tokenizer.Tokenizer
	special map[int]mark // by id: what are no symbols
	used    []mark
}

// newMarks returns the marks of sources and those of answers, which are the same where one vocabulary has both.
func newMarks(c data.Coder, one bool) (sources, answers *marks) {
	l := c.Layout()
	source, target := c.Tokenizers()
	special := map[int]mark{l.Start: {"►", "the start"}, l.End: {"■", "the end"}, l.Pad: {"○", "padding"}}
	if l.Pad < source.Len() { // a text has no padding, and its ids are all symbols
		delete(special, l.Pad)
	}
	if one {
		sources = &marks{symbols: source, special: special}
		return sources, sources
	}
	delete(special, l.Pad)
	return &marks{symbols: source, special: map[int]mark{l.Pad: {"○", "padding"}}}, &marks{symbols: target, special: special}
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

// use remembers a mark, and returns it.
func (m *marks) use(mark mark) string {
	if !slices.Contains(m.used, mark) {
		m.used = append(m.used, mark)
	}
	return mark.mark
}

// unlikeSymbols returns a mark: the first of some characters that is no symbol itself, or else the last.
func (m *marks) unlikeSymbols(characters, meaning string) mark {
	var c rune
	for _, c = range characters {
		if ids, err := m.symbols.Encode(string(c)); err != nil || len(ids) != 1 || ids[0] == m.symbols.Unknown() {
			break
		}
	}
	return mark{string(c), meaning}
}

// key says what the marks among the labels of some layers stand for.
func key(used []mark, in []AttentionLayer) string {
	var parts []string
	for _, u := range used {
		has := func(label string) bool { return strings.Contains(label, u.mark) }
		part := u.mark + " " + u.meaning
		if !slices.Contains(parts, part) && slices.ContainsFunc(in, func(l AttentionLayer) bool {
			return slices.ContainsFunc(l.Rows, has) || slices.ContainsFunc(l.Columns, has)
		}) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
