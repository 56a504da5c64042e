package tokenizer

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm is a normal form of Unicode: a decomposition, and whether its characters are composed again.
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
	var all []formed
	start := 0 // of the characters that aren't in canonical order yet
	sort := func() {
		slices.SortStableFunc(all[start:], func(a, b formed) int { return int(a.class) - int(b.class) })
		start = len(all)
	}
	for _, r := range a.text {
		for i, d := range f.decompose(r) {
			class := f.decomposition.PropertiesString(string(d)).CCC()
			if class == 0 {
				sort()
			}
			all = append(all, formed{d, min(i, 1), class})
			if class == 0 {
				start = len(all)
			}
		}
	}
	sort()
	if f.compose {
		all = compose(all)
	}
	return transform(a, all)
}

// transform returns the text of all characters. Each has the origin of the characters that it stands for.
func transform(a aligned, all []formed) aligned {
	w := rewriter{in: a}
	for _, c := range all {
		if c.added > 0 {
			w.beside(string(c.r))
			continue
		}
		n := 0
		for range 1 - c.added {
			_, size := utf8.DecodeRuneInString(a.text[w.done+n:])
			n += size
		}
		w.replace(n, string(c.r))
	}
	return aligned{text: string(w.out), first: a.first, spans: w.spans}
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
	if d := f.decomposition.PropertiesString(string(r)).Decomposition(); d != nil {
		return []rune(string(d))
	}
	return []rune{r}
}

// compose composes characters in canonical order.
func compose(all []formed) []formed {
	out := all[:0]
	starter := -1 // index in out of the last character with class 0
	for _, c := range all {
		last := uint8(0) // class of the character before c, if it isn't the starter
		if len(out)-1 > starter && starter >= 0 {
			last = out[len(out)-1].class
		}
		blocked := starter < 0 || len(out)-1 > starter && (last == 0 || last >= c.class)
		if !blocked {
			if both, ok := composed(out[starter].r, c.r); ok {
				out[starter].r = both
				out[starter].added += c.added - 1
				continue
			}
		}
		if c.class == 0 {
			starter = len(out)
		}
		out = append(out, c)
	}
	return out
}

// composed returns the character that a and b form together.
func composed(a, b rune) (rune, bool) {
	both := norm.NFC.String(string([]rune{a, b}))
	r, n := utf8.DecodeRuneInString(both)
	return r, n == len(both) && n > 0
}
