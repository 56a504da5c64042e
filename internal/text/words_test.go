package text

import (
	"slices"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	if got := Count(0, "step") + ", " + Count(1, "step") + ", " + Count(2, "step"); got != "0 steps, 1 step, 2 steps" {
		t.Error(got)
	}
}

func TestList(t *testing.T) {
	numbers := []string{"one", "two", "three"}
	for n, want := range []string{"", "one", "one; two", "one; two; and 1 more"} {
		if got := List(n, 2, "; ", func(i int) string { return numbers[i] }); got != want {
			t.Errorf("a list of %d is %q, want %q", n, got, want)
		}
	}
}

func TestEither(t *testing.T) {
	if got := Either([]string{"a"}) + "; " + Either([]string{"a", "b"}) + "; " + Either([]string{"a", "b", "c"}); got != "a; a or b; a, b or c" {
		t.Error(got)
	}
}

func TestSeconds(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0.0 s", 9.94: "9.9 s", 9.96: "10 s", 119: "119 s", 120: "2 min", 7000: "117 min", 7200: "2.0 h", 1e6: "277.8 h",
	} {
		if got := Seconds(seconds); got != want {
			t.Errorf("Seconds(%v) is %s, want %s", seconds, got, want)
		}
	}
}

func TestVisibleWords(t *testing.T) {
	for s, want := range map[string][]string{
		"": nil, " \t": nil, "3 May 2024.": {"3", "May", "2024", "."}, "a\u00adb": {"a\u00ad", "b"}, "\u200bU.S.\u200b\u0007, x": {"\u200b", "U", ".", "S", ".\u200b\u0007", ",", "x"},
		"a \u200b b": {"a", "\u200b", "b"},
	} {
		if got := slices.Collect(VisibleWords(s)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
		if joined := strings.Join(want, " "); !slices.Equal(slices.Collect(VisibleWords(joined)), want) {
			t.Errorf("%q is split again", joined)
		}
	}
}
