package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task/judge"
)

// binary has the charts of a model that answers with one of two labels, for the rarer label of the rows.
type binary struct {
	Label               string
	Rows, Positives     int
	Average             float64 // average precision
	Miscalibration      float64 // expected calibration error
	Recall, Calibration polyline
	Size                float64
	Ticks               []tick
}

// A polyline is a chart with both axes from 0 to 1, in a square of scatterSize units.
type polyline struct {
	Points string // of the polyline, in SVG
	Dots   []dot
}

// calibrationBins is the number of bins of equal width for probabilities.
const calibrationBins = 10

// binaryOf returns the charts for a report whose rows have two labels, or nil.
func binaryOf(r *judge.Report, classes []string) *binary {
	type row struct {
		p     float64 // probability of the label
		right bool    // whether the row has it
	}
	if len(classes) != 2 {
		return nil
	}
	b := &binary{Size: scatterSize}
	counts := map[string]int{}
	for _, j := range r.Judged {
		counts[j.References[0]]++
	}
	label := slices.MinFunc(classes, func(x, y string) int { return cmp.Compare(counts[x], counts[y]) })
	b.Label, b.Positives = text.Label(label), counts[label]
	var rows []row
	for _, j := range r.Judged {
		if p := math.Exp(j.Answer.LogProb); j.Answer.Err == nil && !math.IsNaN(p) && slices.Contains(classes, j.References[0]) {
			if j.Answer.Text != label {
				p = -math.Expm1(j.Answer.LogProb)
			}
			rows = append(rows, row{p, j.References[0] == label})
		}
	}
	if b.Rows = len(rows); b.Positives == 0 || b.Positives >= b.Rows {
		return nil
	}
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(y.p, x.p) })
	right := 0
	for i, gained := 0, 0; i < len(rows); i++ {
		if rows[i].right {
			right, gained = right+1, gained+1
		}
		if i+1 < len(rows) && rows[i+1].p == rows[i].p { // answered together
			continue
		}
		precision, recall := float64(right)/float64(i+1), float64(right)/float64(b.Positives)
		if gained > 0 {
			b.Average += float64(gained) / float64(b.Positives) * precision
			b.Recall.add(recall, precision, fmt.Sprintf("threshold %s: recall %s, precision %s", short(rows[i].p), percent(recall), percent(precision)))
		}
		gained = 0
	}
	var n, positives [calibrationBins]int
	var sums [calibrationBins]float64
	for _, x := range rows {
		bin := min(int(x.p*calibrationBins), calibrationBins-1)
		n[bin]++
		sums[bin] += x.p
		if x.right {
			positives[bin]++
		}
	}
	for bin, n := range n {
		if n > 0 {
			mean, share := sums[bin]/float64(n), float64(positives[bin])/float64(n)
			b.Miscalibration += math.Abs(mean-share) * float64(n) / float64(b.Rows)
			b.Calibration.add(mean, share, fmt.Sprintf("%s with a mean probability of %s: %s with the label", text.Count(n, "row"), percent(mean), percent(share)))
		}
	}
	for i := range 6 {
		b.Ticks = append(b.Ticks, tick{scatterSize * float64(i) / 5, fmt.Sprint(20*i, " %")})
	}
	return b
}

// add appends a point.
func (l *polyline) add(x, y float64, title string) {
	d := dot{math.Round(10*scatterSize*x) / 10, math.Round(10*scatterSize*(1-y)) / 10, title}
	l.Points += fmt.Sprintf("%v,%v ", d.X, d.Y)
	l.Dots = append(l.Dots, d)
}
