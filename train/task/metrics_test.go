package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/score"
	"github.com/heed-go/heed/train/task/judge"
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
			r := must.Get(train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: 1}))(t)
			want := []string{"train_loss", "val_loss"}
			for _, name := range c.want {
				want = append(want, "train_"+name, "val_"+name)
			}
			got := slices.Collect(maps.Keys(r.Best.Metrics))
			if got = append(got, "train_loss", "val_loss"); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("the history has %v, want %v", got, want)
			}
			if got := monitored(&task.Config, judge.KindOf(&task.Config.Config).Metrics).Names(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
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
				err := config.check(task.kind, true)
				if known := slices.Contains(want, monitor); (err == nil) != known {
					t.Errorf("monitor %s: got error %v, want one: %v", monitor, err, !known)
				} else if want := fmt.Sprintf("%s must be one of train_loss, train_accuracy, ", setting.Path("training.stopping.monitor")); err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("monitor %s: got error %v, want %s", monitor, err, want)
				}
			}
		})
	}
}

// A label's metrics are computed if one of them is monitored, and agree with Judge. Higher is better.
func TestMetricsOfLabel(t *testing.T) {
	t.Parallel()
	c := rowsConfig(t, data.KindClassification, someLabels())
	c.Training.Stopping.Monitor = "val_average_precision[low]"
	task := made(t, c)
	if mode := task.Config.Training.Stopping.Mode; mode != "max" {
		t.Errorf("the Mode is %q, want max", mode)
	}
	task.Config.Training.Optimizer.LearningRate = 0.002 // so that some answers are wrong
	var log strings.Builder
	r := must.Get(train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: 1, Log: &log}))(t)
	classes := judged(t, task, task.Examples(), PredictOptions{}).Classes.Classes()
	want := classes[slices.IndexFunc(classes, func(s score.ClassScore) bool { return s.Class == "low" })]
	for name, value := range map[string]float64{"precision": want.Precision, "recall": want.Recall, "f1": want.F1} {
		if got := r.Best.Metrics["val_"+name+"[low]"]; max(got-value, value-got) > 1e-12 || value == 0 || value == 1 {
			t.Errorf("%s is %v, want %v as in Judge, and neither 0 nor 1", name, got, value)
		}
	}
	average := r.Best.Metrics["val_average_precision[low]"]
	for _, check := range r.History {
		if other := check.Metrics["val_average_precision[low]"]; other > average || other == 0 {
			t.Errorf("the average precision was %v and %v is kept, want the highest", other, average)
		}
	}
	label, share, known := task.MostFrequent("average_precision[low]")
	if got := task.score(r.Best.ValLoss, r.Best.Metrics).String(); label != "high" || !known || share >= average ||
		!strings.HasSuffix(got, fmt.Sprintf(" labels right; 95 %% interval 0.433 to 0.819), average precision of low %.4f; always answering high: accuracy 0.4000, average precision of low %.4f", average, share)) {
		t.Errorf("the score is %s, and %q has %v, %v", got, label, share, known)
	}
	for metric, want := range map[string]float64{"recall[high]": 1, "recall[low]": 0, "precision[high]": 0.4, "f1[high]": 4. / 7, "macro_f1": 4. / 21} {
		if _, got, known := task.MostFrequent(metric); !known || max(got-want, want-got) > 1e-12 {
			t.Errorf("with always the most frequent label, %s is %v, want %v", metric, got, want)
		}
	}
	if len(r.Best.Metrics) != 12 || !strings.Contains(log.String(), "; average_precision[low]: Train=0.") {
		t.Errorf("the history has %v, want accuracy, macro_f1 and four metrics of the label. The log is\n%s", r.Best.Metrics, &log)
	}
	for monitor, want := range map[string]string{
		"val_recall[higg]":        `"val_recall[higg]" must name a label of the file, got "higg"; did you mean high?`,
		"val_recal[high]":         "did you mean val_recall[high]?",
		"val_recall":              "f1, average_precision, each like val_precision[LABEL], got \"val_recall\"",
		"valid_recall[high]":      "must be one of train_loss, train_accuracy, ",
		"val_accuracy[high]":      "must be one of train_loss, train_accuracy, ",
		"train_precision[a [b]]]": `must name a label of the file, got "a [b]]"`,
	} {
		c.Training.Stopping.Monitor = monitor
		must.Refuse(New(c))(t, want)
	}
	c.Training.Stopping.Monitor, c.Data.Validation = "val_recall[high]", 0
	must.Refuse(New(c))(t, "must be one of train_loss, train_accuracy, train_macro_f1, or")
	c = rowsConfig(t, data.KindTagging, someEntities())
	c.Training.Stopping.Monitor = "val_recall[O]"
	must.Refuse(New(c))(t, "must be one of train_loss")
}

// An empty Mode becomes the direction in which the monitored metric improves.
func TestDirection(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind                data.Kind
		monitor, mode, want string
	}{
		{data.KindClassification, "train_accuracy", "", "max"},
		{data.KindClassification, "val_macro_f1", "min", "min"},
		{data.KindRegression, "val_mean_absolute_error", "", "min"},
		{data.KindRegression, "val_r2", "", "max"},
		{data.KindRegression, "val_loss", "", ""},
	} {
		c := forRows(t, test.kind, strings.Repeat("a\t1\nb\t2\nc\t1\n", 20))
		c.Training.Stopping.Monitor, c.Training.Stopping.Mode = test.monitor, test.mode
		if got := made(t, c).Config.Training.Stopping.Mode; got != test.want {
			t.Errorf("%s %q: the Mode is %q, want %q", test.monitor, test.mode, got, test.want)
		}
	}
}
