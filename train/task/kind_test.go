package task

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// Every kind has a task of the same name that learns from a file. Its model must do what the Kind promises.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		about := k.about()
		t.Run(string(about.Name), func(t *testing.T) {
			rows, reference := strings.Repeat("a b\tx y\nb b\ty y\na a\tx x\nc a\tx y\n", 50), "x y"
			if about.Numbers {
				rows, reference = strings.Repeat("a b\t1.5\nb b\t-2\na a\t3e1\nc a\t4\n", 50), "1.5"
			}
			c := withFile(t, string(about.Name), "rows.tsv", rows)
			if c.Kind().Name != about.Name || c.Task.About == "" || !slices.Contains(Names(), c.Task.Name) {
				t.Fatalf("Named returns the task %+v, want one of this kind with an About", c.Task)
			}
			c.Training.MaxEpochs, c.Data.Validation = 1, 20
			if !about.Rows {
				c.Training.StepsPerEpoch = 2
			}
			task := fitted(t, c)
			input := "a b"
			if about.Masks {
				input = "a[MASK]b"
			}
			must.Get(answerOf(task.Model, input))(t)
			if _, err := task.Predict(input); (err == nil) == about.Embeds {
				t.Errorf("Predict: got error %v, want success: %v", err, !about.Embeds)
			}
			if a, err := task.Attention(input, ""); err != nil || len(a.Layers) == 0 {
				t.Errorf("Attention: got %+v, %v, want layers", a, err)
			}
			answers, err := task.PredictAll(t.Context(), []string{input}, PredictOptions{Top: 1})
			if (err == nil) == (about.Numbers || about.Embeds) || err == nil && len(answers[0].Top) != 1 {
				t.Errorf("PredictAll with Top: got %+v, %v, want one alternative, and an error only for numbers and vectors", answers, err)
			}
			if _, err := task.PredictAll(t.Context(), []string{input}, PredictOptions{Beam: 2}); (err == nil) != about.Beams {
				t.Errorf("PredictAll with a Beam of 2: got error %v, want success: %v", err, about.Beams)
			}
			if _, err := task.Generate(t.Context(), io.Discard, Prompt{Text: "a b"}, GenerateOptions{MaxTokens: 3}); (err == nil) != about.Generates {
				t.Errorf("Generate: got error %v, want success: %v", err, about.Generates)
			}
			r, err := judge.Answers(t.Context(), task.Model, []data.Example{{Source: "a b", Answer: reference}}, PredictOptions{})
			if (err == nil) != about.Rows {
				t.Errorf("Judge: got error %v, want success: %v", err, about.Rows)
			} else if err == nil && (len(r.Judged) != 1 || r.String() == "" || about.Classes != (r.Classes.Classes() != nil)) {
				t.Errorf("Judge returns the report\n%s\nwant one judged source, and classes: %v", r, about.Classes)
			}
		})
	}
	if k := (&Config{Config: model.Config{Task: data.Rule{Kind: "none"}}}).Kind(); k != (model.Kind{}) {
		t.Errorf("an unknown kind: got %+v, want the zero Kind", k)
	}
}

// The words for results depend on the kind, and on whether the task has a file.
func TestKindWords(t *testing.T) {
	vocab := must.Get(tokenizer.NewVocab("ab"))(t)
	for _, tc := range []struct {
		name, file  string
		source      tokenizer.Tokenizer
		unit, right string
		classes     bool
	}{
		{"reverse", "", nil, "sequences", "exactly right", false},
		{"brackets", "", nil, "sequences", "exactly right", true},
		{"dates", "", nil, "sequences", "exactly right", false},
		{"text", "x", nil, "characters", "predicted", false},
		{"text", "x", vocab, "tokens", "predicted", false},
		{"mlm", "x", nil, "masked characters", "predicted", false},
		{"mlm", "x", vocab, "masked tokens", "predicted", false},
		{"tagging", "x", vocab, "tags", "right", true},
		{"classification", "x", vocab, "labels", "right", true},
		{"seq2seq", "x", vocab, "rows", "exactly right", false},
	} {
		c := must.Get(Named(tc.name, 0))(t)
		c.Data.File, c.Task.Source = tc.file, tc.source
		if k := judge.KindOf(&c.Config); k.Unit != tc.unit || k.Right != tc.right || k.Classes != tc.classes {
			t.Errorf("%s with file %q: got %s %s, classes %v; want %s %s, classes %v", tc.name, tc.file, k.Unit, k.Right, k.Classes, tc.unit, tc.right, tc.classes)
		}
	}
}
