package sentencepiece

import (
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// Normalize changes a text as the model file says. It applies the rules, and removes, adds and escapes spaces.
func (m *Model) Normalize(a pipe.Text) pipe.Text {
	var out []byte
	var places []int // for each byte of out: the first byte in the text that it comes from; one more for the end
	put := func(text string, place int) {
		for i := range len(text) {
			if text[i] == ' ' && m.escapeSpaces {
				out = append(out, spaceSymbol...)
				places = append(places, place, place, place)
			} else {
				out = append(out, text[i])
				places = append(places, place)
			}
		}
	}
	code := m.code(a.Content)
	done := code // bytes of the text before the part that is next
	for m.trimSpaces && done < len(a.Content) {
		text, n := m.normal(a.Content[done:], a.Budget)
		if text != " " {
			break
		}
		done += n
	}
	if done == len(a.Content) && code == 0 {
		return a.Sub(done, done)
	}
	out, places = make([]byte, 0, len(a.Content)*5/4), make([]int, 0, len(a.Content)*5/4)
	for i := range code {
		out, places = append(out, a.Content[i]), append(places, i)
	}
	if m.dummyPrefix && !m.spaceAsSuffix && done < len(a.Content) {
		put(" ", done)
	}
	afterSpace := m.trimSpaces // whether the next spaces are removed
	for done < len(a.Content) && !a.Budget.Spent() {
		text, n := m.normal(a.Content[done:], a.Budget)
		if afterSpace {
			text = strings.TrimLeft(text, " ")
		}
		if text != "" && a.Budget.Fits(len(out)+len(text)-done) {
			put(text, done)
			afterSpace = m.trimSpaces && text[len(text)-1] == ' '
		}
		done += n
	}
	if m.trimSpaces {
		symbol := " "
		if m.escapeSpaces {
			symbol = spaceSymbol
		}
		for strings.HasSuffix(string(out[max(0, len(out)-len(symbol)):]), symbol) {
			out = out[:len(out)-len(symbol)]
			done = places[len(out)]
			places = places[:len(out)]
		}
	}
	if m.dummyPrefix && m.spaceAsSuffix && len(out) > code {
		put(" ", done)
	}
	places = append(places, done)
	spans := make([]pipe.Span, len(out))
	for i := range spans {
		start, _ := a.Original(places[i], places[i])
		end, _ := a.Original(places[i+1], places[i+1])
		spans[i] = pipe.Span{Start: int32(start), End: int32(end)}
	}
	return a.Replaced(out, spans)
}

// normal returns what the beginning of text becomes, and how many bytes of text that replaces. A user-defined symbol
// stays as it is. Otherwise, the longest rule counts. If there is none, the first character stays.
func (m *Model) normal(text string, b *pipe.Budget) (string, int) {
	if m.defined != nil {
		if n, _ := m.defined.Longest(text, b); n > 0 {
			return text[:n], n
		}
	}
	if m.rules != nil {
		if s, n := m.rules.Longest(text, b); n > 0 {
			return s, n
		}
	}
	n := 1
	if text[0] >= utf8.RuneSelf {
		_, n = utf8.DecodeRuneInString(text)
	}
	return text[:n], n
}
