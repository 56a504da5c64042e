package main

import (
	"image/png"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The rate that is found is named and drawn, and no run folder is made.
func TestFindRate(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct{ flag, file string }{{"--find-rate", "learning-rate.png"}, {"--find-rate=other.PNG", "other.PNG"}} {
		out := succeed(t, small("--task=copy", test.flag)...)
		if !regexp.MustCompile(`^The loss falls most steeply at --learning-rate 0\.0\d+, as ` + regexp.QuoteMeta(test.file) + " shows\n$").MatchString(out) {
			t.Errorf("it prints %q", out)
		}
		if _, err := png.Decode(strings.NewReader(read(t, test.file))); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 2 {
		t.Errorf("it made %v, want two pictures: %v", entries, err)
	}
	fail(t, heedContext(cancelled(t, 5), small("--task=copy", "--find-rate")...), 1, "interrupted")
}
