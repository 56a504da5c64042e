package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/text"
)

// A comparison is the data of the template compare.
type comparison struct {
	Names       []string
	Charts      []chart
	Scores      table
	Shared      []row // columns that have the same value for all runs, left out of Scores
	Differences []difference
}

// A difference is a setting that differs between runs.
type difference struct {
	Name   string
	Values []string
}

// Compare writes a page that compares runs. It has their scores, their curves in shared charts, and the settings that
// differ. If the runs learned the same task and, for answers of several units, in the same units, the best run comes
// first: the one with the best value that all runs monitored or, if that is a loss, with the best score. Compare
// returns an error, and writes nothing, if there is no run, if a run has no check, or if JSON can't represent the
// Settings of a run.
func Compare(w io.Writer, runs []*Run) error {
	if len(runs) == 0 {
		return errors.New("report: Compare needs at least one run, got none")
	}
	for _, r := range runs {
		if _, err := r.settings(); err != nil {
			return err
		}
	}
	runs, _ = Sorted(runs)
	found, err := differences(runs)
	if err != nil {
		return err
	}
	v := comparison{Names: names(runs), Differences: found}
	v.Charts = compared(runs, v.Names)
	v.Scores, v.Shared = scores(runs, v.Names)
	return write(w, "compare", fmt.Sprintf("%d runs", len(runs)), v, script)
}

// names returns a name for each run: the name of its folder or, if there is no folder, its title. If two names are the
// same, it returns the folders' paths instead of their names or, for private runs, adds numbers.
func names(runs []*Run) []string {
	short := make([]string, len(runs))
	whole := make([]string, len(runs))
	for i, r := range runs {
		short[i], whole[i] = r.name(), text.EscapeExcept(cmp.Or(r.dir, r.Title), "")
		if r.Private {
			whole[i] = fmt.Sprintf("%d: %s", i+1, short[i])
		}
	}
	sorted := slices.Sorted(slices.Values(short))
	if len(slices.Compact(sorted)) < len(runs) {
		return whole
	}
	return short
}

// compared returns a chart for each value, with the curves of all runs.
func compared(runs []*Run, names []string) []chart {
	steps := slices.ContainsFunc(runs, (*Run).bySteps)
	unit := runs[0].unit
	if !same(runs, func(r *Run) string { return r.unit }) {
		unit = ""
	}
	var charts []chart
	add := func(title string, has func(r *Run) bool, value func(r *Run, i int) float64) {
		c := chart{Title: title, Label: axis(steps)}
		for n, r := range runs {
			var some []int // empty if the run has no such curve; an empty series keeps the colours of the others
			if has(r) {
				some = thinned(len(r.History), mostPoints, r.best())
			}
			c.Series = append(c.Series, r.values(some, steps, names[n], func(i int) float64 { return value(r, i) }))
		}
		if c.Log = wide(c.Series) && strings.Contains(title, "loss"); slices.ContainsFunc(runs, has) {
			charts = append(charts, c)
		}
	}
	always := func(*Run) bool { return true }
	validated := func(r *Run) bool { return r.History[0].Validated }
	add("Validation loss"+unit, validated, func(r *Run, i int) float64 { return r.History[i].ValLoss })
	add("Training loss"+unit, always, func(r *Run, i int) float64 { return r.History[i].TrainLoss })
	var shared []string
	for _, r := range runs {
		shared = append(shared, metrics(r.History)...)
	}
	slices.Sort(shared)
	for _, m := range slices.Compact(shared) {
		for _, split := range [][2]string{{"val_", "Validation "}, {"train_", "Training "}} {
			name := split[0] + m
			add(split[1]+spoken(m), func(r *Run) bool { _, ok := r.History[0].Metrics[name]; return ok }, func(r *Run, i int) float64 { return metric(r.History, name)(i) })
		}
	}
	add("Learning rate", always, func(r *Run, i int) float64 { return r.History[i].LearningRate })
	add("Time per step, ms", func(r *Run) bool { return slices.ContainsFunc(r.stepSeconds, func(s float64) bool { return s > 0 }) }, (*Run).stepTime)
	return charts
}

// same reports whether all runs have the same value.
func same(runs []*Run, value func(r *Run) string) bool {
	return !slices.ContainsFunc(runs, func(r *Run) bool { return value(r) != value(runs[0]) })
}

// comparable reports whether the runs learned the same task in the same units.
func comparable(runs []*Run) bool {
	return same(runs, func(r *Run) string { return r.task + r.units })
}

// Value returns a value of the run's answers: train_loss, val_loss or a metric. It returns NaN if the
// check doesn't have it.
func (r *Run) Value(name string) float64 {
	best := r.answers()
	metric, ok := best.Metrics[name]
	switch {
	case name == "train_loss":
		return best.TrainLoss
	case strings.HasPrefix(name, "val_") && !best.Validated:
	case name == "val_loss":
		return best.ValLoss
	case ok:
		return metric
	}
	return math.NaN()
}

// Interval returns the 95 % confidence interval of a value of the run's answers. It returns zeros if it is unknown:
// only a finished run has one, of the score.
func (r *Run) Interval(name string) [2]float64 {
	if name != "val_"+r.scoreName() {
		return [2]float64{}
	}
	return r.interval
}

// criterion returns the name of the value that says which run is the best, and whether lower is better. It is the value
// that all runs monitored, unless that is a loss. Otherwise it is the score of the task.
func criterion(runs []*Run) (name string, lower bool) {
	s := runs[0].Config.Stopping
	if s.Monitor != "" && !strings.HasSuffix(s.Monitor, "loss") && same(runs, func(r *Run) string { return r.Config.Stopping.Monitor }) {
		return s.Monitor, s.Mode != "max"
	}
	return "val_" + runs[0].scoreName(), runs[0].kind.Score.Lower
}

// Sorted returns the runs with the best first, and the name of the value that decides, such as val_accuracy: the value
// that all runs monitored or, if that is a loss, the score of the task. Of equal runs, the one with the lowest
// validation loss comes first. Runs without these values come last. If the runs learned different tasks or, for answers
// of several units, in different units, Sorted doesn't change their order, and the name is empty.
func Sorted(runs []*Run) (best []*Run, name string) {
	if len(runs) == 0 || !comparable(runs) {
		return runs, ""
	}
	name, lower := criterion(runs)
	key := func(r *Run, name string, lower bool) float64 { // NaN comes last
		x := r.Value(name)
		if !lower {
			x = -x
		}
		if math.IsNaN(x) {
			x = math.Inf(1)
		}
		return x
	}
	return slices.SortedStableFunc(slices.Values(runs), func(a, b *Run) int {
		return cmp.Or(cmp.Compare(key(a, name, lower), key(b, name, lower)), cmp.Compare(key(a, "val_loss", true), key(b, "val_loss", true)))
	}), name
}

// scores returns a table with a row for each run. It highlights the best losses and scores, if the runs are comparable.
// Other columns that would have the same cell for all runs are in shared instead.
func scores(runs []*Run, names []string) (t table, shared []row) {
	type result struct { // a column of values
		title string
		name  func(r *Run) string // name of the value
		lower bool                // whether lower values are better
	}
	named := func(name string) func(*Run) string { return func(*Run) string { return name } }
	score := "score"
	if same(runs, (*Run).scoreName) {
		score = spoken(runs[0].scoreName())
	}
	results := []result{
		{"validation loss", named("val_loss"), true},
		{"validation " + score, func(r *Run) string { return "val_" + r.scoreName() }, runs[0].kind.Score.Lower},
		{"training loss", named("train_loss"), true},
	}
	if name, lower := criterion(runs); name != "val_"+runs[0].scoreName() {
		title := strings.NewReplacer("train ", "training ", "val ", "validation ").Replace(spoken(name))
		results = slices.Insert(results, 0, result{title, named(name), lower})
	}
	t = table{Columns: []string{"run"}, Best: -1}
	for _, name := range names {
		t.Rows = append(t.Rows, []string{name})
	}
	add := func(title string, cell func(r *Run) string) {
		t.Columns = append(t.Columns, title)
		for i, r := range runs {
			t.Rows[i] = append(t.Rows[i], cell(r))
		}
	}
	smoothed := !same(runs, func(r *Run) string { return r.note }) // label smoothing makes training losses higher
	for _, c := range results {
		if comparable(runs) && !(smoothed && c.title == "training loss") {
			var values []float64
			for _, r := range runs {
				values = append(values, r.Value(c.name(r)))
			}
			t.mark(len(t.Columns), values, c.lower)
		}
		add(c.title, func(r *Run) string { return r.cell(c.name(r)) })
	}
	for _, c := range []struct {
		title string
		cell  func(r *Run) string
	}{
		{"weights from", (*Run).source},
		{"epochs", func(r *Run) string { return fmt.Sprint(r.History[len(r.History)-1].Epoch + 1) }},
		{"last training took", func(r *Run) string { return positive(r.Seconds, text.Seconds(r.Seconds)) }},
		{"task", func(r *Run) string { return cmp.Or(r.task, "–") }},
		{"seed", func(r *Run) string { return cmp.Or(r.seed, "–") }},
		{"parameters", func(r *Run) string { return positive(float64(r.Params), fmt.Sprint(r.Params)) }},
		{"stopped because", (*Run).stopped},
	} {
		if value := c.cell(runs[0]); len(runs) > 1 && same(runs, c.cell) {
			shared = append(shared, row{c.title, value})
		} else {
			add(c.title, c.cell)
		}
	}
	return t, shared
}

// source says what answers.
func (r *Run) source() string {
	when := r.when(r.History[r.best()])
	switch {
	case r.linear == nil || *r.linear == 0:
		return when
	case r.onlyLinear():
		return "linear model"
	}
	return when + " and linear model"
}

// cell returns the text for a value of the run's answers.
func (r *Run) cell(name string) string {
	switch x := r.Value(name); {
	case math.IsNaN(x):
		return "–"
	case name == "val_"+r.scoreName():
		score, _ := r.scored(r.answers())
		if within := intervalText(r.Interval(name), r.kind.Score.Share); within != "" {
			score += " (" + within + ")"
		}
		return score
	default:
		return short(x)
	}
}

// stopped returns the reason why training stopped.
func (r *Run) stopped() string {
	if r.Unfinished {
		return "not finished"
	}
	return r.StoppedBecause
}

// positive returns s if x is above 0, and otherwise a dash: the number isn't known.
func positive(x float64, s string) string {
	if x > 0 {
		return s
	}
	return "–"
}

// differences returns the settings that differ between runs, in their order.
func differences(runs []*Run) ([]difference, error) {
	var order []string
	values := make([]map[string]string, len(runs))
	for i, r := range runs {
		settings, err := r.settings()
		if err != nil {
			return nil, err
		}
		values[i] = map[string]string{}
		for j, s := range settings {
			values[i][s.Name] = s.Value
			if !slices.Contains(order, s.Name) {
				order = slices.Insert(order, min(j, len(order)), s.Name)
			}
		}
	}
	var found []difference
	for _, name := range order {
		d := difference{Name: words(name, name)}
		differs := false
		for i := range runs {
			value, ok := values[i][name]
			if !ok {
				value = "–"
			}
			d.Values = append(d.Values, value)
			differs = differs || value != d.Values[0]
		}
		if differs && name != "task.about" {
			found = append(found, d)
		}
	}
	return found, nil
}
