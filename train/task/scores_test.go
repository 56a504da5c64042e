package task

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task/judge"
)

// The scores of every kind of rows have the keys of the kind, and agree with the Score and the Report.
func TestScores(t *testing.T) {
	t.Parallel()
	always := []string{"beyond", "interval", "kind", "loss", "rows", "score", "task", "total", "unit", "value"}
	for kind, more := range map[data.Kind][]string{
		data.KindSeq2Seq:        {"right", "error_rate", "edits", "chrf", "bleu"},
		data.KindClassification: {"baseline", "right", "macro", "classes"},
		data.KindTagging:        {"baseline", "right", "macro", "classes", "right_rows"},
		data.KindRegression:     {"baseline", "mean_absolute_error", "pearson", "spearman"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			rows := someRows(kind)
			if kind == data.KindRegression {
				rows = ""
				for i := range 200 {
					rows += fmt.Sprintf("%c %c\t%d\n", 'a'+i%4, 'a'+i%5, i%20)
				}
			}
			task := ofRows(t, kind, rows)
			run(t, task, filepath.Join(t.TempDir(), "run"), train.RunOptions{})
			s := must.Get(task.Evaluate(t.Context()))(t)
			r := judged(t, task, task.Examples(), PredictOptions{})
			got := judge.ScoresOf(task.Model, &s, r)
			if want := slices.Sorted(slices.Values(append(more, always...))); !slices.Equal(must.Keys(t, got), want) {
				t.Errorf("the keys are %q, want %q", must.Keys(t, got), want)
			}
			if *got.Loss != s.Loss || got.Score != s.Name || got.Rows != len(r.Judged) || *got.Beyond != r.Beyond {
				t.Errorf("got %+v, want the loss and the name of %+v, and the counts of a report of %d rows", got, s, len(r.Judged))
			}
			if got.Right != nil && *got.Value != float64(*got.Right)/float64(got.Total) {
				t.Errorf("the value is %g, want %d of %d", *got.Value, *got.Right, got.Total)
			}
			if alone := judge.ScoresOf(task.Model, &s, nil); *alone.Value != s.Value || alone.Total != s.Total || alone.Beyond != nil {
				t.Errorf("without a report, got %+v, want the values of %+v", alone, s)
			}
		})
	}
}
