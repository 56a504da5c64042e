package text

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestWords(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       string // words with | between them
	}{
		{"nothing", "", ""},
		{"white space", " \t\r\n\v\f\u0085\u00a0\u3000", ""},
		{"letters, digits and marks", "It's 3.14, x86_64 (C++)!", "It|'|s|3|.|14|,|x|86|_|64|(|C|+|+|)|!"},
		{"the edges of ASCII classes", "@AZ[`az{/09:", "@|AZ|[|`|az|{|/|09|:"},
		{"control characters", "a\x00b\x7f", "a|\x00|b|\x7f"},
		{"other scripts", "Été НОЧЬ ½²", "Été|НОЧЬ|½|²"},
		{"digits of other scripts", "٣٤a१२", "٣٤|a|१२"},
		{"combining marks", "cafe\u0301s 1\ufe0f\u20e3 हिन्दी", "cafe\u0301s|1\ufe0f\u20e3|हिन्दी"},
		{"a mark without a character", "\u0301e \u0301\u0301", "\u0301|e|\u0301\u0301"},
		{"joiners", "می\u200cخواهم ❤\ufe0f\u200d🔥", "می\u200cخواهم|❤\ufe0f\u200d|🔥"},
		{"no spaces", "東京はGoで", "東|京|は|Go|で"},
		{"no spaces, with marks", "ที่นี่ か\u3099", "ที่|นี่|か\u3099"},
		{"invalid bytes", "a\xffb", "a|\xff|b"},
	} {
		got := slices.Collect(Words(tc.text))
		if want := strings.Split(tc.want, "|"); !slices.Equal(got, want) && !(tc.want == "" && got == nil) {
			t.Errorf("%s: got %q, want %q", tc.name, got, want)
		}
	}
	for range Words("a b") { // a caller that stops early
		break
	}
}

// TestClassOf compares the shortcut for ASCII with the tables of Unicode.
func TestClassOf(t *testing.T) {
	for r := range rune(0x80) {
		want := alone
		switch {
		case unicode.IsLetter(r):
			want = letter
		case unicode.IsDigit(r):
			want = digit
		case unicode.IsSpace(r):
			want = space
		}
		if got := classOf(r); got != want {
			t.Errorf("%q is of class %d, want %d", r, got, want)
		}
	}
}
