package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
)

// parseSplitter makes the pre-tokenizer of a tokenizer.json; nil if there is none.
func parseSplitter(part json.RawMessage) (splitter, error) {
	typ, err := typeOf(part)
	if typ == "" || err != nil {
		return nil, err
	}
	switch typ {
	case "ByteLevel":
		var file byteLevelJSON
		if err := decode(part, &file); err != nil {
			return nil, err
		}
		return byteLevel{file.PrefixSpace, file.Regex == nil || *file.Regex}, nil
	case "Metaspace":
		var file struct {
			Type string `json:"type"`
			metaspaceJSON
		}
		if err := decode(part, &file); err != nil {
			return nil, err
		}
		return file.parse()
	case "Sequence":
		var list struct {
			Type string            `json:"type"`
			All  []json.RawMessage `json:"pretokenizers"`
		}
		if err := decode(part, &list); err != nil {
			return nil, err
		}
		all, err := sequenceOf(list.All, parseSplitter)
		return sequence(all), err
	}
	return parseMatcher(typ, part)
}

// byteLevel says that the model's vocabulary is byte-level: its tokens are bytes, spelled as characters. It may add a
// space before the text, and split the text by GPT-2's pattern.
type byteLevel struct{ space, pattern bool }

// byteLevelJSON is a ByteLevel of a tokenizer.json.
type byteLevelJSON struct {
	Type        string `json:"type"`
	PrefixSpace bool   `json:"add_prefix_space"`
	Trim        bool   `json:"trim_offsets"`
	Regex       *bool  `json:"use_regex"` // missing in files of old versions: true
}

func (b byteLevel) split(a aligned, yield func(aligned)) {
	if b.space && !strings.HasPrefix(a.text, " ") {
		w := rewriter{in: a}
		w.prepend(" ")
		a = w.result()
	}
	if !b.pattern {
		yield(a)
		return
	}
	scanner(pieceLen).split(a, yield)
}

// A sequence splits the pieces of each splitter with the next one.
type sequence []splitter

func (s sequence) split(a aligned, yield func(aligned)) {
	switch len(s) {
	case 0:
		yield(a)
		return
	case 1:
		s[0].split(a, yield)
		return
	}
	s[0].split(a, func(piece aligned) {
		if a.budget.take(stepsOfPart * (2 + len(piece.text))); !a.budget.spent() {
			s[1:].split(piece, yield)
		}
	})
}

// isByteLevel reports whether a splitter has a byteLevel.
func isByteLevel(s splitter) bool {
	switch s := s.(type) {
	case byteLevel:
		return true
	case sequence:
		return slices.ContainsFunc(s, isByteLevel)
	}
	return false
}
