package main

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

// A curve is a line over a logarithmic x axis, with one x marked.
type curve struct {
	Title, X, Y string       // titles of the picture and of its axes
	Points      [][2]float64 // x > 0, and y
	Mark        float64      // x of a vertical line
	Note        string       // legend of the vertical line
}

// writePNG draws the curve as a PNG. The y axis ends a little above the first value: larger values are cut off, so they
// don't flatten the rest of the curve. It is an error if there are fewer than two points.
func (c curve) writePNG(w io.Writer) error {
	if len(c.Points) < 2 {
		return fmt.Errorf("curve: there must be at least two points to draw, got %d", len(c.Points))
	}
	points := make(plotter.XYs, len(c.Points))
	low, begin := math.Inf(1), c.Points[0][1]
	for i, p := range c.Points {
		points[i].X, points[i].Y = p[0], p[1]
		low = min(low, p[1])
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("curve: %w", err)
	}
	p := plot.New()
	margin := max(begin-low, 1e-12) / 10
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 1}
	line.Width, line.Color = vg.Points(1.5), color.RGBA{R: 0x1f, G: 0x4e, B: 0x9c, A: 0xff}
	mark, err := plotter.NewLine(plotter.XYs{{X: c.Mark, Y: low - margin}, {X: c.Mark, Y: begin + 2*margin}})
	if err != nil {
		return fmt.Errorf("curve: %w", err)
	}
	mark.Dashes, mark.Color = []vg.Length{vg.Points(4), vg.Points(3)}, color.RGBA{R: 0xb0, G: 0x3a, B: 0x2e, A: 0xff}
	p.Add(plotter.NewGrid(), line, mark)
	p.Legend.Add(c.Note, mark)
	p.Legend.Left = true
	p.X.Min, p.X.Max = c.Points[0][0], c.Points[len(c.Points)-1][0]
	p.Y.Min, p.Y.Max = low-margin, begin+2*margin
	const width, height = 16 * vg.Centimeter, 10 * vg.Centimeter
	img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))
	p.Draw(draw.New(img))
	_, err = vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}
