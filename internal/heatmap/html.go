package heatmap

import (
	"bytes"
	"cmp"
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

// Style and Script are for pages that show attention. The script makes the result of HTML interactive. It also defines
// heed.attention, which shows the result of Data in any element.
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
	maxCells  = 1 << 15 // without scripts, larger figures show pictures instead of tables with a cell per weight
	drawnCell = 15      // width and height of one weight in such a picture, in pixels
)

// WriteHTML writes the figure as a page in one file.
func (f Figure) WriteHTML(w io.Writer) error {
	body, err := f.HTML()
	if err != nil {
		return err
	}
	title := cmp.Or(f.Title, "Attention")
	body = "<h1>" + template.HTML(template.HTMLEscapeString(title)) + "</h1>\n" + body
	return webpage.Page{Title: title, Body: body, Style: Style, Scripts: []string{Script}}.Write(w)
}

// HTML returns the figure, without its title, for a page with Style and Script. In browsers without scripts, each map
// is a table, and a cell shows its weight when the pointer is over it. If there are many weights, each map is a picture
// instead.
func (f Figure) HTML() (template.HTML, error) {
	if err := f.check(); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := figure.Execute(&out, f)
	return template.HTML(out.String()), err
}

// Drawn reports whether there are too many weights for tables with one cell per weight.
func (f Figure) Drawn() bool {
	weights := 0
	for _, l := range f.Layers {
		weights += len(l.Heads) * len(l.Rows) * len(l.Columns)
	}
	return weights > maxCells
}

// Data returns the figure as data for the script.
func (f Figure) Data() any {
	type layer struct {
		Layer
		Heads []string `json:"heads"` // packed
	}
	layers := make([]layer, len(f.Layers))
	for i, l := range f.Layers {
		layers[i].Layer = l
		for _, weights := range l.Heads {
			layers[i].Heads = append(layers[i].Heads, pack(weights))
		}
	}
	return map[string]any{"key": f.Key, "layers": layers}
}

// pack returns weights as base64, with two bytes per weight, low byte first. The number 60,000 means a weight of 1;
// 65,535 means NaN.
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

// A cell is a weight in a table.
type cell struct {
	Row, Column string
	Weight      string
}

// Shown reports whether a cell has a visible colour.
func (c cell) Shown() bool { return c.Weight != "0.000" }

// A row has a query's weights.
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

// Picture returns a head's weights as a PNG with one pixel per weight, transparent for a weight of 0. The opacity is
// the root of the weight, because with many keys most weights are small.
func (l Layer) Picture(h head) (template.URL, error) {
	palette := make(color.Palette, 256)
	for i := range palette {
		palette[i] = color.NRGBA{31, 95, 191, uint8(i)}
	}
	img := image.NewPaletted(image.Rect(0, 0, len(l.Columns), len(l.Rows)), palette)
	for i, w := range h.Weights {
		if w > 0 { // false for NaN
			img.Pix[i] = uint8(math.Round(255 * math.Sqrt(float64(min(w, 1)))))
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(out.Bytes())), err
}
