package published

import (
	"slices"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/characters"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"golang.org/x/text/unicode/norm"
)

// unicodeForm is a normalizer: a normal form of Unicode 9. Later versions decompose and reorder more characters. They
// treat the characters of Unicode 9 in the same way.
type unicodeForm struct {
	decomposition norm.Form // norm.NFD or norm.NFKD
	compose       bool      // whether characters are composed again
}

// A formed is a character of the new text. The field added says which characters of the old text it stands for: 0 means
// the next one, -n means the next one and the n after it. With 1, it is an additional character for the last one.
type formed struct {
	r     rune
	added int
	class uint8 // canonical combining class
}

func (f unicodeForm) Normalize(a pipe.Text) pipe.Text {
	form := f.decomposition
	if f.compose {
		form = map[norm.Form]norm.Form{norm.NFD: norm.NFC, norm.NFKD: norm.NFKC}[form]
	}
	if form.IsNormalString(a.Content) {
		return a
	}
	a.Budget.Take(pipe.StepsOfForm * len(a.Content))
	t := transformer{Rewriter: pipe.Rewriter{In: a}}
	var part []formed // the last character of class 0, and the characters after it
	for _, r := range a.Content {
		if a.Budget.Spent() {
			break
		}
		for i, d := range characters.Decompose(f.decomposition, r) {
			c := formed{d, min(i, 1), characters.CombiningClass(d)}
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

// settled sorts characters into canonical order, and composes them if the form does. Only the first may have class 0.
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

// composes reports whether f and the next character form one character together. If so, f becomes that character.
func (f *formed) composes(next formed) bool {
	if f.class != 0 || norm.NFC.PropertiesString(string(next.r)).BoundaryBefore() {
		return false
	}
	both, ok := characters.Compose(f.r, next.r)
	if ok {
		f.r = both
		f.added += next.added - 1
	}
	return ok
}

// A transformer builds a text from formed characters. Each gets the origin of the characters that it stands for.
type transformer struct {
	pipe.Rewriter
	held   formed // the last character, which drop may still change
	isHeld bool   // whether there is such a character
}

// add adds characters.
func (t *transformer) add(part ...formed) {
	for _, c := range part {
		t.flush()
		t.held, t.isHeld = c, true
	}
}

// drop removes the next n characters of the old text: the last character stands for them, too. Before the first add,
// drop has no effect.
func (t *transformer) drop(n int) { t.held.added -= n }

func (t *transformer) flush() {
	switch {
	case !t.isHeld:
	case t.held.added > 0:
		t.Beside(string(t.held.r))
	default:
		n := 0
		for range 1 - t.held.added {
			_, size := utf8.DecodeRuneInString(t.In.Content[t.Done+n:])
			n += size
		}
		t.Replace(n, string(t.held.r))
	}
	t.isHeld = false
}

// result returns the new text.
func (t *transformer) result() pipe.Text {
	t.flush()
	return t.In.Replaced(t.Out, t.Spans)
}
