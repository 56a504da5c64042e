package task

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task/judge"
)

// wordPairs returns rows of two texts of two words each. The words of the second text follow from those of the first,
// and TF-IDF doesn't know how. The function more returns further columns.
func wordPairs(more func(i, j int) string) string {
	var s strings.Builder
	for i := range 12 {
		for j := range 12 {
			fmt.Fprintf(&s, "x%c y%c\tu%c w%c%s\n", 'a'+i, 'a'+j, 'a'+i, 'a'+j, more(i, j))
		}
	}
	return s.String()
}

func none(int, int) string { return "" }

// A model learns which texts belong together, and finds held-out ones. The score is that of all held-out rows together.
func TestEmbedPairs(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, negatives := range []bool{false, true} {
		more, header := none, "query\tpositive\n"
		if negatives {
			more, header = func(i, j int) string { return fmt.Sprintf("\tu%c w%c", 'a'+i, 'a'+(j+1)%12) }, "query\tpositive\tnegative\n"
		}
		c := withFile(t, "embed", "rows.tsv", header+wordPairs(more))
		c.Training.MaxEpochs, c.Training.Optimizer.LearningRate, c.Training.BatchSize, c.Data.Validation = 30, 6e-3, 32, 16
		task, dir := trained(t, c)
		if got := task.Config.Training.MicroBatches; got != 1 || task.Config.Task.Texts != len(strings.Fields(header)) {
			t.Errorf("there are %d micro-batches and %d texts in a row, want 1 and %d", got, task.Config.Task.Texts, len(strings.Fields(header)))
		}
		r := must.Get(ReadRun(dir))(t)
		if s := r.Summary; s.ScoreName != "mrr" || *s.ValScore < 0.8 || s.Baseline["mrr"] > 0.5 {
			t.Errorf("the score is %s %v and the baseline's %v, want an mrr above 0.8 and below 0.5", s.ScoreName, *s.ValScore, s.Baseline)
		}
		m := must.Get(Open(dir))(t)
		if sum := must.Get(m.Sum())(t); sum == "" || sum != must.Get(must.Get(Open(dir))(t).Sum())(t) {
			t.Errorf("the sum of the run is %q, and differs when it is opened again", sum)
		}
		examples, _, err := ReadExamples(m, c.Data.File)
		must.Do(t, err)
		report := judged(t, task, examples, PredictOptions{})
		if got := report.Ranking.Recall(10); got < 0.9 || !strings.Contains(report.String(), "recall@10") || !strings.Contains(report.String(), "Baseline: TF-IDF of words, mrr") {
			t.Errorf("of all rows, the recall@10 is %v, and the report is\n%s", got, report)
		}
		var answers strings.Builder
		if err := report.WriteAnswers(&answers, '\t'); err != nil || !strings.HasPrefix(answers.String(), "source\tanswer\trank\treference\n") {
			t.Errorf("the answers are %.100q, %v", answers.String(), err)
		}
	}
}

// A model learns the scores of two texts.
func TestEmbedScores(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	c := withFile(t, "embed", "rows.tsv", wordPairs(func(i, _ int) string { return fmt.Sprintf("\t%.2f", float64(i)/11) }))
	c.Training.MaxEpochs, c.Training.Optimizer.LearningRate, c.Data.Validation = 40, 3e-3, 16
	task, dir := trained(t, c)
	if rule := task.Config.Task; !rule.Scored || rule.Texts != 2 || judge.KindOf(&task.Config.Config).Score.Name != "r2" {
		t.Errorf("the rule is %+v, want scores", rule)
	}
	r, err := ReadRun(dir)
	if err != nil || r.Summary.ScoreName != "spearman" || *r.Summary.ValScore < 0.7 {
		t.Errorf("the summary is %+v, %v, want a Spearman correlation above 0.7", r.Summary, err)
	}
	report := judged(t, task, task.Examples(), PredictOptions{})
	if s := judge.ScoresOf(task.Model, nil, report); s.Score != "spearman" || *s.Spearman != *r.Summary.ValScore || s.MRR != nil {
		t.Errorf("the scores are %+v, want the correlation of the summary", s)
	}
}

// The columns say what the rows are. Wrong rows and settings are errors.
func TestEmbedColumns(t *testing.T) {
	jsonl := `{"similarity": 0.5, "sentence1": "a b", "sentence2": "b a"}` + "\n" + `{"similarity": 0.25, "sentence1": "b", "sentence2": "b"}` + "\n"
	for _, test := range []struct {
		file, content, columns, loss, want string // want: Texts and Scored, or an error
	}{
		{"a.tsv", "a\tb\nb\ta\n", "", "", "2 false"},
		{"a.tsv", "a\tb\t0.5\nb\ta\t1\n", "", "", "2 true"},
		{"a.tsv", "x\ta\tb\tc\nx\tb\ta\tc\n", "2,3,4", "", "3 false"},
		{"a.tsv", "i\ta\tb\tn\nx\tb\ta\t0.5\nx\ta\ta\t1\n", "a,b,n", "", "2 true"},
		{"a.csv", "positive,query\na,b\nb,a\n", "", "", "2 false"},
		{"a.csv", "My pairs\nsentence1,sentence2,score\na,b,0.5\nb,a,1\n", "", "", "2 true"},
		{"a.csv", "My pairs\ni,n,x,y\n1,0.5,a,b\n2,1,b,a\n", "x,y,n", "", "2 true"},
		{"a.tsv", "x a|b\tb\t0.5\nx b|a\ta\t1\n", "", "", "2 true"},
		{"a.csv", "anchor,positive,negative_2,negative_1\na,b,c,d\nb,a,d,c\n", "", "", "4 false"},
		{"a.csv", "sentence1,sentence2,label\na,b,1\nb,a,0\n", "", "contrastive", "2 false"},
		{"a.csv", "sentence1,sentence2,label\na,b,1\nb,a,0\n", "", "", "2 true"},
		{"a.jsonl", jsonl, "", "", "2 true"},
		{"a.tsv", "a\tb\tc\nb\ta\tc\n", "", "", "it has 3 columns, but no header"},
		{"a.tsv", "a\tb\nb\ta\n", "1,2", "cosine", "data.columns must name 3 columns, the query, the positive and the score"},
		{"a.tsv", "a\tb\t0.5\nb\ta\t4.5\n", "", "", "the score is 4.5: scores must be from -1 to 1"},
		{"a.tsv", "a\tb\t0.5\nb\ta\tx\n", "", "cosine", `"x" isn't a number`},
		{"a.tsv", "a\tb\nb\ta\n", "", "huber", "training.loss must be one of contrastive, cosine"},
	} {
		content, texts := test.content, regexp.MustCompile(`\b[ab]\b`)
		for i := range leastRows { // more rows, with other texts
			rows := strings.SplitAfter(test.content, "\n")
			for _, row := range rows[len(rows)-3:] {
				content += texts.ReplaceAllString(row, fmt.Sprint("${0}", i))
			}
		}
		c := withFile(t, "embed", test.file, content)
		c.Training.Loss, c.Data.Validation = test.loss, 0
		if test.columns != "" {
			c.Data.Columns = strings.Split(test.columns, ",")
		}
		task, err := New(c)
		if err != nil {
			must.Fail(t, err, test.want)
			continue
		}
		defer task.Close()
		if got := fmt.Sprint(task.Config.Task.Texts, task.Config.Task.Scored); got != test.want {
			t.Errorf("%q with columns %s: got %s, want %s", test.content, test.columns, got, test.want)
		}
	}
	for want, change := range map[string]func(c *Config){
		"training.temperature must be from 0.001":  func(c *Config) { c.Training.Temperature = -1 },
		"training.temperature is for the loss":     func(c *Config) { c.Training.Temperature, c.Training.Loss = 1, "cosine" },
		"must come with data.file":                 func(c *Config) { c.Data.File = "" },
		"training.stopping.monitor must be one of": func(c *Config) { c.Training.Stopping.Monitor = "val_accuracy" },
	} {
		c := withFile(t, "embed", "a.tsv", "a\tb\nb\ta\n")
		change(&c)
		must.Refuse(New(c))(t, want)
	}
	c := small(t, "classification")
	c.Training.Temperature = 1
	must.Refuse(New(c))(t, "training.temperature is for the task embed")
}

// Padding doesn't change the loss of a batch, and a batch counts with the number of its rows.
func TestEmbedPadding(t *testing.T) {
	c := withFile(t, "embed", "rows.tsv", wordPairs(none))
	c.Data.Validation, c.Training.BatchSize = 8, 16
	task := made(t, c)
	p := task.Problem()
	n := p.Validation.Len
	want := must.Get(train.Evaluate(t.Context(), p))(t)
	whole := task.set.(*rowSet)
	whole.batch = n // without padding
	p = task.Problem()
	p.ValidationSize = n
	got, err := train.Evaluate(t.Context(), p)
	if err != nil || n > 16 || math.Abs(got["val_loss"]-want["val_loss"]) > 1e-6 || got["val_batch_accuracy"] != want["val_batch_accuracy"] {
		t.Errorf("without padding, the %d rows have %v, %v, want %v", n, got, err, want)
	}
}

// A run may begin with the weights of another run.
func TestEmbedFrom(t *testing.T) {
	testseed.Slow(t)
	_, dir := trained(t, withFile(t, "embed", "rows.tsv", wordPairs(none)))
	c := must.Get(Named("embed", 0))(t)
	c.Data.File = filepath.Join(t.TempDir(), "more.tsv")
	write(t, c.Data.File, wordPairs(func(i, _ int) string { return fmt.Sprintf("\t%.2f", float64(i)/11) }))
	must.Do(t, c.StartFrom(dir))
	if kept := made(t, c).Loaded.Kept; len(kept) != 0 {
		t.Errorf("the parameters %q begin with new values, want none", kept)
	}
}
