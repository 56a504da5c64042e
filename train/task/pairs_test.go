package task

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/model"
)

// pairRows returns rows with two words each and whether the words are equal.
func pairRows(n int) string {
	var s strings.Builder
	s.WriteString("id\tleft\tright\tsame\tsteps\n")
	for i := range n {
		a, b := i%5, i/5%5
		if i%2 == 0 {
			b = a
		}
		distance := max(a-b, b-a)
		fmt.Fprintf(&s, "%d\tword%d x%d\tword%d\t%t\t%d\n", i, a, i%37, b, a == b, distance)
	}
	return s.String()
}

// Two texts per row are one input with a separator and segments. A model learns answers that depend on both texts, and
// predicts, evaluates and shows its attention like other models.
func TestPairsLearn(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, kind := range []data.Kind{data.KindClassification, data.KindRegression} {
		t.Run(string(kind), func(t *testing.T) {
			c := withFile(t, string(kind), "pairs.tsv", pairRows(600))
			c.Data.Columns = []string{"left", "right", "same"}
			if kind == data.KindRegression {
				c.Data.Columns[2] = "steps"
			}
			c.Data.SourceUnits, c.Model.Dim = tokenizer.Tokens, 32
			c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = 25, 5e-3
			task, dir := trained(t, c)
			if !task.Config.Task.Pairs || task.Config.Model.Segments != 2 || task.Params.Get("encoder.segments.weight") == nil {
				t.Fatalf("the rule is %+v and the model %+v, want pairs with two segments", task.Config.Task, task.Config.Model)
			}
			s, err := ReadRun(dir)
			if err != nil || *s.Summary.ValScore < 0.95 {
				t.Errorf("the score is %v, %v, want at least 0.95", *s.Summary.ValScore, err)
			}
			m := must.Get(Open(dir))(t)
			a, err := m.Attention("word1 x1\tword2", "")
			if err != nil || !slices.Equal(a.Layers[0].Rows, []string{"word1", "x1", "│", "word2"}) || !strings.Contains(a.Key, "│ the separator of the two texts") {
				t.Errorf("the attention is %+v, %v, want a separator between the texts", a, err)
			}
			must.Refuse(m.Predict("word1"))(t, "two texts with one tab")
			ranked, _, err := m.Rank(t.Context(), "word1\tx1", []string{"word1", "", "word4", "word2"}, 2)
			if kind != data.KindRegression {
				must.Fail(t, err, "only models that score two texts")
			} else if err != nil || len(ranked) != 3 || ranked[0].Index != 2 || ranked[1].Index != 3 || ranked[2].Index != 1 || ranked[2].Err == nil {
				t.Errorf("ranked: %+v, %v, want word4, word2 and an error", ranked, err)
			}
			examples, _, err := ReadExamples(m, c.Data.File)
			if err != nil || len(examples) != 600 || examples[1].Source != "word1 x1\tword0" {
				t.Errorf("the examples begin with %v, %v, want both texts", examples[1], err)
			}
			var out strings.Builder
			file := filepath.Join(t.TempDir(), "new.tsv")
			write(t, file, "left\tright\nword3 x\tword3\n \tword3\n")
			m.Config.Data.Columns = m.Config.Data.Columns[:2]
			err = PredictFile(t.Context(), m, file, &out, PredictOptions{}, []string{"answer"}, func(_ int, a Answer) []any { return []any{a.Text} })
			if err != nil || !strings.HasPrefix(out.String(), "left\tright\tanswer\nword3 x\tword3\t") || !strings.HasSuffix(out.String(), "\n \tword3\t\n") {
				t.Errorf("the file is written back as %q, %v", out.String(), err)
			}
		})
	}
}

// The order of the two texts matters, and the vocabulary has no tab.
func TestPairsVocabulary(t *testing.T) {
	for _, units := range []tokenizer.Units{tokenizer.Characters, tokenizer.Tokens, tokenizer.BPE} {
		c := withFile(t, "classification", "pairs.tsv", pairRows(100))
		c.Data.Columns, c.Data.SourceUnits = []string{"left", "right", "same"}, units
		task := made(t, c)
		if ids, err := task.Config.Task.Source.Encode("\t"); units == tokenizer.Characters && err == nil && ids[0] != task.Config.Task.Source.Unknown() {
			t.Errorf("the tab is a character of the vocabulary")
		}
		a := must.Get(task.Coder.Batch([]data.Example{{Source: "word1\tword2"}}))(t)
		b := must.Get(task.Coder.Batch([]data.Example{{Source: "word2\tword1"}}))(t)
		if slices.Equal(a.Inputs, b.Inputs) {
			t.Errorf("%s: both orders have the ids %v", units, a.Inputs)
		}
	}
}

// A run that learned inference chooses among other labels too, with the mixture of its network and its linear model.
func TestPairsInfer(t *testing.T) {
	c := withFile(t, "classification", "pairs.tsv", strings.NewReplacer("true", "Entailment", "false", "contradiction").Replace(pairRows(100)))
	c.Data.Columns, c.Data.SourceUnits, c.Training.MaxEpochs = []string{"left", "right", "same"}, tokenizer.Tokens, 1
	task, _ := trained(t, c)
	labels := &model.Labels{Names: []string{"word1", "word2", "word3"}, Template: "{}"}
	answers := must.Get(task.PredictAll(t.Context(), []string{"word2\tx1", ""}, PredictOptions{Top: 9, Labels: labels}))(t)
	sum := 0.0
	for _, a := range answers[0].Top {
		sum += math.Exp(a.LogProb)
	}
	if answers[0].Err != nil || len(answers[0].Top) != 3 || math.Abs(sum-1) > 1e-9 || answers[1].Err == nil {
		t.Errorf("%+v: the probabilities add up to %g", answers, sum)
	}
}
