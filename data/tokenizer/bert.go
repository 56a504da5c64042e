package tokenizer

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// bertNormalizer is the normalizer of BERT.
type bertNormalizer struct {
	steps normalizers
	ascii *[utf8.RuneSelf]byte // what each ASCII character becomes; 0 if it is removed
}

// newBertNormalizer returns a normalizer that removes control characters and makes all white space spaces (clean), puts
// spaces around CJK ideographs (chinese), removes accents, and changes letters to lower case.
func newBertNormalizer(clean, chinese, accents, lowercase bool) normalizer {
	b := bertNormalizer{ascii: new([utf8.RuneSelf]byte)}
	if clean {
		b.steps = append(b.steps, characters(cleaned))
	}
	if chinese {
		b.steps = append(b.steps, characters(func(r rune) string {
			if isChinese(r) {
				return " " + string(r) + " "
			}
			return string(r)
		}))
	}
	if accents {
		b.steps = append(b.steps, unicodeForm{norm.NFD, false}, without(nonspacing8))
	}
	if lowercase {
		b.steps = append(b.steps, characters(lower))
	}
	for c := range rune(utf8.RuneSelf) {
		if s := b.steps.normalize(aligned{text: string(c), budget: newBudget(1)}).text; s != "" {
			b.ascii[c] = s[0]
		}
	}
	return b
}

func (b bertNormalizer) normalize(a aligned) aligned {
	changed := false
	for i := range len(a.text) {
		c := a.text[i]
		if c >= utf8.RuneSelf || b.ascii[c] == 0 {
			return b.steps.normalize(a)
		}
		changed = changed || b.ascii[c] != c
	}
	if !changed {
		return a
	}
	out := make([]byte, len(a.text))
	for i := range out {
		out[i] = b.ascii[a.text[i]]
	}
	a.text = string(out) // of the same length, so each byte has the same origin as before
	return a
}

// cleaned removes control characters and U+FFFD, and returns a space for all white space.
func cleaned(r rune) string {
	switch {
	case unicode.Is(removed8, r):
		return ""
	case unicode.IsSpace(r):
		return " "
	}
	return string(r)
}

// isChinese reports whether r is in the blocks of CJK ideographs that BERT surrounds by spaces.
func isChinese(r rune) bool {
	switch {
	case 0x4E00 <= r && r <= 0x9FFF, 0x3400 <= r && r <= 0x4DBF, 0xF900 <= r && r <= 0xFAFF:
		return true
	case 0x20000 <= r && r <= 0x2A6DF, 0x2A700 <= r && r <= 0x2B73F, 0x2B740 <= r && r <= 0x2B81F, 0x2B920 <= r && r <= 0x2CEAF, 0x2F800 <= r && r <= 0x2FA1F:
		return true
	}
	return false
}

// bertSplitter splits a text into words and punctuation characters, and drops white space.
type bertSplitter struct{}

func (bertSplitter) split(a aligned, yield func(aligned)) {
	start := 0 // of the current word
	for i := 0; i < len(a.text); {
		r, n := rune(a.text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(a.text[i:])
		}
		space := unicode.IsSpace(r)
		if space || isPunctuation(r) {
			if start < i {
				yield(a.sub(start, i))
			}
			if !space {
				yield(a.sub(i, i+n))
			}
			start = i + n
		}
		i += n
	}
	if start < len(a.text) {
		yield(a.sub(start, len(a.text)))
	}
}
