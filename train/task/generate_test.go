package task

import (
	"strings"
	"testing"
)

// Text must end before the first of the stop strings, however it arrives, and only text that may begin one is held
// back.
func TestStopping(t *testing.T) {
	for _, test := range []struct {
		stop    []string
		parts   []string
		written []string // after each part
		want    string   // after the end
		ended   bool
	}{
		{nil, []string{"a", "b"}, []string{"a", "ab"}, "ab", false},
		{[]string{"\n\n"}, []string{"a\n", "b\n", "\nc"}, []string{"a", "a\nb", "a\nb"}, "a\nb", true},
		{[]string{"User:", "Use"}, []string{"Hi U", "ser: x"}, []string{"Hi ", "Hi "}, "Hi ", true},
		{[]string{"aab"}, []string{"aa", "a", "b"}, []string{"", "a", "a"}, "a", true},
		{[]string{"aab"}, []string{"xaa"}, []string{"x"}, "xaa", false},
		{[]string{"é!"}, []string{"cafés", " é"}, []string{"cafés", "cafés "}, "cafés é", false},
		{[]string{"b", "a"}, []string{"xab"}, []string{"x"}, "x", true},
	} {
		var s strings.Builder
		out := &stopping{w: &s, stop: test.stop}
		for i, part := range test.parts {
			if out.write(part); s.String() != test.written[i] {
				t.Errorf("%q: after part %d of %q, %q is written, want %q", test.stop, i, test.parts, s.String(), test.written[i])
			}
		}
		out.flush()
		if s.String() != test.want || out.ended != test.ended || out.err != nil {
			t.Errorf("%q: %q gives %q, ended %v, %v, want %q, ended %v", test.stop, test.parts, s.String(), out.ended, out.err, test.want, test.ended)
		}
	}
}

// Generate must stop at strings that several tokens make, and say why it ended.
func TestGenerateStops(t *testing.T) {
	task := fitted(t, small(t, "text"))
	var whole, cut strings.Builder
	o := GenerateOptions{MaxTokens: 40}
	if g, err := task.Generate(t.Context(), &whole, Prompt{Text: "The quick"}, o); err != nil || g.Finish != "length" || whole.Len() != 40 {
		t.Fatalf("Generate writes %q, %+v, %v", whole.String(), g, err)
	}
	o.Stop = []string{"never", whole.String()[10:13]}
	before, _, _ := strings.Cut(whole.String(), o.Stop[1])
	g, err := task.Generate(t.Context(), &cut, Prompt{Text: "The quick"}, o)
	if want := (Generated{9, len(before) + 3, "stop"}); err != nil || g != want || cut.String() != before {
		t.Errorf("with the stop %q, Generate writes %q, %+v, %v, want %q, %+v", o.Stop[1], cut.String(), g, err, before, want)
	}
	for _, wrong := range []GenerateOptions{{MaxTokens: -1}, {MaxTokens: 1, Stop: []string{""}}} {
		if _, err := task.Generate(t.Context(), &cut, Prompt{Text: "The"}, wrong); asConfigError(err).Paths() == nil {
			t.Errorf("%+v: got error %v, want a *ConfigError", wrong, err)
		}
	}
}
