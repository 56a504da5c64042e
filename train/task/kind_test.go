package task

import (
	"io"
	"slices"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// Every kind has a task of the same name that learns from a file. Its model must do what its description promises.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		about := k.about()
		t.Run(string(about.name), func(t *testing.T) {
			c := small(t, string(about.name))
			if c.Task.Kind != about.name || c.Task.About == "" || !slices.Contains(Names(), c.Task.Name) {
				t.Fatalf("Named returns the task %+v, want one of this kind with an About", c.Task)
			}
			c.Training.MaxEpochs, c.Data.Validation = 1, 20
			if about.format == nil {
				c.Training.StepsPerEpoch = 2
			}
			task, answers := fitted(t, c), about.name != data.KindEmbed
			input := task.Config.Task.Example
			must.Get(answerOf(task.Model, input))(t)
			if _, err := task.Predict(input); (err == nil) != answers {
				t.Errorf("Predict: got error %v, want success: %v", err, answers)
			}
			if a, err := task.Attention(input, ""); err != nil || len(a.Layers) == 0 {
				t.Errorf("Attention: got %+v, %v, want layers", a, err)
			}
			found, err := task.PredictAll(t.Context(), []string{input}, PredictOptions{Top: 1})
			if (err == nil) != (answers && about.name != data.KindRegression) || err == nil && len(found[0].Top) != 1 {
				t.Errorf("PredictAll with Top: got %+v, %v, want one alternative, and an error only for numbers and vectors", found, err)
			}
			if _, err := task.PredictAll(t.Context(), []string{input}, PredictOptions{Beam: 2}); (err == nil) != (about.name == data.KindSeq2Seq) {
				t.Errorf("PredictAll with a Beam of 2: got error %v, want success only for seq2seq", err)
			}
			if _, err := task.Generate(t.Context(), io.Discard, Prompt{Text: "a b"}, GenerateOptions{MaxTokens: 3}); (err == nil) != (about.name == data.KindText) {
				t.Errorf("Generate: got error %v, want success only for text", err)
			}
			r, err := judge.Answers(t.Context(), task.Model, append(task.Examples(), data.Example{})[:1], PredictOptions{})
			if (err == nil) != (about.format != nil) {
				t.Errorf("Judge: got error %v, want success: %v", err, about.format != nil)
			} else if err == nil && (len(r.Judged) != 1 || r.String() == "" || about.classes != (r.Classes.Classes() != nil)) {
				t.Errorf("Judge returns the report\n%s\nwant one judged source, and classes: %v", r, about.classes)
			}
		})
	}
	if d := (&model.Config{Task: data.Rule{Kind: "none"}}).Describe(); d.Generate == nil || d.Embed == nil || d.Rows == nil || d.Use != "" {
		t.Errorf("an unknown kind: got %+v, want a model that does nothing", d)
	}
}

// The words for results depend on the kind, and on whether the task has a file.
func TestKindWords(t *testing.T) {
	vocab := must.Get(tokenizer.NewVocab("ab"))(t)
	for _, tc := range []struct {
		name, file  string
		source      tokenizer.Tokenizer
		unit, right string
	}{
		{"reverse", "", nil, "sequences", "exactly right"},
		{"brackets", "", nil, "sequences", "exactly right"},
		{"dates", "", nil, "sequences", "exactly right"},
		{"text", "x", nil, "characters", "predicted"},
		{"text", "x", vocab, "tokens", "predicted"},
		{"mlm", "x", nil, "masked characters", "predicted"},
		{"mlm", "x", vocab, "masked tokens", "predicted"},
		{"tagging", "x", vocab, "tags", "right"},
		{"classification", "x", vocab, "labels", "right"},
		{"seq2seq", "x", vocab, "rows", "exactly right"},
	} {
		c := must.Get(Named(tc.name, 0))(t)
		c.Data.File, c.Task.Source = tc.file, tc.source
		if k := judge.KindOf(&c.Config); k.Unit != tc.unit || k.Right != tc.right {
			t.Errorf("%s with file %q: got %s %s, want %s %s", tc.name, tc.file, k.Unit, k.Right, tc.unit, tc.right)
		}
	}
}

// Only kinds that learn classes have label smoothing.
func TestLabelSmoothing(t *testing.T) {
	for name, what := range map[string]string{"regression": "numbers", "multilabel": "several labels per row", "qa": "parts of texts", "embed": "vectors"} {
		c := must.Get(Named(name, 0))(t)
		c.Data.File, c.Training.LabelSmoothing = "rows.tsv", 0.1
		must.Refuse(0, c.Check())(t, "training.label_smoothing is for classes: the task "+name+" learns "+what)
	}
	for _, name := range []string{"classification", "tagging", "seq2seq"} {
		c := must.Get(Named(name, 0))(t)
		c.Data.File, c.Training.LabelSmoothing = "rows.tsv", 0.1
		must.Do(t, c.Check())
	}
}
