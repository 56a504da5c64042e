package task

import (
	"slices"
	"strings"
	"unicode"

	"github.com/heed-go/heed/data"
)

// A mark stands for a token that can't be seen.
type mark struct{ mark, meaning string }

// marks labels tokens: a symbol as it is, any other as a mark. It remembers the marks that it used.
type marks struct {
	symbols []rune       // by id
	special map[int]mark // by id: what are no symbols
	used    []mark
}

func newMarks(alphabet string, l data.Layout) *marks {
	return &marks{symbols: []rune(alphabet), special: map[int]mark{
		l.Start: {"►", "the start"}, l.End: {"■", "the end"}, l.Pad: {"○", "padding"},
	}}
}

func (m *marks) labels(ids []int) []string {
	labels := make([]string, len(ids))
	for i, id := range ids {
		labels[i] = m.label(id)
	}
	return labels
}

func (m *marks) label(id int) string {
	mark := m.special[id]
	if id < len(m.symbols) {
		r := m.symbols[id]
		switch {
		case r == ' ':
			mark = m.unlikeSymbols("·▫", "a space")
		case r == '\n':
			mark = m.unlikeSymbols("¶◊", "a new line")
		case r == '\t':
			mark = m.unlikeSymbols("→►", "a tab")
		case unicode.In(r, unicode.Mn, unicode.Me):
			return "◌" + string(r)
		case !unicode.IsPrint(r):
			mark = m.unlikeSymbols("¤■", "a character that can't be printed")
		default:
			return string(r)
		}
	}
	if !slices.Contains(m.used, mark) {
		m.used = append(m.used, mark)
	}
	return mark.mark
}

// unlikeSymbols returns a mark: the first of some characters that is no symbol itself, or else the last.
func (m *marks) unlikeSymbols(characters, meaning string) mark {
	var c rune
	for _, c = range characters {
		if !slices.Contains(m.symbols, c) {
			break
		}
	}
	return mark{string(c), meaning}
}

// key says what the marks among the labels of some layers stand for.
func (m *marks) key(in []AttentionLayer) string {
	var parts []string
	for _, u := range m.used {
		if slices.ContainsFunc(in, func(l AttentionLayer) bool {
			return slices.Contains(l.Rows, u.mark) || slices.Contains(l.Columns, u.mark)
		}) {
			parts = append(parts, u.mark+" "+u.meaning)
		}
	}
	return strings.Join(parts, ", ")
}
