package heatmap

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes the figure as a page that needs nothing else: a table for each map, whose cells tell their weight
// under the pointer.
func (f Figure) WriteHTML(w io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	return page.Execute(w, f)
}

// A cell is a weight as the page has it.
type cell struct {
	Row, Column string
	Weight      string
}

// Shown says whether a cell differs from white.
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
