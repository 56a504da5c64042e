package main

import (
	"fmt"
	"os"
	"path/filepath"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/heatmap"
)

// draw writes a picture of the attention weights of every block, (1, H, T, T), among the first positions: those that
// have letters, as the rest is padding. It makes the picture's folder if there is none.
func draw(path string, letters []string, blocks []*tensor.Dense) error {
	var figure heatmap.Figure
	for i, block := range blocks {
		heads, width := block.Shape()[1], block.Shape()[3]
		all := block.Data().([]float32)
		layer := heatmap.Layer{Rows: letters, Columns: letters}
		for h := range heads {
			head := heatmap.Head{Title: fmt.Sprintf("block %d, head %d", i, h)}
			for q := range letters {
				row := all[(h*width+q)*width:][:width]
				head.Weights = append(head.Weights, row[:len(letters)]...)
			}
			layer.Heads = append(layer.Heads, head)
		}
		figure.Layers = append(figure.Layers, layer)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := figure.WritePNG(f, 96); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
