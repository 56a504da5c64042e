package judge

import (
	"fmt"
	"io"

	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// exact judges answers that are texts: an answer is right if it equals a reference.
type exact struct{ classes }

func (exact) metrics(*model.Config) []metrics.Metric {
	return []metrics.Metric{{Name: "exact_match", About: "share of answers that are exactly right", Share: true}}
}

func (exact) values(r *Report) map[string]float64 {
	return map[string]float64{"exact_match": float64(r.Right) / float64(len(r.Judged))}
}

func (exact) judge(m *model.Model, r *Report, j *Judged) {
	if r.compare(m, j); !j.Right {
		j.Edits = 1
	}
}

func (exact) scores(r *Report, s *Scores) { s.share(r.Right, len(r.Judged)) }

func (exact) write(r *Report, w io.Writer) {
	n := len(r.Judged)
	fmt.Fprintf(w, "Exact: %.4f (%d of %s answered with one of their references%s)\n", float64(r.Right)/float64(n), r.Right, text.Count(n, "source"), intervalText(r.Interval(), ""))
}
