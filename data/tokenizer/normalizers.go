package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// parseNormalizer makes the normalizer of a tokenizer.json; nil if there is none.
func parseNormalizer(part json.RawMessage) (normalizer, error) {
	typ, err := typeOf(part)
	if typ == "" || err != nil {
		return nil, err
	}
	var file struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
		Pattern     json.RawMessage   `json:"pattern"`
		Content     string            `json:"content"`
		Prepend     string            `json:"prepend"`
		Left        bool              `json:"strip_left"`
		Right       bool              `json:"strip_right"`
		CleanText   bool              `json:"clean_text"`
		Chinese     bool              `json:"handle_chinese_chars"`
		Accents     *bool             `json:"strip_accents"`
		Lowercase   bool              `json:"lowercase"`
		Charsmap    string            `json:"precompiled_charsmap"`
	}
	if err := decode(part, &file); err != nil {
		return nil, err
	}
	switch typ {
	case "Sequence":
		all, err := sequenceOf(file.Normalizers, parseNormalizer)
		return normalizers(all), err
	case "NFC":
		return unicodeForm{norm.NFD, true}, nil
	case "NFD":
		return unicodeForm{norm.NFD, false}, nil
	case "NFKC":
		return unicodeForm{norm.NFKD, true}, nil
	case "NFKD":
		return unicodeForm{norm.NFKD, false}, nil
	case "Lowercase":
		return characters(lower), nil
	case "StripAccents":
		return without(marks9), nil
	case "BertNormalizer":
		return newBertNormalizer(file.CleanText, file.Chinese, file.Accents == nil && file.Lowercase || file.Accents != nil && *file.Accents, file.Lowercase), nil
	case "Precompiled":
		return parsePrecompiled(file.Charsmap)
	case "Strip":
		return strip{file.Left, file.Right}, nil
	case "Prepend":
		return prepend(file.Prepend), nil
	case "Replace":
		find, _, err := parsePattern(file.Pattern)
		return replace{find, file.Content}, err
	}
	return nil, unsupported(typ)
}

// normalizers are normalizers in a sequence.
type normalizers []normalizer

func (all normalizers) normalize(a aligned) aligned {
	for _, n := range all {
		if a.budget.take(stepsOfPart * len(a.text)); a.budget.spent() {
			break
		}
		a = n.normalize(a)
	}
	return a
}

// characters is a normalizer that replaces each character by the string that the function returns.
type characters func(r rune) string

func (f characters) normalize(a aligned) aligned {
	var w *rewriter
	for i, r := range a.text {
		n := utf8.RuneLen(r)
		s := f(r)
		if s == a.text[i:i+n] {
			continue
		}
		if w == nil {
			w = &rewriter{in: a}
		}
		w.keep(i - w.done)
		w.replace(n, s)
	}
	if w == nil {
		return a
	}
	return w.result()
}

// strip removes white space from the ends of a text.
type strip struct{ left, right bool }

func (s strip) normalize(a aligned) aligned {
	start, end := 0, len(a.text)
	if s.left {
		start = end - len(strings.TrimLeftFunc(a.text, unicode.IsSpace))
	}
	if s.right {
		end = max(start, len(strings.TrimRightFunc(a.text, unicode.IsSpace)))
	}
	return a.sub(start, end)
}

// prepend adds a string before a text that isn't empty.
type prepend string

func (s prepend) normalize(a aligned) aligned {
	if a.text == "" {
		return a
	}
	w := rewriter{in: a}
	w.prepend(string(s))
	return w.result()
}

// replace replaces the matches of a pattern.
type replace struct {
	find    func(text string) (start, end int)
	content string
}

func (p replace) normalize(a aligned) aligned {
	w := rewriter{in: a}
	for w.done < len(a.text) {
		start, end := p.find(a.text[w.done:])
		if start == end {
			break
		}
		w.keep(start)
		w.done += end - start
		from, upto := a.original(w.done-1, w.done) // the last character of the match
		w.put(p.content, span{int32(from), int32(upto)})
	}
	if w.done == 0 {
		return a
	}
	return w.result()
}

// without returns a normalizer that removes the characters of a table.
func without(table *unicode.RangeTable) normalizer {
	return characters(func(r rune) string {
		if unicode.Is(table, r) {
			return ""
		}
		return string(r)
	})
}
