package main

import (
	"image/png"
	"os"
	"regexp"
	"strings"
	"testing"
)

// heed train --find-rate names the rate that it finds, draws the losses, and makes no run folder.
func TestFindRate(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct{ flag, file string }{{"--find-rate", "learning-rate.png"}, {"--find-rate=other.PNG", "other.PNG"}} {
		out := succeed(t, small("--task=copy", "--batch-size=4", "--dim=8", test.flag)...)
		if !regexp.MustCompile(`^The loss is lowest at --learning-rate 0\.0\d+, as ` + regexp.QuoteMeta(test.file) + " shows\n$").MatchString(out) {
			t.Errorf("heed train prints %q, want a rate and %s", out, test.file)
		}
		if _, err := png.Decode(strings.NewReader(read(t, test.file))); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v, want only two pictures", entries, err)
	}
	fail(t, heedContext(cancelled(t, 5), small("--task=copy", "--find-rate")...), 1, "interrupted")
}
