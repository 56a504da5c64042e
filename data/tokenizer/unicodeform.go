package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm is a normal form of Unicode 9: a decomposition, and whether its characters are composed again. Later
// versions decompose and reorder more characters, but none in another way.
type unicodeForm struct {
	decomposition norm.Form // norm.NFD or norm.NFKD
	compose       bool
}

// A formed is a character of a normal form. Added says how it relates to the characters of the text: 0 if it stands for
// the next one, 1 if it stands beside the last one, and -n if it stands for the next one and the n after it.
type formed struct {
	r     rune
	added int
	class uint8 // canonical combining class
}

func (f unicodeForm) normalize(a aligned) aligned {
	form := f.decomposition
	if f.compose {
		form = map[norm.Form]norm.Form{norm.NFD: norm.NFC, norm.NFKD: norm.NFKC}[form]
	}
	if form.IsNormalString(a.text) {
		return a
	}
	a.budget.take(stepsOfForm * len(a.text))
	t := transformer{rewriter: rewriter{in: a}}
	var part []formed // the last character of class 0 and what follows it
	for _, r := range a.text {
		if a.budget.spent() {
			break
		}
		for i, d := range f.decompose(r) {
			c := formed{d, min(i, 1), f.class(d)}
			if c.class == 0 {
				if part = f.settled(part); f.compose && len(part) == 1 && part[0].composes(c) {
					continue
				}
				t.add(part...)
				part = part[:0]
			}
			part = append(part, c)
		}
	}
	t.add(f.settled(part)...)
	return t.result()
}

// settled returns characters in canonical order, and composed if the form is. At most the first has class 0.
func (f unicodeForm) settled(part []formed) []formed {
	if len(part) < 2 {
		return part
	}
	slices.SortStableFunc(part, func(a, b formed) int { return int(a.class) - int(b.class) })
	if !f.compose {
		return part
	}
	out := part[:1]
	for _, c := range part[1:] {
		blocked := len(out) > 1 && out[len(out)-1].class >= c.class
		if blocked || !out[0].composes(c) {
			out = append(out, c)
		}
	}
	return out
}

// composes reports whether f and the next character form one character together, which f becomes then.
func (f *formed) composes(next formed) bool {
	if f.class != 0 || norm.NFC.PropertiesString(string(next.r)).BoundaryBefore() {
		return false
	}
	both, ok := composed(f.r, next.r)
	if ok {
		f.r = both
		f.added += next.added - 1
	}
	return ok
}

// A transformer builds the text of characters. Each has the origin of the characters that it stands for.
type transformer struct {
	rewriter
	held formed // the last character, which may yet stand for more
	some bool   // whether there is one
}

// add adds characters.
func (t *transformer) add(part ...formed) {
	for _, c := range part {
		t.flush()
		t.held, t.some = c, true
	}
}

// drop removes the next n characters of the old text. Before the first add, it has no effect, so that the characters
// after them take their origins.
func (t *transformer) drop(n int) { t.held.added -= n }

func (t *transformer) flush() {
	switch {
	case !t.some:
	case t.held.added > 0:
		t.beside(string(t.held.r))
	default:
		n := 0
		for range 1 - t.held.added {
			_, size := utf8.DecodeRuneInString(t.in.text[t.done+n:])
			n += size
		}
		t.replace(n, string(t.held.r))
	}
	t.some = false
}

// result returns the new text.
func (t *transformer) result() aligned {
	t.flush()
	return t.in.replaced(t.out, t.spans)
}

// class returns the canonical combining class of a character.
func (f unicodeForm) class(r rune) uint8 {
	if !unicode.Is(marks9, r) {
		return 0
	}
	return f.decomposition.PropertiesString(string(r)).CCC()
}

// decompose returns the full decomposition of a character.
func (f unicodeForm) decompose(r rune) []rune {
	const first, vowels, finals, count = 0xAC00, 21, 28, 11172
	if i := r - first; i >= 0 && i < count { // Hangul: section 3.12 of the Unicode standard
		parts := []rune{0x1100 + i/(vowels*finals), 0x1161 + i%(vowels*finals)/finals}
		if final := i % finals; final > 0 {
			parts = append(parts, 0x11A7+final)
		}
		return parts
	}
	if d := f.decomposition.PropertiesString(string(r)).Decomposition(); d != nil && unicode.Is(decomposed9, r) {
		return []rune(string(d))
	}
	return []rune{r}
}

// composed returns the character that a and b form together. Package norm compares only the last 16 bits of a and b,
// so composed checks what the result decomposes to.
func composed(a, b rune) (rune, bool) {
	both := string([]rune{a, b})
	text := norm.NFC.String(both)
	r, n := utf8.DecodeRuneInString(text)
	return r, n == len(text) && unicode.Is(decomposed9, r) && norm.NFD.String(text) == norm.NFD.String(both)
}
