package published

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/patterns"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// parseSplitter makes the pre_tokenizer of a tokenizer.json. It returns nil if there is none.
func parseSplitter(part json.RawMessage) (splitter, error) {
	typ, err := format.TypeOf(part)
	if typ == "" || err != nil {
		return nil, err
	}
	switch typ {
	case "ByteLevel":
		var file byteLevelJSON
		if err := format.Decode(part, &file); err != nil {
			return nil, err
		}
		return byteLevel{file.PrefixSpace, file.Regex == nil || *file.Regex}, nil
	case "Metaspace":
		var file struct {
			Type string `json:"type"`
			metaspaceJSON
		}
		if err := format.Decode(part, &file); err != nil {
			return nil, err
		}
		return file.parse()
	case "Sequence":
		var list struct {
			Type  string            `json:"type"`
			Parts []json.RawMessage `json:"pretokenizers"`
		}
		if err := format.Decode(part, &list); err != nil {
			return nil, err
		}
		parts, err := format.Sequence(list.Parts, parseSplitter)
		return sequence(parts), err
	}
	return parseMatcher(typ, part)
}

// byteLevel is a splitter that may add a space before the text, and split the text by GPT-2's pattern. It also says
// that the model's vocabulary is byte-level: that its tokens are bytes, which are spelled as characters.
type byteLevel struct{ space, pattern bool }

// byteLevelJSON is a ByteLevel of a tokenizer.json.
type byteLevelJSON struct {
	Type        string `json:"type"`
	PrefixSpace bool   `json:"add_prefix_space"`
	Trim        bool   `json:"trim_offsets"`
	Regex       *bool  `json:"use_regex"` // if it is missing, true
}

func (b byteLevel) split(a pipe.Text, yield func(pipe.Text)) {
	if b.space && !strings.HasPrefix(a.Content, " ") {
		w := pipe.Rewriter{In: a}
		w.Prepend(" ")
		a = w.Result()
	}
	if !b.pattern {
		yield(a)
		return
	}
	scanned(patterns.GPT2).split(a, yield)
}

// A sequence splits the pieces of each splitter with the next one.
type sequence []splitter

func (s sequence) split(a pipe.Text, yield func(pipe.Text)) {
	switch len(s) {
	case 0:
		yield(a)
		return
	case 1:
		s[0].split(a, yield)
		return
	}
	s[0].split(a, func(piece pipe.Text) {
		if a.Budget.Take(pipe.StepsOfPart * (2 + len(piece.Content))); !a.Budget.Spent() {
			s[1:].split(piece, yield)
		}
	})
}

// isByteLevel reports whether a splitter is or has a byteLevel.
func isByteLevel(s splitter) bool {
	switch s := s.(type) {
	case byteLevel:
		return true
	case sequence:
		return slices.ContainsFunc(s, isByteLevel)
	}
	return false
}

// metaspace is a splitter that replaces spaces by a visible character, such as ▁. It may put that character before the
// text, and split the text before each.
type metaspace struct {
	replacement string
	prepend     string // "always", "first" (only at the start of the whole text) or "never"
	splits      bool
}

// metaspaceJSON is a Metaspace of a tokenizer.json.
type metaspaceJSON struct {
	Replacement string  `json:"replacement"`
	Scheme      *string `json:"prepend_scheme"`
	PrefixSpace *bool   `json:"add_prefix_space"` // in old files, instead of prepend_scheme; false means never
	Split       *bool   `json:"split"`
	Spelled     *string `json:"str_rep"` // in old files; the same as replacement
}

func (file metaspaceJSON) parse() (m metaspace, err error) {
	m = metaspace{replacement: file.Replacement, prepend: "always", splits: file.Split == nil || *file.Split}
	switch {
	case file.Scheme != nil:
		m.prepend = *file.Scheme
	case file.PrefixSpace != nil && !*file.PrefixSpace:
		m.prepend = "never"
	}
	if m.prepend != "always" && m.prepend != "first" && m.prepend != "never" {
		return m, fmt.Errorf("its prepend_scheme must be always, first or never, got %.100q", m.prepend)
	}
	if utf8.RuneCountInString(m.replacement) != 1 {
		return m, fmt.Errorf("its replacement must be one character, got %.100q", m.replacement)
	}
	return m, nil
}

func (m metaspace) split(a pipe.Text, yield func(pipe.Text)) {
	start, _ := a.Original(0, 0)
	a = replace{literal(" "), m.replacement}.Normalize(a)
	if !strings.HasPrefix(a.Content, m.replacement) && (m.prepend == "always" || m.prepend == "first" && start == 0) {
		a = prepend(m.replacement).Normalize(a)
	}
	if !m.splits {
		yield(a)
		return
	}
	matcher{find: literal(m.replacement), behavior: "MergedWithNext"}.split(a, yield)
}
