package task

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
)

// translations are what the reference library answers with the models in testdata/translators: see make.py there.
func translations(t *testing.T) (folders map[string]struct {
	Options         struct{ Source, Target, Prompt string }
	Inputs, Answers []string
	Loss            *float64
}) {
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("testdata/translators/answers.json"))(t), &folders))
	return folders
}

// Published models that translate and summarise must answer as the reference library does, with the beams and the rules
// of their folders, and with the languages and the prompts that a caller chooses.
func TestTranslators(t *testing.T) {
	for name, want := range translations(t) {
		t.Run(name, func(t *testing.T) {
			m := must.Get(Open(filepath.Join("testdata/translators", name)))(t)
			must.Do(t, m.SetLanguages(want.Options.Source, want.Options.Target))
			if want.Options.Prompt != "" {
				must.Do(t, m.SetPrompt(want.Options.Prompt))
			}
			answers := must.Get(m.PredictAll(t.Context(), want.Inputs, model.PredictOptions{}))(t)
			wrong := 0
			for i, a := range answers {
				if a.Err != nil || a.Text != want.Answers[i] || a.Cut || a.Input != want.Inputs[i] {
					if wrong++; wrong < 4 {
						t.Errorf("%q: got %q, %v, want %q", want.Inputs[i], a.Text, a.Err, want.Answers[i])
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d answers differ", wrong, len(answers))
			}
		})
	}
}
