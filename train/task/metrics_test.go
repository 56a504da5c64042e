package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train"
)

// someEntities returns 200 rows of tokens and tags. Every third name is a place.
func someEntities() string {
	var s strings.Builder
	for i := range 200 {
		name := []string{"ann", "bob", "rome"}[i%3]
		kind := []string{"PER", "PER", "LOC"}[i%3]
		fmt.Fprintf(&s, "%s saw %s lee %d\tB-%s O B-PER I-PER O\n", name, []string{"ann", "bob", "eve", "dan"}[i%4], i%7, kind)
	}
	return s.String()
}

// someLabels returns 200 rows whose labels can be guessed only in part.
func someLabels() string {
	var s strings.Builder
	for i := range 200 {
		fmt.Fprintf(&s, "row %d %d\t%s\n", i%7, i%40, []string{"low", "high", "none"}[min(i%7/3+i%5/4, 2)])
	}
	return s.String()
}

// Each kind has its metrics, which agree with the scores of Judge. All of them may be monitored, and nothing else.
func TestMetrics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		kind  data.Kind
		rows  string
		want  []string
		judge func(r *Report) float64 // value of the last metric
	}{
		{"labels", data.KindClassification, someLabels(), []string{"accuracy", "macro_f1"}, func(r *Report) float64 { return r.Classes.Macro().F1 }},
		{"entities", data.KindTagging, someEntities(), []string{"accuracy", "entity_f1"}, func(r *Report) float64 { return r.Entities.Total().F1 }},
		{"tags", data.KindTagging, someRows(data.KindTagging), []string{"accuracy"}, func(r *Report) float64 { return r.Classes.Accuracy() }},
		{"seq2seq", data.KindSeq2Seq, someRows(data.KindSeq2Seq), []string{"accuracy"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := ofRows(t, c.kind, c.rows)
			task.Config.Training.Optimizer.LearningRate = 0.002 // so that some answers are wrong
			r, err := train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"train_loss", "val_loss"}
			for _, name := range c.want {
				want = append(want, "train_"+name, "val_"+name)
			}
			got := slices.Collect(maps.Keys(r.Best.Metrics))
			if got = append(got, "train_loss", "val_loss"); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("the history has %v, want %v", got, want)
			}
			if got := monitored(&task.Config).Names(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("monitored are %v, want %v", got, want)
			}
			if c.judge == nil {
				return
			}
			name := "val_" + c.want[len(c.want)-1]
			judged := judged(t, task, task.Examples(), PredictOptions{})
			if got, want := r.Best.Metrics[name], c.judge(judged); max(got-want, want-got) > 1e-12 || want == 0 || want == 1 {
				t.Errorf("%s is %v, want %v as in Judge, and neither 0 nor 1", name, got, want)
			}
			if judged.HasEntities() != (c.name == "entities") || judged.HasEntities() != strings.Contains(judged.String(), "\nEntity F1: ") {
				t.Errorf("HasEntities returns %v, and the report is\n%s", judged.HasEntities(), judged)
			}
			for _, monitor := range []string{"val_macro_f1", "val_entity_f1"} { // New knows the tags
				config := task.Config
				config.Training.Stopping.Monitor, config.Training.Stopping.Mode = monitor, "max"
				err := config.check(true)
				if known := slices.Contains(want, monitor); (err == nil) != known {
					t.Errorf("monitor %s: got error %v, want one: %v", monitor, err, !known)
				} else if want := fmt.Sprintf("%s must be one of train_loss, train_accuracy, ", setting.Path("training.stopping.monitor")); err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("monitor %s: got error %v, want %s", monitor, err, want)
				}
			}
		})
	}
}
