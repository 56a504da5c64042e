package judge

import (
	"fmt"
	"io"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/score"
)

// extracts judges answers that are parts of their sources. In training, windows are counted.
type extracts struct{ exact }

const questions = "questions"

func (extracts) metrics(*model.Config) []metrics.Metric {
	return []metrics.Metric{{Name: "span_accuracy", About: "share of windows in which the likeliest first and last token of an answer are right", Share: true}}
}

// judge makes the references texts, and compares the answer with them.
func (extracts) judge(_ *model.Model, r *Report, j *Judged) {
	j.References, _ = data.AnswersOf(j.References[0])
	j.Right, _ = r.Extracts.Add(j.Answer.Text, j.References...)
	if j.Right {
		r.Right++
	} else {
		j.Edits = 1
	}
	if j.References == nil {
		j.References = []string{""}
	}
}

func (extracts) values(r *Report) map[string]float64 {
	return defined(map[string]float64{"exact_match": r.Extracts.ExactMatch(), "f1": r.Extracts.F1()})
}

func (extracts) scores(r *Report, s *Scores) {
	s.Score, s.Unit, s.F1 = "exact_match", questions, finite(r.Extracts.F1())
	s.share(r.Right, len(r.Judged))
}

func (extracts) write(r *Report, w io.Writer) {
	e := &r.Extracts
	fmt.Fprintf(w, "Exact match: %.4f (%d of %s%s)\nF1: %.4f\n", e.ExactMatch(), e.Exact, text.Count(e.N, "question"), intervalText(r.Interval(), ""), e.F1())
	var without score.Extracts // questions without an answer
	for _, j := range r.Judged {
		if j.References[0] == "" {
			without.Add(j.Answer.Text)
		}
	}
	if without.N > 0 {
		fmt.Fprintf(w, "Without an answer: %.4f (%d of %s)\n", without.ExactMatch(), without.Exact, text.Count(without.N, "question"))
	}
}

// details also returns the F1 score.
func (k extracts) details(j Judged) (names, values []string) {
	names, values = k.exact.details(j)
	_, f1 := new(score.Extracts).Add(j.Answer.Text, j.References...)
	return slices.Replace(names, 1, 2, "f1"), slices.Replace(values, 1, 2, fmt.Sprintf("%.4f", f1))
}
