package judge

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/oov"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/score"
)

// accuracy is the metric that classifiers have.
var accuracy = metrics.Metric{Name: "accuracy", About: "share of right answers", Share: true}

// classes judges answers that are right or wrong, once or at every position.
type classes struct{}

func (classes) metrics(*model.Config) []metrics.Metric { return []metrics.Metric{accuracy} }

func (classes) values(r *Report) map[string]float64 {
	return map[string]float64{"accuracy": r.Classes.Accuracy(), "macro_f1": r.Classes.Macro().F1}
}

// judge counts right and wrong answers per class.
func (classes) judge(m *model.Model, r *Report, j *Judged) {
	answer, references := r.compare(m, j)
	r.countClasses(j, answer, references[0])
}

func (classes) scores(r *Report, s *Scores) {
	macro := r.Classes.Macro()
	s.share(macro.Right, macro.Rows)
	s.Macro, s.Classes = &macro, r.Classes.Classes()
}

// details returns whether the answer is right, its edits and its log probability.
func (classes) details(j Judged) (names, values []string) {
	logProb := ""
	if j.Answer.Err == nil {
		logProb = fmt.Sprintf("%.4f", math.Round(1e4*j.Answer.LogProb)/1e4+0) // never -0.0000
	}
	return []string{"right", "edits", "log_prob"}, []string{strconv.FormatBool(j.Right), strconv.Itoa(j.Edits), logProb}
}

// mostClasses is the greatest number of classes that String shows.
const mostClasses = 20

// write writes the accuracy of labels or tags, a table of scores per class, and a table of how often each class
// was answered for each right class. If there are many classes, the tables have only the commonest.
func (classes) write(r *Report, w io.Writer) {
	scores := r.Classes.Classes()
	shown := slices.Clone(scores)
	slices.SortStableFunc(shown, func(a, b score.ClassScore) int { return cmp.Compare(b.Rows, a.Rows) })
	shown = shown[:min(len(shown), mostClasses)]
	mean := r.Classes.Macro()
	fmt.Fprintf(w, "Accuracy: %.4f (%d of %d %s right%s)\n", r.Classes.Accuracy(), mean.Right, mean.Rows, r.kind.Unit, intervalText(r.Interval(), ""))
	mean.Class = fmt.Sprintf("mean of %d", len(scores))
	writeScores(w, append(slices.Clone(shown), mean))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "right ↓, answered →\t")
	for i := range shown {
		fmt.Fprintf(t, "%d\t", i+1)
	}
	fmt.Fprintln(t)
	for i, right := range shown {
		fmt.Fprintf(t, "%s %d\t", text.Label(right.Class), i+1)
		for _, answered := range shown {
			fmt.Fprintf(t, "%d\t", r.Classes.Count(answered.Class, right.Class))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// writeScores writes a table of scores.
func writeScores(w io.Writer, scores []score.ClassScore) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tprecision\trecall\tF1\tright\tanswered\ttotal\t")
	for _, c := range scores {
		fmt.Fprintf(t, "%s\t%.4f\t%.4f\t%.4f\t%d\t%d\t%d\t\n", text.Label(c.Class), c.Precision, c.Recall, c.F1, c.Right, c.Answers, c.Rows)
	}
	t.Flush()
}

// compare says whether an answer equals one of its references and adds this to the report. It returns the answer and
// the references, split into symbols.
func (r *Report) compare(m *model.Model, j *Judged) (answer []string, references [][]string) {
	answer = []string{}
	if j.Answer.Err == nil {
		answer = r.symbols(j.Answer.Text)
	}
	for _, right := range j.References {
		known := m.Config.Task.Classes == nil || slices.Contains(m.Config.Task.Classes, right)
		if r.Units != "" {
			_, target := m.Coder.Tokenizers()
			n, some, _ := oov.Count(target, right)
			unknown := some > 0
			if known = !unknown; m.Config.Task.MaxAnswer > 0 && n > m.Config.Task.MaxAnswer {
				r.LongReferences++
			}
		}
		if !known {
			r.UnknownReferences++
		}
		reference := r.symbols(right)
		references = append(references, reference)
		j.Right = j.Right || known && slices.Equal(answer, reference)
	}
	if j.Right {
		r.Right++
	}
	return answer, references
}

// countClasses counts the symbols of an answer per class, and sets the answer's edits.
func (r *Report) countClasses(j *Judged, answer, reference []string) {
	for i, symbol := range reference {
		got := ""
		if i < len(answer) {
			got = answer[i]
		}
		if r.Classes.Add(got, symbol); got != symbol {
			j.Edits++
		}
	}
}

// symbols splits an answer into the units that are counted. A label is one unit.
func (r *Report) symbols(answer string) []string {
	switch {
	case r.Units == "":
		return []string{answer}
	case r.Units == tokenizer.Characters:
		return strings.Split(answer, "")
	}
	return strings.Fields(answer)
}
