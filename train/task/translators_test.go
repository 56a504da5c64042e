package task

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// A file of texts has a header that names them.
func TestTranslatorsFile(t *testing.T) {
	m := must.Get(Open("testdata/translators/t5"))(t)
	file := filepath.Join(t.TempDir(), "texts.csv")
	must.Do(t, os.WriteFile(file, []byte("id,text\n1,a cat\n"), 0o600))
	var inputs []string
	must.Do(t, PredictFile(t.Context(), m, file, io.Discard, PredictOptions{}, []string{"answer"}, func(_ int, a Answer) []any {
		inputs = append(inputs, a.Input)
		return []any{a.Text}
	}))
	if !slices.Equal(inputs, []string{"a cat"}) {
		t.Errorf("the inputs are %q", inputs)
	}
}

// Languages and prompts that a model doesn't know, and other beams than a model has, must be errors that name them. A
// beam that a caller chooses comes before the folder's.
func TestTranslatorsChoices(t *testing.T) {
	open := func(name string) *Model { return must.Get(Open(filepath.Join("testdata/translators", name)))(t) }
	mbart, t5 := open("mbart"), open("t5")
	must.Fail(t, mbart.SetLanguages("", "ro_RU"), "target_language", "did you mean ro_RO?")
	must.Fail(t, mbart.SetLanguages("fra", ""), "source_language", "fra")
	must.Fail(t, open("marian-codes").SetLanguages("", "spa"), "target_language", "spa")
	must.Fail(t, t5.SetLanguages("", "ro_RO"), "models that know several languages, not for the task seq2seq")
	must.Fail(t, t5.SetPrompt("summary"), "summarization", "translation_en_to_fr")
	must.Fail(t, mbart.SetPrompt("summary"), "models with prompts, and this one has none")
	if got := mbart.DefaultBeam(); got != 5 || t5.DefaultBeam() != 1 {
		t.Errorf("the default beams are %d and %d, want 5 and 1", got, t5.DefaultBeam())
	}
	for beam, same := range map[int]bool{5: true, 1: false} {
		want := must.Get(mbart.PredictAll(t.Context(), []string{"Now is better than never."}, model.PredictOptions{}))(t)
		got := must.Get(mbart.PredictAll(t.Context(), []string{"Now is better than never."}, model.PredictOptions{Beam: beam}))(t)
		if (got[0].LogProb == want[0].LogProb) != same {
			t.Errorf("a beam of %d gives %+v, without one %+v", beam, got[0], want[0])
		}
	}
	long := must.Get(mbart.PredictAll(t.Context(), []string{strings.Repeat("never ", 200)}, model.PredictOptions{}))(t)[0]
	if !long.Cut || long.Err != nil {
		t.Errorf("a text of 200 words for a model with 128 positions gives %+v, want a cut one", long)
	}
}

// Training must begin at the loss of the reference library: with its start of answers, its special tokens and its
// padding.
func TestTranslatorsLoss(t *testing.T) {
	folders := translations(t)
	for _, name := range []string{"marian", "t5", "bart", "pegasus"} {
		t.Run(name, func(t *testing.T) {
			want := folders[name]
			c := small(t, "seq2seq")
			must.Do(t, c.StartFrom(filepath.Join("testdata/translators", name)))
			var learned, judged strings.Builder
			for i := range 40 {
				fmt.Fprintf(&learned, "is%s\tdu%[1]s\n", strings.Repeat(" du", i))
			}
			for _, text := range want.Inputs {
				fmt.Fprintf(&judged, "%s\t%[1]s\n", text)
			}
			c.Data.File, c.Data.ValidationFile = filepath.Join(t.TempDir(), "rows.tsv"), filepath.Join(t.TempDir(), "judged.tsv")
			c.Task.MaxLen, c.Task.MaxAnswer, c.Data.Header, c.Data.Quotes = 120, 120, "no", "no"
			write(t, c.Data.File, learned.String())
			write(t, c.Data.ValidationFile, judged.String())
			s := must.Get(made(t, c).Evaluate(t.Context()))(t)
			if got := s.Loss; math.Abs(got-*want.Loss) > 2e-5 {
				t.Errorf("the loss is %g, want %g", got, *want.Loss)
			}
		})
	}
}
