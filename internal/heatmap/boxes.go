package heatmap

import (
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
)

// box replaces characters that the font of PNGs lacks.
const (
	box    = '□'
	boxKey = "□ a character that this font lacks"
)

// Boxes returns the characters that a PNG of the figure shows as □, without repeats, in the order of code points.
func (f Figure) Boxes() string {
	_, missing := f.boxed()
	return missing
}

// boxed returns the figure with □ for characters that the font lacks, and these characters. If there are any, boxKey is
// in the figure's key.
func (f Figure) boxed() (boxed Figure, missing string) {
	var lacking []rune
	boxed = f.mapped(func(r rune) rune {
		if lacks(r) {
			lacking = append(lacking, r)
			return box
		}
		return r
	})
	if lacking != nil && boxed.Key != "" {
		boxed.Key += ", "
	}
	if lacking != nil {
		boxed.Key += boxKey
	}
	slices.Sort(lacking)
	return boxed, string(slices.Compact(lacking))
}

// lacks reports whether the font of PNGs lacks a character.
func lacks(r rune) bool {
	i, err := font.DefaultCache.Lookup(plot.DefaultFont, font.Points(10)).Face.GlyphIndex(nil, r)
	return err != nil || i == 0
}

// mapped returns the figure with change applied to every character of its texts.
func (f Figure) mapped(change func(r rune) rune) Figure {
	text := func(s string) string { return strings.Map(change, s) }
	texts := func(list []string) []string {
		changed := make([]string, len(list))
		for i, s := range list {
			changed[i] = text(s)
		}
		return changed
	}
	changed := Figure{Title: text(f.Title), Key: text(f.Key)}
	for _, l := range f.Layers {
		changed.Layers = append(changed.Layers, Layer{text(l.Name), text(l.Meaning), texts(l.Rows), texts(l.Columns), l.Heads})
	}
	return changed
}
