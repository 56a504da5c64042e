package printable

import "testing"

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "größer \\ \"x\" �\n": "größer \\ \"x\" �\n", "\x1b[2J\a\x7f": `\x1b[2J\a\x7f`, "\xff\u202e\u009b": `\xff\u202e\u009b`, "\u00a0\u3000\t\u0085\u2028": "\u00a0\u3000\\t\\u0085\\u2028",
	} {
		if got := Text(s); got != want {
			t.Errorf("Text(%q) is %q, want %q", s, got, want)
		}
	}
	if got, want := Except("a\tb\nc\r", "\t"), `a`+"\t"+`b\nc\r`; got != want {
		t.Errorf("Except is %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s          string
		head, tail int
		want       string
	}{
		{"", 0, 0, ""}, {"äöü", 2, 1, "äöü"}, {"äöüß", 2, 1, "äö … ß"}, {"äöüß", 3, 0, "äöü … "},
	} {
		if got := Cut(c.s, c.head, c.tail); got != c.want {
			t.Errorf("Cut(%q, %d, %d) is %q, want %q", c.s, c.head, c.tail, got, c.want)
		}
	}
}
