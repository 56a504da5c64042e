package published

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/characters"
	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"golang.org/x/text/unicode/norm"
)

// parseNormalizer makes the normalizer of a tokenizer.json. It returns nil if there is none.
func parseNormalizer(part json.RawMessage) (normalizer, error) {
	typ, err := format.TypeOf(part)
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
	if err := format.Decode(part, &file); err != nil {
		return nil, err
	}
	switch typ {
	case "Sequence":
		list, err := format.Sequence(file.Normalizers, parseNormalizer)
		return normalizers(list), err
	case "NFC":
		return unicodeForm{norm.NFD, true}, nil
	case "NFD":
		return unicodeForm{norm.NFD, false}, nil
	case "NFKC":
		return unicodeForm{norm.NFKD, true}, nil
	case "NFKD":
		return unicodeForm{norm.NFKD, false}, nil
	case "Lowercase":
		return eachCharacter(characters.Lower), nil
	case "StripAccents":
		return without(characters.IsAccent), nil
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
	return nil, format.Unsupported(typ)
}

// normalizers is a sequence of normalizers.
type normalizers []normalizer

func (list normalizers) Normalize(a pipe.Text) pipe.Text {
	for _, n := range list {
		if a.Budget.Take(pipe.StepsOfPart * len(a.Content)); a.Budget.Spent() {
			break
		}
		a = n.Normalize(a)
	}
	return a
}

// eachCharacter is a normalizer that replaces each character by the string that the function returns.
type eachCharacter func(r rune) string

func (f eachCharacter) Normalize(a pipe.Text) pipe.Text {
	var w *pipe.Rewriter
	for i, r := range a.Content {
		n := utf8.RuneLen(r)
		s := f(r)
		if s == a.Content[i:i+n] {
			continue
		}
		if w == nil {
			w = &pipe.Rewriter{In: a}
		}
		w.Keep(i - w.Done)
		w.Replace(n, s)
	}
	if w == nil {
		return a
	}
	return w.Result()
}

// strip removes white space from the ends of a text.
type strip struct{ left, right bool }

func (s strip) Normalize(a pipe.Text) pipe.Text {
	start, end := 0, len(a.Content)
	if s.left {
		start = end - len(strings.TrimLeftFunc(a.Content, unicode.IsSpace))
	}
	if s.right {
		end = max(start, len(strings.TrimRightFunc(a.Content, unicode.IsSpace)))
	}
	return a.Sub(start, end)
}

// prepend adds a string before a text that isn't empty.
type prepend string

func (s prepend) Normalize(a pipe.Text) pipe.Text {
	if a.Content == "" {
		return a
	}
	w := pipe.Rewriter{In: a}
	w.Prepend(string(s))
	return w.Result()
}

// replace replaces the matches of a pattern.
type replace struct {
	find    func(text string) (start, end int)
	content string
}

func (p replace) Normalize(a pipe.Text) pipe.Text {
	w := pipe.Rewriter{In: a}
	for w.Done < len(a.Content) {
		start, end := p.find(a.Content[w.Done:])
		if start == end {
			break
		}
		w.Keep(start)
		w.Done += end - start
		start, end = a.Original(w.Done-1, w.Done) // the last character of the match
		w.Put(p.content, pipe.Span{Start: int32(start), End: int32(end)})
	}
	if w.Done == 0 {
		return a
	}
	return w.Result()
}

// without returns a normalizer that removes the characters for which remove returns true.
func without(remove func(r rune) bool) normalizer {
	return eachCharacter(func(r rune) string {
		if remove(r) {
			return ""
		}
		return string(r)
	})
}
