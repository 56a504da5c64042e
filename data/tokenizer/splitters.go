package tokenizer

import (
	"encoding/json"
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
		var level struct {
			Type           string `json:"type"`
			AddPrefixSpace bool   `json:"add_prefix_space"`
			TrimOffsets    bool   `json:"trim_offsets"`
			UseRegex       *bool  `json:"use_regex"` // missing in files of old versions: true
		}
		if err := decode(part, &level); err != nil {
			return nil, err
		}
		return byteLevel{level.AddPrefixSpace, level.UseRegex == nil || *level.UseRegex}, nil
	}
	return nil, unsupported(typ)
}

// byteLevel says that the model's vocabulary is byte-level: its tokens are bytes, spelled as characters. It may add a
// space before the text, and split the text by GPT-2's pattern.
type byteLevel struct{ space, pattern bool }

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
	for start := 0; start < len(a.text); {
		end := start + pieceLen(a.text[start:])
		yield(a.sub(start, end))
		start = end
	}
}

// isByteLevel reports whether a splitter ends in a byteLevel.
func isByteLevel(s splitter) bool {
	_, ok := s.(byteLevel)
	return ok
}
