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
