package judge

import (
	"fmt"
	"io"
	"maps"
	"strconv"

	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// numbers judges answers that are numbers.
type numbers struct{ classes }

func (numbers) metrics(*model.Config) []metrics.Metric {
	return []metrics.Metric{
		{Name: "r2", About: "share of the numbers' variance that the model explains, R²"},
		{Name: "mean_absolute_error", About: "mean absolute error of the numbers", Lower: true},
	}
}

func (numbers) values(r *Report) map[string]float64 {
	return defined(map[string]float64{"r2": r.Numbers.RSquared(), "mean_absolute_error": r.Numbers.MeanAbsoluteError()})
}

// judge adds the distance of an answer to its reference.
func (numbers) judge(_ *model.Model, r *Report, j *Judged) {
	reference, err := text.Number(j.References[0])
	switch {
	case err != nil:
		r.UnknownReferences++
	case j.Answer.Number != nil:
		r.Numbers.Add(*j.Answer.Number, reference)
	}
}

func (numbers) scores(r *Report, s *Scores) {
	n := &r.Numbers
	s.Value, s.Total = finite(n.RSquared()), len(r.Judged)
	s.MeanAbsoluteError, s.Pearson, s.Spearman = finite(n.MeanAbsoluteError()), finite(n.Pearson()), finite(n.Spearman())
}

func (numbers) write(r *Report, w io.Writer) {
	n := &r.Numbers
	if x, rows := n.RSquared(), text.Count(len(r.Judged), "row"); x == x {
		fmt.Fprintf(w, "R²: %.4f (%s%s)\n", x, rows, intervalText(r.Interval(), ""))
	} else {
		fmt.Fprintf(w, "R²: none, because it needs two numbers (%s)\n", rows)
	}
	fmt.Fprintf(w, "Mean absolute error: %.6g\n", n.MeanAbsoluteError())
	if p := n.Pearson(); p == p {
		fmt.Fprintf(w, "Correlation: Pearson %.4f, Spearman %.4f\n", p, n.Spearman())
	} else {
		fmt.Fprintln(w, "Correlation: none, because all answers or all numbers are equal")
	}
}

// details returns the answer's error: the answer minus the reference.
func (numbers) details(j Judged) (names, values []string) {
	mistake := ""
	if j.Answer.Number != nil {
		if reference, err := text.Number(j.References[0]); err == nil {
			mistake = strconv.FormatFloat(*j.Answer.Number-reference, 'g', 6, 64)
		}
	}
	return []string{"error"}, []string{mistake}
}

// defined deletes the values that aren't finite, such as correlations with equal numbers, which aren't defined.
func defined(values map[string]float64) map[string]float64 {
	maps.DeleteFunc(values, func(_ string, x float64) bool { return finite(x) == nil })
	return values
}
