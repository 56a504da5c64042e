package report

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/train"
)

// A chart is the argument of heed.chart in charts.js of package webpage.
type chart struct {
	Title  string   `json:"title"`
	Label  string   `json:"label"`
	Series []series `json:"series"`
	Marks  []mark   `json:"marks,omitempty"`
	Log    bool     `json:"log,omitempty"`
}

type series struct {
	Name   string   `json:"name"`
	X      []int    `json:"x"`
	Values []number `json:"values"`
}

type mark struct {
	X     int    `json:"x"`
	Label string `json:"label"`
}

// newSeries returns an empty series. In JSON, its lists are empty too, not null.
func newSeries(name string) series { return series{Name: name, X: []int{}, Values: []number{}} }

func (s *series) add(x int, value float64) {
	s.X, s.Values = append(s.X, x), append(s.Values, number(value))
}

// A number has seven digits in JSON, or all if it is whole. If it isn't finite, it is null.
type number float64

func (n number) finite() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

func (n number) MarshalJSON() ([]byte, error) {
	if !n.finite() {
		return []byte("null"), nil
	}
	digits := 7
	if x := float64(n); x == math.Trunc(x) {
		digits = -1
	}
	return strconv.AppendFloat(nil, float64(n), 'g', digits, 64), nil
}

// Maximum number of checks in a curve and in a table. The best and the last check may come in addition.
const (
	mostPoints = 2000
	mostRows   = 400
)

// thinned returns the indices from 0 to n − 1. If n is above limit, it returns up to limit indices at equal distances,
// and the indices best and n − 1.
func thinned(n, limit, best int) (some []int) {
	step := (n + limit - 1) / limit
	for i := range n {
		if i%step == 0 || i == best || i == n-1 {
			some = append(some, i)
		}
	}
	return some
}

// place returns the number of a check on the axis of a chart.
func place(c train.Check, steps bool) int {
	if steps {
		return c.Step
	}
	return c.Epoch
}

// axis returns the unit of place.
func axis(steps bool) string {
	if steps {
		return "step"
	}
	return "epoch"
}

// values returns the curve of some checks.
func (r *Run) values(some []int, steps bool, name string, value func(i int) float64) series {
	s := newSeries(name)
	for _, i := range some {
		s.add(place(r.History[i], steps), value(i))
	}
	return s
}

// metrics returns the names of the metrics in a history, without train_ and val_.
func metrics(history []train.Check) []string {
	names := map[string]bool{}
	for name := range history[0].Metrics {
		names[strings.TrimPrefix(strings.TrimPrefix(name, "train_"), "val_")] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// metric returns a function for the value of a metric at check i: NaN if the check doesn't have the metric.
func metric(history []train.Check, name string) func(i int) float64 {
	return func(i int) float64 {
		if x, ok := history[i].Metrics[name]; ok {
			return x
		}
		return math.NaN()
	}
}

// stepTime returns the mean milliseconds per step before check i, or NaN if unknown.
func (r *Run) stepTime(i int) float64 {
	if i >= len(r.stepSeconds) || r.stepSeconds[i] == 0 {
		return math.NaN()
	}
	return 1000 * r.stepSeconds[i]
}

// charts returns the curves of a run.
func (r *Run) charts() []chart {
	h, best := r.History, r.best()
	some := thinned(len(h), mostPoints, best)
	steps := r.bySteps()
	label := axis(steps)
	marks := []mark{{place(h[best], steps), "kept"}, {place(h[len(h)-1], steps), "stop"}}
	if r.Unfinished {
		marks[1].Label = "so far"
	}
	switch {
	case r.onlyLinear(): // no check answers
		marks = marks[1:]
	case marks[0].X == marks[1].X:
		marks = []mark{{marks[0].X, marks[0].Label + ", " + marks[1].Label}}
	}
	both := func(title string, training, validation func(i int) float64) chart {
		c := chart{Title: title, Label: label, Marks: marks, Series: []series{r.values(some, steps, "training", training)}}
		if h[0].Validated {
			c.Series = append(c.Series, r.values(some, steps, "validation", validation))
		}
		return c
	}
	loss := both("Loss"+r.unit, func(i int) float64 { return h[i].TrainLoss }, func(i int) float64 { return h[i].ValLoss })
	loss.Log = wide(loss.Series)
	charts := []chart{loss}
	for _, name := range metrics(h) {
		charts = append(charts, both(capital(name), metric(h, "train_"+name), metric(h, "val_"+name)))
	}
	for _, one := range []struct {
		title, name string
		value       func(i int) float64
	}{
		{"Learning rate", "learning rate", func(i int) float64 { return h[i].LearningRate }},
		{"Gradient norm, before clipping", "mean norm", func(i int) float64 { return h[i].GradientNorm }},
		{"Time per step, ms", "wall-clock time", r.stepTime},
	} {
		s := r.values(some, steps, one.name, one.value)
		if slices.ContainsFunc(s.Values, func(v number) bool { return v.finite() && v != 0 }) {
			charts = append(charts, chart{Title: one.title, Label: label, Series: []series{s}})
		}
	}
	return charts
}

// capital returns a name as a title: exact_match becomes Exact match.
func capital(name string) string {
	name = spoken(name)
	_, first := utf8.DecodeRuneInString(name)
	return strings.ToUpper(name[:first]) + name[first:]
}

// wide reports whether all values are above 0 and the largest is more than 30 times the smallest. A logarithmic axis
// then shows small values better.
func wide(curves []series) bool {
	low, high := number(math.Inf(1)), number(0)
	for _, s := range curves {
		for _, v := range s.Values {
			if v.finite() {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low > 0 && high > 30*low
}

// A table is text in rows and columns.
type table struct {
	Columns []string
	Rows    [][]string
	Best    int // index of the highlighted row, or -1
	LeftOut int // number of rows left out

	Bests [][2]int // row and column of each highlighted cell
}

// Marked reports whether the cell is highlighted.
func (t table) Marked(row, column int) bool { return slices.Contains(t.Bests, [2]int{row, column}) }

// mark highlights the best cells of a column. The best value is the largest or, if lower is true, the smallest. It
// ignores NaN, and a column with fewer than two other values.
func (t *table) mark(column int, values []float64, lower bool) {
	finite := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) })
	if len(finite) < 2 {
		return
	}
	best := slices.Max(finite)
	if lower {
		best = slices.Min(finite)
	}
	for i, v := range values {
		if v == best {
			t.Bests = append(t.Bests, [2]int{i, column})
		}
	}
}

// checks returns the table of the run's checks.
func (r *Run) checks() table {
	h := r.History
	t := table{Columns: []string{"epoch", "step", "training loss"}}
	if h[0].Validated {
		t.Columns = append(t.Columns, "validation loss")
	}
	for _, name := range metrics(h) {
		t.Columns = append(t.Columns, "training "+spoken(name))
		if h[0].Validated {
			t.Columns = append(t.Columns, "validation "+spoken(name))
		}
	}
	t.Columns = append(t.Columns, "learning rate", "gradient norm", "ms per step")
	best := r.best()
	some := thinned(len(h), mostRows, best)
	if r.onlyLinear() {
		best, t.Best = -1, -1
	}
	for _, i := range some {
		row := []string{strconv.Itoa(h[i].Epoch), strconv.Itoa(h[i].Step), short(h[i].TrainLoss)}
		if h[0].Validated {
			row = append(row, short(h[i].ValLoss))
		}
		for _, name := range metrics(h) {
			row = append(row, short(h[i].Metrics["train_"+name]))
			if h[0].Validated {
				row = append(row, short(h[i].Metrics["val_"+name]))
			}
		}
		ms := "–"
		if time := r.stepTime(i); time > 0 {
			ms = short(time)
		}
		if i == best {
			t.Best = len(t.Rows)
		}
		t.Rows = append(t.Rows, append(row, short(h[i].LearningRate), short(h[i].GradientNorm), ms))
	}
	t.LeftOut = len(h) - len(t.Rows)
	return t
}
