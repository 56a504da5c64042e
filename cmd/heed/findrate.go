package main

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
)

// findRate finds a learning rate, and draws the losses that it was chosen by.
func (r *training) findRate(cmd *cobra.Command, c task.Config) error {
	out, options := r.find, r.options
	if err := fileFlag(cmd.Flags(), "find-rate", ".png"); err != nil {
		return err
	}
	picture := &outFile{flag: "find-rate", path: out, inputs: append(runFiles(c.From.Dir, c.From.Base), dataFiles(c.Data)...)}
	if err := picture.open(cmd.OutOrStdout()); err != nil {
		return err
	}
	defer picture.Close()
	defer r.wait(cmd)()
	t, err := newTask(cmd.Context(), c)
	if err != nil {
		return wrongFlag(err, cmd.Flags())
	}
	defer t.Close()
	if err := t.Config.Training.CheckGroup(options.Group); err != nil {
		return wrongFlag(err, cmd.Flags())
	}
	r.line.does("Finding a rate")
	options.Seed = c.Seed
	var losses []train.RateLoss
	var rate float64
	steps := 100
	for ; ; steps *= 4 {
		// There are at most 13 rates, and twice 6 more.
		options.OnStep = newProgress(r.line, steps, train.Config{MaxEpochs: 25}, train.RunOptions{}).step
		losses, rate, err = train.FindRate(cmd.Context(), t.Problem(), t.Config.Training.Config, options, 1e-5, 10, steps)
		r.line.clear()
		if !errors.Is(err, train.ErrNoRate) || steps > 100 {
			break
		}
	}
	if err != nil || !first(options.Group) { // only the first process draws
		return err
	}
	title := fmt.Sprintf("Loss of %s after %d steps", c.Task.Name, steps)
	if err := picture.write(cmd.Context(), func(w io.Writer) error { return drawRates(w, title, losses, rate) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The loss is lowest at --learning-rate %.2g, as %s shows\n", rate, text.Escape(out))
	return err
}

// drawRates draws the losses over their learning rates as a PNG, with a vertical line at rate. The y axis ends a little
// above the first loss: larger losses are cut off, so they don't flatten the rest of the curve. It is an error if there
// are fewer than two losses.
func drawRates(w io.Writer, title string, losses []train.RateLoss, rate float64) error {
	if len(losses) < 2 {
		return fmt.Errorf("a curve needs at least two losses, got %d", len(losses))
	}
	points := make(plotter.XYs, len(losses))
	low, begin := math.Inf(1), losses[0].Loss
	for i, l := range losses {
		points[i].X, points[i].Y = l.Rate, l.Loss
		low = min(low, l.Loss)
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	p := plot.New()
	margin := max(begin-low, 1e-12) / 10
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "learning rate", "training loss"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 1}
	line.Width, line.Color = vg.Points(1.5), color.RGBA{R: 0x1f, G: 0x4e, B: 0x9c, A: 0xff}
	mark, err := plotter.NewLine(plotter.XYs{{X: rate, Y: low - margin}, {X: rate, Y: begin + 2*margin}})
	if err != nil {
		return err
	}
	mark.Dashes, mark.Color = []vg.Length{vg.Points(4), vg.Points(3)}, color.RGBA{R: 0xb0, G: 0x3a, B: 0x2e, A: 0xff}
	p.Add(plotter.NewGrid(), line, mark)
	p.Legend.Add(fmt.Sprintf("fitted minimum: %.2g", rate), mark)
	p.Legend.Left = true
	p.X.Min, p.X.Max = points[0].X, points[len(points)-1].X
	p.Y.Min, p.Y.Max = low-margin, begin+2*margin
	img := vgimg.NewWith(vgimg.UseWH(16*vg.Centimeter, 10*vg.Centimeter), vgimg.UseDPI(144))
	p.Draw(draw.New(img))
	_, err = vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}
