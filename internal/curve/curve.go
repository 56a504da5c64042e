// Package curve draws a curve over a logarithmic axis, as a PNG.
package curve

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// A Figure is a curve with a mark.
type Figure struct {
	Title, X, Y string       // of the figure and of its axes
	Points      [][2]float64 // x, which is above 0, and y
	Mark        float64      // an x where a line is drawn
	Note        string       // what the line is
}

// WritePNG draws the figure. Its y axis ends where the curve first rises to what it began with, or a little above, so
// that what follows can't flatten the rest. There must be two points or more.
func (f Figure) WritePNG(w io.Writer) error {
	if len(f.Points) < 2 {
		return fmt.Errorf("curve: there must be at least two points to draw, got %d", len(f.Points))
	}
	points := make(plotter.XYs, len(f.Points))
	low, begin := math.Inf(1), f.Points[0][1]
	for i, p := range f.Points {
		points[i].X, points[i].Y = p[0], p[1]
		low = min(low, p[1])
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("curve: %w", err)
	}
	p := plot.New()
	margin := max(begin-low, 1e-12) / 10
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 1}
	line.Width, line.Color = vg.Points(1.5), color.RGBA{R: 0x1f, G: 0x4e, B: 0x9c, A: 0xff}
	mark, err := plotter.NewLine(plotter.XYs{{X: f.Mark, Y: low - margin}, {X: f.Mark, Y: begin + 2*margin}})
	if err != nil {
		return fmt.Errorf("curve: %w", err)
	}
	mark.Dashes, mark.Color = []vg.Length{vg.Points(4), vg.Points(3)}, color.RGBA{R: 0xb0, G: 0x3a, B: 0x2e, A: 0xff}
	p.Add(plotter.NewGrid(), line, mark)
	p.Legend.Add(f.Note, mark)
	p.Legend.Left = true
	p.X.Min, p.X.Max = f.Points[0][0], f.Points[len(f.Points)-1][0]
	p.Y.Min, p.Y.Max = low-margin, begin+2*margin
	const width, height = 16 * vg.Centimeter, 10 * vg.Centimeter
	img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))
	p.Draw(draw.New(img))
	_, err = vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}
