package model

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

var qa = flag.String("qa", "testdata/qa", "a folder that testdata/qa.py made, for TestPipeline")

// TestPipeline compares answers to questions with the answers of the reference library's pipeline, for models with and
// without segments, contexts that are longer than a window, and several answers.
func TestPipeline(t *testing.T) {
	folders := must.Get(filepath.Glob(filepath.Join(*qa, "*")))(t)
	compared := 0
	for _, dir := range folders {
		m := must.Get(Open(dir))(t)
		var cases []struct {
			Question, Context string
			Top               int
			NoAnswer          bool `json:"no_answer"`
			Answers           []struct {
				Answer     string
				Start, End int
				Score      float64
			}
		}
		must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(dir, "answers.json")))(t), &cases))
		for i, c := range cases {
			a := must.Get(m.PredictAll(t.Context(), []string{c.Question + "\t" + c.Context}, PredictOptions{Top: c.Top, NoAnswer: c.NoAnswer}))(t)[0]
			if a.Err != nil || a.Cut || len(a.Top) < len(c.Answers) {
				t.Errorf("%s, case %d: got %d answers of %d, cut %t, %v", dir, i, len(a.Top), len(c.Answers), a.Cut, a.Err)
				continue
			}
			for k, want := range c.Answers {
				got := a.Top[k]
				compared++
				if got.Text != want.Answer || *got.Part != (Part{want.Start, want.End}) || math.Abs(math.Exp(got.LogProb)-want.Score) > 1e-4 {
					t.Errorf("%s, case %d, answer %d: got %q, %v, %.6f, want %+v", dir, i, k, got.Text, *got.Part, math.Exp(got.LogProb), want)
				}
			}
			if a.Text != c.Answers[0].Answer || *a.Part != *a.Top[0].Part {
				t.Errorf("%s, case %d: got %q", dir, i, a.Text)
			}
		}
	}
	if t.Logf("%d answers", compared); compared < 40 {
		t.Errorf("only %d answers in %d folders", compared, len(folders))
	}
}
