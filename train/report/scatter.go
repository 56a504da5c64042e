package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task/judge"
)

// A scatter is a plot of a model's numbers over the right numbers. Both axes have the same range, so that right answers
// are on the diagonal. The template draws it as SVG, in a square of scatterSize units.
type scatter struct {
	Points []dot
	Ticks  []tick
	Size   float64
}

// A dot is at (X, Y) from the lower left corner of the plot.
type dot struct {
	X, Y  float64
	Title string
}

// A tick is a line of the grid at the distance At from the lower left corner.
type tick struct {
	At    float64
	Label string
}

const scatterSize = 400

// distant is an example whose answer is a number.
type distant struct {
	Source, Answer, Want, Error string
	size                        float64 // distance of the answer
}

// scatterOf returns the plot of a report, or nil if no row has an answer. It also returns the examples whose answers
// are farthest from the right numbers. The function show makes a source readable.
func scatterOf(r *judge.Report, show func(source string) string) (*scatter, []distant) {
	var far []distant
	var pairs [][2]float64 // right number and answer
	low, high := math.Inf(1), math.Inf(-1)
	for _, j := range r.Judged {
		fields := strings.Split(j.References[0], "\t") // a second text may be before the number
		want, err := text.Number(fields[len(fields)-1])
		if err != nil || j.Answer.Number == nil {
			continue
		}
		got := *j.Answer.Number
		pairs = append(pairs, [2]float64{want, got})
		low, high = min(low, want, got), max(high, want, got)
		fields[len(fields)-1] = show(j.Source)
		slices.Reverse(fields)
		far = append(far, distant{shown(strings.Join(fields, " │ ")), short(got), short(want), fmt.Sprintf("%+.4g", got-want), math.Abs(got - want)})
	}
	if pairs == nil {
		return nil, nil
	}
	if low == high {
		low, high = low-1, high+1
	}
	place := func(x float64) float64 { return math.Round(10*scatterSize*(x-low)/(high-low)) / 10 }
	s := &scatter{Size: scatterSize}
	for _, p := range pairs {
		s.Points = append(s.Points, dot{place(p[0]), scatterSize - place(p[1]), fmt.Sprintf("right %s, answered %s", short(p[0]), short(p[1]))})
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/2)))
	for _, factor := range []float64{5, 2} {
		if (high-low)/(step*factor) >= 3 {
			step *= factor
			break
		}
	}
	for n := math.Ceil(low / step); n*step <= high && len(s.Ticks) < 20; n++ {
		s.Ticks = append(s.Ticks, tick{place(n * step), short(n * step)})
	}
	slices.SortStableFunc(far, func(a, b distant) int { return cmp.Compare(b.size, a.size) })
	return s, far[:min(len(far), shownExamples)]
}
