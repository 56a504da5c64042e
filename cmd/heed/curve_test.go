package main

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// Each field of a curve changes the picture.
func TestCurve(t *testing.T) {
	f := curve{Title: "title", X: "x", Y: "y", Points: [][2]float64{{1e-6, 2}, {1e-3, 1}, {1, 50}}, Mark: 1e-3, Note: "note"}
	draw := func(f curve) string {
		var b bytes.Buffer
		must.Do(t, f.writePNG(&b))
		return b.String()
	}
	whole := draw(f)
	img, err := png.Decode(strings.NewReader(whole))
	if err != nil || img.Bounds().Dx() < 800 || img.Bounds().Dy() < 500 {
		t.Fatalf("the picture is %v, %v, want at least 800×500", img, err)
	}
	for name, change := range map[string]func(f *curve){
		"title": func(f *curve) { f.Title = "other" }, "x": func(f *curve) { f.X = "other" }, "y": func(f *curve) { f.Y = "other" },
		"points": func(f *curve) { f.Points = [][2]float64{{1e-6, 2}, {1e-2, 1}, {1, 50}} }, "mark": func(f *curve) { f.Mark = 1e-2 },
		"note": func(f *curve) { f.Note = "other" },
	} {
		other := f
		change(&other)
		if draw(other) == whole {
			t.Errorf("a change of %s doesn't change the picture", name)
		}
	}
	f.Points = f.Points[:1]
	must.Fail(t, f.writePNG(new(bytes.Buffer)), "at least two points to draw, got 1")
}
