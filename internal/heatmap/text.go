package heatmap

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// shades are the characters for weights in a terminal, from light to dark. A weight has the first shade whose limit is
// above the weight.
var shades = [...]struct {
	below float32
	shade string
}{{0.05, " "}, {0.25, "░"}, {0.5, "▒"}, {0.75, "▓"}}

const (
	darkest   = "█"
	shadesKey = "░ from 5 %, ▒ from 25 %, ▓ from 50 %, █ from 75 % of a row's attention"
)

func shade(weight float32) string {
	for _, s := range shades {
		if weight < s.below {
			return s.shade
		}
	}
	if weight != weight {
		return "?"
	}
	return darkest
}

// between is the space between maps side by side.
const between = "   "

// WriteText writes the figure for a terminal that has the given width in columns. Maps of a layer are side by side if
// they fit. A map that is too wide is cut into bands of columns, one below the other. Titles aren't cut.
func (f Figure) WriteText(w io.Writer, width int) error {
	if err := f.check(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	line := func(s string) { out.WriteString(strings.TrimRight(s, " ") + "\n") }
	for _, s := range []string{f.Title, f.Key, shadesKey} {
		if s != "" {
			line(s)
		}
	}
	for _, l := range f.Layers {
		line("")
		if heading := l.Heading(); heading != "" {
			line(heading)
		}
		for _, lines := range l.lines(width) {
			line(lines)
		}
	}
	return out.Flush()
}

// lines returns the lines of a layer's maps. If possible, no line is wider than width terminal columns.
func (l Layer) lines(width int) []string {
	label := widest(l.Rows)
	room := width - label - 1 // columns left for cells
	cell := max(1, widest(l.Columns))
	if 2*len(l.Columns) <= room {
		cell = max(cell, 2) // cells are then about square
	}
	columns := min(len(l.Columns), max(1, room/cell)) // number of the map's columns per band
	mapWidth := label + 1 + columns*cell
	for _, h := range l.Titled() {
		mapWidth = max(mapWidth, label+1+widest([]string{h.Title}))
	}
	across := max(1, (width+len(between))/(mapWidth+len(between)))
	times := (len(l.Heads) + across - 1) / across
	across = (len(l.Heads) + times - 1) / times // spread the maps evenly over the rows

	var lines []string
	for heads := range slices.Chunk(l.Titled(), across) {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		for start := 0; start < len(l.Columns); start += columns {
			lines = append(lines, l.band(heads, start, min(start+columns, len(l.Columns)), label, cell, mapWidth)...)
		}
	}
	return lines
}

// band returns the lines for the columns from start to end − 1 of some heads: a line of titles, a line of column
// labels, and a line for each row. The heads are side by side, and each takes width terminal columns.
func (l Layer) band(heads []head, start, end, label, cell, width int) []string {
	lines := make([]string, 2+len(l.Rows))
	indent := strings.Repeat(" ", label+1)
	for i, h := range heads {
		add := func(line int, s string) {
			if i+1 < len(heads) {
				s = pad(s, width) + between
			}
			lines[line] += s
		}
		add(0, indent+h.Title)
		var labels strings.Builder
		for _, c := range l.Columns[start:end] {
			labels.WriteString(pad(c, cell))
		}
		add(1, indent+labels.String())
		for r, row := range l.Rows {
			cells := pad(row, label+1)
			for _, weight := range h.Weights[r*len(l.Columns):][start:end] {
				cells += strings.Repeat(shade(weight), cell)
			}
			add(2+r, cells)
		}
	}
	return lines
}

// widest returns the largest width of some strings in terminal columns.
func widest(s []string) int {
	longest := 0
	for _, s := range s {
		longest = max(longest, uniseg.StringWidth(s))
	}
	return longest
}

// pad returns s padded with spaces to width.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-uniseg.StringWidth(s)))
}
