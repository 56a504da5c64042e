package heatmap

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"

	"github.com/heed-go/heed/internal/webpage"
)

// What a page needs that shows attention: its style, and heed.attention, a script that makes a figure to explore of
// what HTML returns, and of any element with any data of that form.
var (
	//go:embed attention.css
	Style string
	//go:embed attention.js
	Script string
)

//go:embed figure.html
var figureText string

var figure = template.Must(template.New("figure").Funcs(template.FuncMap{
	"side": func(labels []string) int { return drawnCell * len(labels) },
}).Parse(figureText))

const (
	maxCells  = 1 << 15 // weights in cells of tables, for browsers without scripts: of more, there are pictures
	drawnCell = 15      // pixels of a weight in such a picture, each way
)

// WriteHTML writes the figure as a page that needs nothing else.
func (f Figure) WriteHTML(w io.Writer) error {
	body, err := f.HTML()
	if err != nil {
		return err
	}
	title := f.Title
	if title == "" {
		title = "Attention"
	}
	body = "<h1>" + template.HTML(template.HTMLEscapeString(title)) + "</h1>\n" + body
	return webpage.Page{Title: title, Body: body, Style: Style, Scripts: []string{Script}}.Write(w)
}

// HTML returns the figure, without its title, as a part of a page that has Style and Script: to explore, and without
// scripts as a table for each map, whose cells tell their weight under the pointer, or which is drawn where weights are
// many.
func (f Figure) HTML() (template.HTML, error) {
	if err := f.check(); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := figure.Execute(&out, f)
	return template.HTML(out.String()), err
}

// Drawn says whether there are too many weights for a cell each.
func (f Figure) Drawn() bool {
	weights := 0
	for _, l := range f.Layers {
		weights += len(l.Heads) * len(l.Rows) * len(l.Columns)
	}
	return weights > maxCells
}

// Data returns what the script takes.
func (f Figure) Data() any {
	type layer struct {
		Name    string   `json:"name"`
		Meaning string   `json:"meaning"`
		Rows    []string `json:"rows"`
		Columns []string `json:"columns"`
		Heads   []string `json:"heads"`
	}
	var layers []layer
	for _, l := range f.Layers {
		packed := layer{l.Name, l.Meaning, l.Rows, l.Columns, nil}
		for _, weights := range l.Heads {
			packed.Heads = append(packed.Heads, pack(weights))
		}
		layers = append(layers, packed)
	}
	return map[string]any{"key": f.Key, "layers": layers}
}

// pack returns weights in two bytes each, the lower one first, as base64. 60,000 stands for 1, and 65,535 for what
// isn't a number.
func pack(weights []float32) string {
	packed := make([]byte, 0, 2*len(weights))
	for _, w := range weights {
		n := uint16(math.MaxUint16)
		if w == w {
			n = uint16(math.Round(60_000 * float64(max(0, min(w, 1)))))
		}
		packed = binary.LittleEndian.AppendUint16(packed, n)
	}
	return base64.StdEncoding.EncodeToString(packed)
}

// A cell is a weight as a table has it.
type cell struct {
	Row, Column string
	Weight      string
}

// Shown says whether a cell differs from an empty one.
func (c cell) Shown() bool { return c.Weight != "0.000" }

// A row is a query's weights.
type row struct {
	Label string
	Cells []cell
}

// Table returns a head's weights, row by row.
func (l Layer) Table(h head) []row {
	rows := make([]row, len(l.Rows))
	for i, label := range l.Rows {
		rows[i].Label = label
		for j, weight := range h.Weights[i*len(l.Columns):][:len(l.Columns)] {
			rows[i].Cells = append(rows[i].Cells, cell{label, l.Columns[j], fmt.Sprintf("%.3f", weight)})
		}
	}
	return rows
}

// Picture returns a head's weights as a PNG of a pixel each, which can be seen through where there is no attention. Of
// many weights most are small: their roots are drawn.
func (l Layer) Picture(h head) (template.URL, error) {
	palette := make(color.Palette, 256)
	for i := range palette {
		palette[i] = color.NRGBA{31, 95, 191, uint8(i)}
	}
	img := image.NewPaletted(image.Rect(0, 0, len(l.Columns), len(l.Rows)), palette)
	for i, w := range h.Weights {
		if w > 0 { // and a number
			img.Pix[i] = uint8(math.Round(255 * math.Sqrt(float64(min(w, 1)))))
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(out.Bytes())), err
}
