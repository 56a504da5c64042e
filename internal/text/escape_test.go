package text

import (
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "größer \\ \"x\" �\n": "größer \\ \"x\" �\n", "\x1b[2J\a\x7f": `\x1b[2J\a\x7f`, "\xff\u202e\u009b": `\xff\u202e\u009b`, "\u00a0\u3000\t\u0085\u2028": "\u00a0\u3000\\t\\u0085\\u2028",
	} {
		if got := Escape(s); got != want {
			t.Errorf("Escape(%q) is %q, want %q", s, got, want)
		}
	}
	if got, want := EscapeExcept("a\tb\nc\r", "\t"), `a`+"\t"+`b\nc\r`; got != want {
		t.Errorf("EscapeExcept is %q, want %q", got, want)
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{"": "(none)", "spam": "spam", "a\nb": `a\nb`, strings.Repeat("ä", 24): strings.Repeat("ä", 24), strings.Repeat("ä", 25): strings.Repeat("ä", 23) + "…"} {
		if got := Label(name); got != want {
			t.Errorf("Label(%q) is %q, want %q", name, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		s          string
		head, tail int
		want       string
	}{
		{"", 0, 0, ""}, {"äöü", 2, 1, "äöü"}, {"äöüß", 2, 1, "äö … ß"}, {"äöüß", 3, 0, "äöü … "},
	} {
		if got := Shorten(c.s, c.head, c.tail); got != c.want {
			t.Errorf("Shorten(%q, %d, %d) is %q, want %q", c.s, c.head, c.tail, got, c.want)
		}
	}
}
