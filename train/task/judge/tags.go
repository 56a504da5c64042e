package judge

import (
	"fmt"
	"io"

	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/train/model"
)

// tags judges tags, one for each symbol of a source.
type tags struct{ classes }

func (tags) metrics(c *model.Config) []metrics.Metric {
	if !c.FromRows() || c.Task.Target != nil && c.EntityTags() == nil {
		return []metrics.Metric{accuracy}
	}
	return []metrics.Metric{accuracy, {Name: "entity_f1", About: "F1 score of entities in the tags of a file, such as B-PER and I-PER"}}
}

func (tags) values(r *Report) map[string]float64 {
	values := map[string]float64{"accuracy": r.Classes.Accuracy()}
	if r.HasEntities() {
		values["entity_f1"] = r.Entities.Total().F1
	}
	return values
}

// judge also counts entities.
func (tags) judge(m *model.Model, r *Report, j *Judged) {
	answer, references := r.compare(m, j)
	r.countClasses(j, answer, references[0])
	r.Entities.Add(answer, references[0])
	if j.Answer.Spans != nil {
		j.Spans = m.SpansOf(j.Source, references[0])
	}
}

func (tags) scores(r *Report, s *Scores) {
	classes{}.scores(r, s)
	s.RightRows = &r.Right
	if r.HasEntities() {
		s.Entities, s.Types = new(r.Entities.Total()), r.Entities.Types()
	}
}

func (tags) write(r *Report, w io.Writer) {
	n := len(r.Judged)
	fmt.Fprintf(w, "Rows: %.4f (%d of %d rows with every tag right)\n", float64(r.Right)/float64(n), r.Right, n)
	classes{}.write(r, w)
	if !r.HasEntities() {
		return
	}
	total := r.Entities.Total()
	fmt.Fprintf(w, "Entity F1: %.4f (%d right of %d answered and %d in the rows)\n", total.F1, total.Right, total.Answers, total.Rows)
	types := r.Entities.Types()
	total.Class = "all"
	writeScores(w, append(types[:min(len(types), mostClasses)], total))
}
