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
	Differences []difference
}

// A difference is a setting that differs between runs.
type difference struct {
	Name   string
	Values []string
}

// Compare writes a page that compares runs. It has their scores, their curves in shared charts, and the settings that
// differ. It returns an error, and writes nothing, if there is no run, if a run has no check, or if JSON can't
// represent the Settings of a run.
func Compare(w io.Writer, runs []*Run) error {
	if len(runs) == 0 {
		return errors.New("report: Compare needs at least one run, got none")
	}
	found, err := differences(runs)
	if err != nil {
		return err
	}
	v := comparison{Names: names(runs), Differences: found}
	v.Charts = compared(runs, v.Names)
	v.Scores = scores(runs, v.Names)
	return write(w, "compare", fmt.Sprintf("%d runs", len(runs)), v)
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
				some = r.thinned(mostPoints)
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

// scores returns a table with a row for each run. It highlights the best losses and accuracies, if the runs learned the
// same task in the same units.
func scores(runs []*Run, names []string) table {
	score := "score"
	if same(runs, (*Run).scoreName) {
		score = spoken(runs[0].scoreName())
	}
	t := table{Columns: []string{"run", "validation loss", "validation " + score, "training loss", "weights from", "epochs", "last training took", "task", "seed", "parameters", "stopped because"}, Best: -1}
	columns := [3][]float64{} // the values of the columns after the first
	for n, r := range runs {
		h := r.History
		b := h[r.best()]
		values := [3]float64{math.NaN(), math.NaN(), b.TrainLoss}
		row := []string{names[n], "–", "–", short(b.TrainLoss), r.when(b), fmt.Sprint(h[len(h)-1].Epoch + 1), "–", cmp.Or(r.task, "–"), cmp.Or(r.seed, "–"), "–", "not finished"}
		if b.Validated {
			row[1], values[0] = short(b.ValLoss), b.ValLoss
			if text, ok := r.scored(b); ok {
				row[2], values[1] = text, b.Metrics["val_"+r.scoreName()]
			}
		}
		for i, v := range values {
			columns[i] = append(columns[i], v)
		}
		if r.Seconds > 0 {
			row[6] = text.Seconds(r.Seconds)
		}
		if r.Params > 0 {
			row[9] = fmt.Sprint(r.Params)
		}
		if !r.Unfinished {
			row[10] = r.StoppedBecause
		}
		t.Rows = append(t.Rows, row)
	}
	if same(runs, func(r *Run) string { return r.task + r.units }) {
		t.mark(1, columns[0], true)
		t.mark(2, columns[1], runs[0].kind.LowerIsBetter)
		if same(runs, func(r *Run) string { return r.note }) { // label smoothing makes training losses higher
			t.mark(3, columns[2], true)
		}
	}
	return t
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
