package published

import (
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/characters"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"golang.org/x/text/unicode/norm"
)

// bertNormalizer is the normalizer of BERT. For texts in ASCII, it looks up each character in a table.
type bertNormalizer struct {
	steps normalizers
	ascii *[utf8.RuneSelf]byte // what each ASCII character becomes; 0 if that isn't one character
}

// newBertNormalizer returns a normalizer of up to four steps: clean removes control characters and turns white space
// into spaces, chinese puts spaces around CJK ideographs, accents removes accents, and lowercase turns letters into
// lower case.
func newBertNormalizer(clean, chinese, accents, lowercase bool) normalizer {
	b := bertNormalizer{ascii: new([utf8.RuneSelf]byte)}
	if clean {
		b.steps = append(b.steps, eachCharacter(characters.Cleaned))
	}
	if chinese {
		b.steps = append(b.steps, eachCharacter(func(r rune) string {
			if characters.IsChinese(r) {
				return " " + string(r) + " "
			}
			return string(r)
		}))
	}
	if accents {
		b.steps = append(b.steps, unicodeForm{norm.NFD, false}, without(characters.IsBERTAccent))
	}
	if lowercase {
		b.steps = append(b.steps, eachCharacter(characters.Lower))
	}
	for c := range rune(utf8.RuneSelf) {
		if s := b.steps.Normalize(pipe.Text{Content: string(c), Budget: pipe.NewBudget(1)}).Content; s != "" {
			b.ascii[c] = s[0]
		}
	}
	return b
}

func (b bertNormalizer) Normalize(a pipe.Text) pipe.Text {
	changed := false
	for i := range len(a.Content) {
		c := a.Content[i]
		if c >= utf8.RuneSelf || b.ascii[c] == 0 {
			return b.steps.Normalize(a)
		}
		changed = changed || b.ascii[c] != c
	}
	if !changed {
		return a
	}
	out := make([]byte, len(a.Content))
	for i := range out {
		out[i] = b.ascii[a.Content[i]]
	}
	a.Content = string(out) // it has the same length, so each byte keeps its origin
	return a
}
