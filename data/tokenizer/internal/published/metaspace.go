package published

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

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
