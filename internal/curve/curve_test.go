package curve

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
)

// The curve, the mark and the note are drawn, each where it is.
func TestWritePNG(t *testing.T) {
	f := Figure{Title: "title", X: "x", Y: "y", Points: [][2]float64{{1e-6, 2}, {1e-3, 1}, {1, 50}}, Mark: 1e-3, Note: "note"}
	draw := func(f Figure) string {
		var b bytes.Buffer
		if err := f.WritePNG(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	whole := draw(f)
	img, err := png.Decode(strings.NewReader(whole))
	if err != nil || img.Bounds().Dx() < 800 || img.Bounds().Dy() < 500 {
		t.Fatalf("%v, %v", img, err)
	}
	for name, change := range map[string]func(f *Figure){
		"title": func(f *Figure) { f.Title = "other" }, "x": func(f *Figure) { f.X = "other" }, "y": func(f *Figure) { f.Y = "other" },
		"points": func(f *Figure) { f.Points = [][2]float64{{1e-6, 2}, {1e-2, 1}, {1, 50}} }, "mark": func(f *Figure) { f.Mark = 1e-2 },
		"note": func(f *Figure) { f.Note = "other" },
	} {
		other := f
		change(&other)
		if draw(other) == whole {
			t.Errorf("another %s is drawn the same", name)
		}
	}
	f.Points = f.Points[:1]
	if err := f.WritePNG(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "at least two points to draw, got 1") {
		t.Errorf("of one point: %v", err)
	}
}
