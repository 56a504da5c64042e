package main

import (
	"bytes"
	"image/png"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
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

// The title, the losses and the rate change the picture.
func TestDrawRates(t *testing.T) {
	losses := []train.RateLoss{{Rate: 1e-6, Loss: 2}, {Rate: 1e-3, Loss: 1}, {Rate: 1, Loss: 50}}
	draw := func(title string, losses []train.RateLoss, rate float64) string {
		var b bytes.Buffer
		must.Do(t, drawRates(&b, title, losses, rate))
		return b.String()
	}
	picture := draw("title", losses, 1e-3)
	img, err := png.Decode(strings.NewReader(picture))
	if err != nil || img.Bounds().Dx() < 800 || img.Bounds().Dy() < 500 {
		t.Fatalf("the picture is %v, %v, want at least 800×500", img, err)
	}
	for name, other := range map[string]string{"title": draw("other", losses, 1e-3), "losses": draw("title", losses[:2], 1e-3), "rate": draw("title", losses, 1e-2)} {
		if other == picture {
			t.Errorf("another %s doesn't change the picture", name)
		}
	}
	must.Fail(t, drawRates(new(bytes.Buffer), "title", losses[:1], 1e-3), "at least two losses, got 1")
}
