package main

import (
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gorgonia.org/tensor"
)

// grid is the weights of one head, as plotter.HeatMap reads them: a column for each key and a row for each query, the
// first query on top.
type grid struct {
	weights []float32 // (T, T) of the head, row-major
	width   int       // T
	valid   int       // positions that aren't padding
}

func (g grid) Dims() (c, r int)   { return g.valid, g.valid }
func (g grid) X(c int) float64    { return float64(c) }
func (g grid) Y(r int) float64    { return float64(r) }
func (g grid) Z(c, r int) float64 { return float64(g.weights[(g.valid-1-r)*g.width+c]) }

// drawMaps writes a picture of the weights of every block and head for a word.
func drawMaps(path string, letters []rune, blocks []*tensor.Dense) error {
	heads, width := blocks[0].Shape()[1], blocks[0].Shape()[3]
	plots := make([][]*plot.Plot, len(blocks))
	for i, block := range blocks {
		all := block.Data().([]float32)
		for h := range heads {
			p := plot.New()
			p.Title.Text = fmt.Sprintf("block %d, head %d", i, h)
			p.Title.TextStyle.Font.Size = font.Points(9)
			m := plotter.NewHeatMap(grid{all[h*width*width:][:width*width], width, len(letters)}, blues(64))
			m.Min, m.Max = 0, 1
			p.Add(m)
			var keys, queries []plot.Tick
			for j, letter := range letters {
				keys = append(keys, plot.Tick{Value: float64(j), Label: string(letter)})
				queries = append(queries, plot.Tick{Value: float64(len(letters) - 1 - j), Label: string(letter)})
			}
			p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(keys), plot.ConstantTicks(queries)
			p.X.Tick.Length, p.Y.Tick.Length = 0, 0
			plots[i] = append(plots[i], p)
		}
	}
	const side = 4.2 * vg.Centimeter
	img := vgimg.New(side*vg.Length(heads), side*vg.Length(len(blocks)))
	canvas := draw.New(img)
	tiles := draw.Tiles{Rows: len(blocks), Cols: heads, PadX: vg.Millimeter, PadY: vg.Millimeter}
	for i, row := range plot.Align(plots, tiles, canvas) {
		for h, c := range row {
			plots[i][h].Draw(c)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// blues goes from white to dark blue.
type blues int

func (n blues) Colors() []color.Color {
	out := make([]color.Color, n)
	for i := range out {
		x := float64(i) / float64(n-1)
		out[i] = color.RGBA{R: uint8(255 - 235*x), G: uint8(255 - 195*x), B: uint8(255 - 115*x), A: 255}
	}
	return out
}
