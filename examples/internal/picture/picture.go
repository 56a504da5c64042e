// Package picture draws the attention weights of examples.
package picture

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/heed-go/heed/internal/heatmap"
)

// Layer returns a layer with a heatmap for each head. The weights have shape (heads, rows, columns), row-major.
func Layer(name string, rows, columns []string, weights []float64) heatmap.Layer {
	l := heatmap.Layer{Name: name, Rows: rows, Columns: columns}
	for size := len(rows) * len(columns); len(weights) > 0; weights = weights[size:] {
		head := make([]float32, size)
		for i := range head {
			head[i] = float32(weights[i])
		}
		l.Heads = append(l.Heads, head)
	}
	return l
}

// Count returns n labels: name followed by 0, 1 and so on.
func Count(name string, n int) []string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = name + strconv.Itoa(i)
	}
	return labels
}

// Draw draws layers below a title as a PNG, like Write.
func Draw(path, title string, layers ...heatmap.Layer) error {
	return Write(path, heatmap.Figure{Title: title, Layers: layers})
}

// Write draws a figure as a PNG. It makes the folder if it doesn't exist. It does nothing if path is empty. If it can't
// draw the whole picture, it leaves a file at path unchanged.
func Write(path string, f heatmap.Figure) error {
	if path == "" {
		return nil
	}
	var drawn bytes.Buffer
	if err := f.WritePNG(&drawn, 96); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, drawn.Bytes(), 0o666)
}
