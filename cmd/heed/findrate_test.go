package main

import (
	"image/png"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// heed train --find-rate names the rate that it finds, draws the losses, and makes no run folder.
func TestFindRate(t *testing.T) {
	testseed.Slow(t)
	t.Chdir(t.TempDir())
	const picture = "learning-rate.png"
	out := succeed(t, small("--task=copy", "--batch-size=4", "--dim=8", "--find-rate")...)
	if !regexp.MustCompile(`^The loss is lowest at --learning-rate 0\.0\d+, as ` + regexp.QuoteMeta(picture) + " shows\n$").MatchString(out) {
		t.Errorf("heed train prints %q, want a rate and %s", out, picture)
	}
	must.Get(png.Decode(strings.NewReader(read(t, picture))))(t)
	// Another name may end in PNG. An interrupted search leaves no picture.
	fail(t, heedContext(cancelled(t, 5), small("--task=copy", "--find-rate=other.PNG")...), 1, "interrupted")
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v, want only one picture", entries, err)
	}
}
