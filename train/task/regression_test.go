package task

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task/judge"
)

// numberRows returns rows whose number is 1000 plus 10 times the number of tokens.
func numberRows(n int) string {
	var s strings.Builder
	for i := range n {
		words := strings.Repeat("a b c ", 3)[:2*(1+i%8)]
		fmt.Fprintf(&s, "%s%d\t%d\n", words, i, 1010+10*(1+i%8))
	}
	return s.String()
}

// A model learns numbers far from 0, training and Judge give the same scores, and the answers are numbers in
// JSON.
func TestRegression(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, loss := range []string{"", "huber"} {
		t.Run("loss "+loss, func(t *testing.T) {
			c := withFile(t, "regression", "rows.tsv", numberRows(200))
			c.Data.SourceUnits = tokenizer.Characters
			c.Training.MaxEpochs, c.Training.Optimizer.LearningRate, c.Training.Loss = 16, 6e-3, loss
			task, dir := trained(t, c)
			if c := task.Config.Task; math.Abs(c.Mean-1055) > 1 || math.Abs(c.Scale-math.Sqrt(525)) > 1 {
				t.Errorf("the mean is %v and the scale %v, want about 1055 and 22.9", c.Mean, c.Scale)
			}
			run := must.Get(ReadRun(dir))(t)
			s := run.Summary
			if s.ScoreName != "r2" || *s.ValScore < 0.8 || judge.KindOf(&run.Config.Config).Score.Name != "r2" {
				t.Errorf("the score is %s %v, want r2 of at least 0.8", s.ScoreName, *s.ValScore)
			}
			m := must.Get(Open(dir))(t)
			r := judged(t, task, task.Examples(), PredictOptions{})
			if got, want := r.Numbers.RSquared(), s.Answers["r2"]; got != want {
				t.Errorf("Judge has R² %v, and the summary %v", got, want)
			}
			network, best := judgedAs(t, task, mixture{}), run.History[run.Best].Metrics
			if got, want := network.Numbers.RSquared(), best["val_r2"]; math.Abs(got-want) > 1e-5 {
				t.Errorf("the network has R² %v, and the check %v", got, want)
			}
			if got, want := network.Numbers.MeanAbsoluteError(), best["val_mean_absolute_error"]; math.Abs(got-want) > 1e-3 {
				t.Errorf("the network has the mean absolute error %v, and the check %v", got, want)
			}
			if got := r.String(); !strings.Contains(got, "R²: 0.") || !strings.Contains(got, "Spearman 0.") || strings.Contains(got, "right") {
				t.Errorf("the report is\n%s", got)
			}
			answers := must.Get(m.PredictAll(t.Context(), []string{"a b c 90", "\xff"}, PredictOptions{}))(t)
			content, err := json.Marshal(answers)
			if want := fmt.Sprintf(`[{"input":"a b c 90","answer":%s},{"input":`, answers[0].Text); err != nil || !strings.HasPrefix(string(content), want) || strings.Contains(string(content), "probability") {
				t.Errorf("in JSON, the answers are %s, %v, want them to begin with %s", content, err, want)
			}
			if x := answers[0].Number; x == nil || math.Abs(*x-1040) > 20 {
				t.Errorf("the answer is %+v, want about 1040", answers[0])
			}
		})
	}
}

// Rows without a number are bad. Padding and rows of other batches don't change the loss.
func TestRegressionRows(t *testing.T) {
	c := withFile(t, "regression", "rows.tsv", numberRows(200)+"a b\tmany\n")
	task := made(t, c)
	if got := task.DescribeData(); !strings.Contains(got, `"many" isn't a number such as -12.5`) || !strings.Contains(got, "  numbers: mean 10") || !strings.Contains(got, "  constant: always answering 10") {
		t.Errorf("the data are described as\n%s", got)
	}
	one := must.Get(train.Evaluate(t.Context(), task.Problem()))(t)
	p := task.Problem()
	p.ValidationSize = 1
	each := must.Get(train.Evaluate(t.Context(), p))(t)
	for name, want := range one {
		if got := each[name]; !(math.Abs(got-want) <= 1e-4*math.Abs(want)) {
			t.Errorf("%s is %v in batches of 1, and %v in larger ones", name, got, want)
		}
	}
}

func TestRegressionErrors(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"class weights", func(c *Config) { c.Training.ClassWeights = "balanced" }, "training.class_weights are for the labels"},
		{"merged labels", func(c *Config) { c.Data.MergeLabels = true }, "data.merge_labels is for the labels"},
		{"target units", func(c *Config) { c.Data.TargetUnits = "tokens" }, "data.target_units: its answers aren't split"},
		{"loss", func(c *Config) { c.Training.Loss = "hubert" }, `training.loss must be one of squared, huber, got "hubert"; did you mean huber?`},
		{"monitor", func(c *Config) { c.Training.Stopping.Monitor = "val_accuracy" }, "must be one of train_loss, train_r2, train_mean_absolute_error, val_loss, val_r2"},
		{"equal numbers", func(c *Config) { write(t, c.Data.File, strings.Repeat("a\t7\nb\t7.0\n", 9)) }, "all training rows have the number 7"},
	} {
		c := withFile(t, "regression", "rows.tsv", numberRows(50))
		test.change(&c)
		must.Refuse(New(c))(t, test.want)
	}
	c := withFile(t, "classification", "rows.tsv", numberRows(50))
	c.Training.Loss = "huber"
	must.Refuse(New(c))(t, "task classification has only one loss: leave out training.loss")
}

// A run that starts from another keeps its Mean and Scale, so that its head stays useful.
func TestRegressionFrom(t *testing.T) {
	testseed.Slow(t)
	first := withFile(t, "regression", "rows.tsv", numberRows(200))
	task, dir := trained(t, first)
	c := must.Get(Named("regression", 0))(t)
	c.Data.File = filepath.Join(t.TempDir(), "more.tsv")
	write(t, c.Data.File, strings.ReplaceAll(numberRows(100), "\t10", "\t20"))
	must.Do(t, c.StartFrom(dir))
	next := made(t, c)
	if got, want := next.Config.Task, task.Config.Task; got.Mean != want.Mean || got.Scale != want.Scale || len(next.Loaded.Kept) != 0 {
		t.Errorf("the mean is %v and the scale %v, want %v and %v; new parameters: %v", got.Mean, got.Scale, want.Mean, want.Scale, next.Loaded.Kept)
	}
}

// Decimal commas are read where all numbers have this form. Elsewhere they are an error.
func TestDecimalCommas(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"a\t15,6\nb\t1.234,5\nc\t-2\n": "15.6 1234.5 -2",
		"a\t1.234\nb\t2.5\n":           "1.234 2.5",
		"a\t15,6\nb\t2.5\n":            `"15,6" has a decimal comma, but "2.5" in line 2 hasn't`,
		"a\t1,23,4\nb\t2\nc\t3\n":      `"1,23,4" isn't a number`,
	} {
		c := withFile(t, "regression", "x.tsv", strings.Repeat(content, 20))
		c.Data.Validation = 0
		task, err := New(c)
		if err != nil {
			must.Fail(t, err, want)
			continue
		}
		var got []string
		for _, e := range task.set.(*rowSet).Train.Examples() {
			if !slices.Contains(got, e.Answer) {
				got = append(got, e.Answer)
			}
		}
		slices.Sort(got)
		wanted := strings.Fields(want)
		if slices.Sort(wanted); !slices.Equal(got, wanted) {
			t.Errorf("%q: got %q, want %q", content, got, wanted)
		}
		if commas := strings.Contains(task.DescribeData(), "decimal commas: "); commas != strings.Contains(content, ",") {
			t.Errorf("%q is described as\n%s", content, task.DescribeData())
		}
	}
}
