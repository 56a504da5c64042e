// Package picture draws the attention weights of examples.
package picture

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/heed-go/heed/internal/atomicfile"
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
// draw or write the whole picture, it leaves a file at path unchanged. It writes to a pipe or a device in place.
func Write(path string, f heatmap.Figure) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	draw := func(w io.Writer) error { return f.WritePNG(w, 96) }
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return atomicfile.WriteFile(path, draw)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(draw(file), file.Close())
}
