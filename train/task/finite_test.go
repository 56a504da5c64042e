package task

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers/decode"
)

// overflowing sets a model's last weights to a number that is finite, but whose sums aren't.
func overflowing(m *Model) {
	all := m.Params.All()
	for _, p := range all[len(all)-2:] {
		values := p.Value.Float32s()
		for i := range values {
			values[i] = 3e38
		}
	}
}

// A model whose numbers overflow has no answer, at any door.
func TestNoAnswerWithoutFiniteNumbers(t *testing.T) {
	t.Parallel()
	wantNone := func(t *testing.T, door string, err error) {
		t.Helper()
		if !errors.Is(err, decode.ErrNotFinite) {
			t.Errorf("%s: got the error %v, want decode.ErrNotFinite", door, err)
		}
	}
	for name, c := range configs(t) {
		t.Run(name, func(t *testing.T) {
			task := made(t, c)
			overflowing(task.Model)
			_, err := task.Evaluate(t.Context())
			wantNone(t, "Evaluate", err)
			input := inputsOf(t, task)[0]
			if c.Describe().Predict != nil {
				_, _, err = task.Embed(t.Context(), []string{"a"})
				wantNone(t, "Embed", err)
				return
			}
			answers, err := task.PredictAll(t.Context(), []string{input}, PredictOptions{})
			wantNone(t, "PredictAll", err)
			if answers != nil {
				t.Errorf("got the answers %+v, want none", answers)
			}
			_, err = task.Attention(input, "")
			wantNone(t, "Attention", err)
			if classes := task.Config.Task.Classes; classes != nil && !c.Spelled && c.Task.Kind == data.KindClassification {
				_, err = task.Explain(input, classes[0], "")
				wantNone(t, "Explain", err)
			}
			if c.Describe().Generate == nil {
				_, err = task.Generate(t.Context(), io.Discard, Prompt{Text: input}, GenerateOptions{MaxTokens: 2})
				wantNone(t, "Generate", err)
			}
		})
	}
	for _, name := range []string{"llama", "llama-states", "bert", "bert-classes", "gpt2-classes"} {
		t.Run(name, func(t *testing.T) {
			m := openedFolder(t, name)
			overflowing(m)
			var err error
			switch d := m.Config.Describe(); {
			case d.Predict != nil:
				_, _, err = m.Embed(t.Context(), []string{"a"})
			case d.Generate == nil:
				path := filepath.Join(t.TempDir(), "text.txt")
				write(t, path, "a text of some words")
				_, err = m.ScoreText(t.Context(), data.TextFiles{Paths: []string{path}}, WindowOptions{})
				wantNone(t, "ScoreText", err)
				_, err = m.Generate(t.Context(), io.Discard, Prompt{Text: "a"}, GenerateOptions{MaxTokens: 2})
				wantNone(t, "Generate", err)
				_, err = m.Predict("a")
			case m.Config.Task.Kind == data.KindMaskedText:
				_, err = m.Predict("a <mask>")
				wantNone(t, "Predict", err)
				_, _, err = m.Embed(t.Context(), []string{"a"})
			default:
				_, err = m.Predict("a")
			}
			wantNone(t, "the model", err)
		})
	}
}
