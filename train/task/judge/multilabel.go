package judge

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/score"
)

// several judges answers with any number of labels.
type several struct{ classes }

func (several) metrics(*model.Config) []metrics.Metric {
	return []metrics.Metric{
		{Name: "micro_f1", About: "F1 score of all labels of all rows together"},
		{Name: "macro_f1", About: "mean F1 score of the labels"},
		{Name: "average_precision", About: "average precision of all labels together, whatever their thresholds are"},
		{Name: "subset_accuracy", About: "share of rows with exactly the right labels"},
	}
}

func (several) values(r *Report) map[string]float64 {
	micro, _ := r.Labels.AveragePrecision()
	return defined(map[string]float64{
		"micro_f1": r.Labels.Micro().F1, "macro_f1": r.Labels.Macro().F1, "average_precision": micro,
		"subset_accuracy": float64(r.Right) / float64(len(r.Judged)),
	})
}

// judge counts right and wrong labels. It drops the scores of the answer, which would need much memory.
func (several) judge(m *model.Model, r *Report, j *Judged) {
	right, edits := m.Config.Task.Labels(j.References[0]), 0
	j.References = []string{strings.Join(right, m.Config.Task.Separator)}
	if slices.ContainsFunc(right, func(label string) bool { return !slices.Contains(m.Config.Task.Classes, label) }) {
		r.UnknownReferences++
	}
	r.Labels.Add(j.Answer.Labels, right)
	for _, s := range j.Answer.Scores {
		r.Labels.AddScore(s.Label, s.Score, slices.Contains(right, s.Label))
	}
	for _, label := range right {
		if !slices.Contains(j.Answer.Labels, label) {
			edits++
		}
	}
	j.labels = len(right) + len(j.Answer.Labels)
	j.Edits, j.Answer.Scores = 2*edits+len(j.Answer.Labels)-len(right), nil
	if j.Right = j.Edits == 0 && j.Answer.Err == nil; j.Right {
		r.Right++
	}
}

func (several) scores(r *Report, s *Scores) {
	micro, macro := r.Labels.Micro(), r.Labels.Macro()
	s.Micro, s.Macro, s.Classes, s.Value, s.Total, s.RightRows = &micro, &macro, r.Labels.Classes(), &micro.F1, len(r.Judged), &r.Right
	together, mean := r.Labels.AveragePrecision()
	s.AveragePrecision, s.MacroAveragePrecision = finite(together), finite(mean)
	s.SubsetAccuracy = new(float64(r.Right) / float64(len(r.Judged)))
}

func (several) write(r *Report, w io.Writer) {
	n, micro, macro := len(r.Judged), r.Labels.Micro(), r.Labels.Macro()
	fmt.Fprintf(w, "Micro F1: %.4f (%d right of %d labels answered and %d in the rows%s)\n", micro.F1, micro.Right, micro.Answers, micro.Rows, intervalText(r.Interval(), ""))
	fmt.Fprintf(w, "Macro F1: %.4f\n", macro.F1)
	if together, mean := r.Labels.AveragePrecision(); together == together {
		fmt.Fprintf(w, "Average precision: %.4f, and %.4f as the mean of the labels\n", together, mean)
	}
	fmt.Fprintf(w, "Subset accuracy: %.4f (%d of %d rows with exactly the right labels)\n", float64(r.Right)/float64(n), r.Right, n)
	scores := r.Labels.Classes()
	macro.Class = fmt.Sprintf("mean of %d", len(scores))
	slices.SortStableFunc(scores, func(a, b score.ClassScore) int { return cmp.Compare(b.Rows, a.Rows) })
	writeScores(w, append(scores[:min(len(scores), mostClasses)], macro))
}

func (several) interval(r *Report) [2]float64 {
	return bootstrap(len(r.Judged), func(rows []int) float64 {
		wrong, total := 0.0, 0.0 // labels of answers and of references
		for _, i := range rows {
			j := &r.Judged[i]
			wrong, total = wrong+float64(j.Edits), total+float64(j.labels)
		}
		return 1 - wrong/total
	})
}
