package main

import (
	_ "embed"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// record is the series, one month per line. co2.py made it; NOTICE names its source.
//
//go:embed co2.csv
var record string

// read returns the numbers of a text with a month and a number per line.
func read(text string) ([]float32, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	series := make([]float32, len(lines)-1)
	for i, line := range lines[1:] { // the first line is a header
		_, number, _ := strings.Cut(line, ",")
		x, err := strconv.ParseFloat(number, 32)
		if err != nil {
			return nil, fmt.Errorf("line %d: expected a month and a number, such as 1958-03,316.1, got %q: %w", i+2, line, err)
		}
		series[i] = float32(x)
	}
	return series, nil
}

// A rule forecasts the series for month now + h, from the months up to now.
type rule struct {
	name     string
	forecast func(now, h int) float32
}

// thumb returns three rules of thumb: nothing changes; the last year repeats; the last year repeats, plus the trend of
// the last five years.
func thumb(series []float32) []rule {
	seasonal := func(now, h int) float32 { return series[now+h-(h+11)/12*12] }
	return []rule{
		{"naive", func(now, _ int) float32 { return series[now] }},
		{"seasonal naive", seasonal},
		{"seasonal naive, with trend", func(now, h int) float32 {
			return seasonal(now, h) + float32((h+11)/12)*(series[now]-series[now-60])/5
		}},
	}
}

// show prints each rule's mean absolute error. It forecasts from every month after which 24 months were measured.
func show(w io.Writer, series []float32, rules []rule) {
	fmt.Fprintf(w, "Mean absolute error, ppm     1-12  13-24   1-24  months ahead, of %d forecasts\n", len(series)-ahead-known+1)
	for _, r := range rules {
		var sums [2]float64
		for now := known - 1; now+ahead < len(series); now++ {
			for h := 1; h <= ahead; h++ {
				sums[(h-1)/12] += math.Abs(float64(r.forecast(now, h) - series[now+h]))
			}
		}
		n := float64(12 * (len(series) - ahead - known + 1))
		fmt.Fprintf(w, "%-26s %6.3f %6.3f %6.3f\n", r.name, sums[0]/n, sums[1]/n, (sums[0]+sums[1])/n/2)
	}
}

// draw writes a picture of the series and of the rules' forecasts, one every two years. It makes the picture's folder
// if it doesn't exist.
func draw(path string, series []float32, rules ...rule) error {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = "Carbon dioxide over Mauna Loa, and forecasts of two years", "ppm"
	p.Legend.Top, p.Legend.Left = true, true
	add := func(c color.Color, start, end int, value func(month int) float32) (*plotter.Line, error) {
		var points plotter.XYs
		for month := start; month < end; month++ {
			points = append(points, plotter.XY{X: 1958 + float64(month+2)/12, Y: float64(value(month))})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = c, vg.Points(1.5)
		p.Add(line)
		return line, nil
	}
	line, err := add(color.Gray{0xa0}, known-24, len(series), func(month int) float32 { return series[month] })
	if err != nil {
		return err
	}
	p.Legend.Add("measured", line)
	colors := []color.Color{color.RGBA{R: 0x1f, G: 0x4e, B: 0x9c, A: 0xff}, color.RGBA{R: 0xb0, G: 0x3a, B: 0x2e, A: 0xff}}
	for i, r := range rules {
		for now := known - 1; now+ahead < len(series); now += ahead {
			if line, err = add(colors[i%len(colors)], now+1, now+1+ahead, func(month int) float32 { return r.forecast(now, month-now) }); err != nil {
				return err
			}
		}
		p.Legend.Add(r.name, line)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return p.Save(16*vg.Centimeter, 9*vg.Centimeter, path)
}
