package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/text"
)

// comparison is what the template of several runs shows.
type comparison struct {
	Names       []string
	Charts      []chart
	Scores      table
	Differences []difference
}

// A difference is a setting that isn't the same in all runs.
type difference struct {
	Name   string
	Values []string
}

// Compare writes a page that compares runs.
func Compare(w io.Writer, runs []*Run) error {
	v := comparison{Names: names(runs)}
	v.Charts = compared(runs, v.Names)
	v.Scores = scores(runs, v.Names)
	v.Differences = differences(runs)
	return write(w, "compare", fmt.Sprintf("%d runs", len(runs)), v)
}

// names returns what tells runs apart: the names of their folders or, where some are the same, all of their paths.
func names(runs []*Run) []string {
	short := make([]string, len(runs))
	whole := make([]string, len(runs))
	for i, r := range runs {
		short[i], whole[i] = name(r.Dir), text.EscapeExcept(r.Dir, "")
	}
	sorted := slices.Sorted(slices.Values(short))
	if len(slices.Compact(sorted)) < len(runs) {
		return whole
	}
	return short
}

// compared returns the curves of all runs, those of the same value in one chart.
func compared(runs []*Run, names []string) []chart {
	steps, label := slices.ContainsFunc(runs, func(r *Run) bool { return r.Config.Training.CheckEvery > 0 }), "epoch"
	if steps {
		label = "step"
	}
	var charts []chart
	add := func(title string, has func(r *Run) bool, value func(r *Run, i int) float64) {
		c := chart{Title: title, Label: label}
		for n, r := range runs {
			var at []int // none where there is no curve of a run, whose colour is the same in all charts
			if has(r) {
				at = r.thinned(mostPoints)
			}
			c.Series = append(c.Series, r.values(at, steps, names[n], func(i int) float64 { return value(r, i) }))
		}
		if c.Log = wide(c.Series) && strings.Contains(title, "loss"); slices.ContainsFunc(runs, has) {
			charts = append(charts, c)
		}
	}
	all := func(*Run) bool { return true }
	validated := func(r *Run) bool { return r.History[0].Validated }
	add("Validation loss, nats", validated, func(r *Run, i int) float64 { return r.History[i].ValLoss })
	add("Training loss, nats", all, func(r *Run, i int) float64 { return r.History[i].TrainLoss })
	var shared []string
	for _, r := range runs {
		shared = append(shared, metrics(r.History)...)
	}
	slices.Sort(shared)
	for _, m := range slices.Compact(shared) {
		for _, split := range []string{"val_", "train_"} {
			title := "Validation " + strings.ToLower(capital(m))
			if split == "train_" {
				title = "Training " + strings.ToLower(capital(m))
			}
			add(title, func(r *Run) bool { _, ok := r.History[0].Metrics[split+m]; return ok }, func(r *Run, i int) float64 { return metric(r.History, split+m)(i) })
		}
	}
	add("Learning rate", all, func(r *Run, i int) float64 { return r.History[i].LearningRate })
	add("Time a step, ms", func(r *Run) bool { return slices.Max(r.Seconds) > 0 }, (*Run).stepTime)
	return charts
}

// scores returns a row for each run.
func scores(runs []*Run, names []string) table {
	t := table{Columns: []string{"run", "task", "seed", "parameters", "epochs", "weights of", "training loss", "validation loss", "validation accuracy", "last training took", "stopped because"}, Best: -1}
	for n, r := range runs {
		h := r.History
		b := h[r.Best]
		row := []string{names[n], r.Config.Task.Name, fmt.Sprint(r.Config.Seed), "–", fmt.Sprint(h[len(h)-1].Epoch + 1), fmt.Sprintf("epoch %d", b.Epoch), short(b.TrainLoss), "–", "–", "–", "it isn't finished"}
		if r.Config.Training.CheckEvery > 0 {
			row[5] = fmt.Sprintf("step %d", b.Step)
		}
		if b.Validated {
			row[7] = short(b.ValLoss)
			if a, ok := b.Metrics["val_accuracy"]; ok {
				row[8] = percent(a)
			}
		}
		if s := r.Summary; s != nil {
			row[3], row[9], row[10] = fmt.Sprint(s.Params), text.Seconds(s.Seconds), s.Because
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// differences returns the settings that differ, in the order of config.json.
func differences(runs []*Run) []difference {
	var order []string
	of := make([]map[string]string, len(runs))
	for i, r := range runs {
		of[i] = map[string]string{}
		for j, s := range flat(r.Config) {
			of[i][s.Name] = s.Value
			if !slices.Contains(order, s.Name) {
				order = slices.Insert(order, min(j, len(order)), s.Name)
			}
		}
	}
	var found []difference
	for _, name := range order {
		d := difference{Name: strings.NewReplacer(".", " ", "_", " ").Replace(name)}
		differs := false
		for i := range runs {
			value, ok := of[i][name]
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
	return found
}
