package model

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/heed-go/heed/internal/must"
)

var drawnEntities = flag.String("entities", "testdata/entities", "folders that testdata/entities.py made, for TestEntities")

// A published model for tags finds the entities that transformers' pipeline finds, with all its strategies, also in
// texts that it reads in windows, and their bytes in the text.
func TestEntities(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*drawnEntities, "*", "entities.json"))
	if err != nil || len(files) != 3 {
		t.Fatalf("found %q, %v, want three files", files, err)
	}
	for _, file := range files {
		var cases []struct {
			Text    string
			Answers map[string][][4]any
		}
		must.Do(t, json.Unmarshal(must.Get(os.ReadFile(file))(t), &cases))
		m := must.Get(Open(filepath.Dir(file)))(t)
		texts := make([]string, len(cases))
		for i, c := range cases {
			texts[i] = c.Text
		}
		for _, rule := range m.Config.Describe().Entities {
			answers := must.Get(m.PredictAll(t.Context(), texts, PredictOptions{Entities: rule}))(t)
			for i, c := range cases {
				var want []Span
				for _, e := range c.Answers[rule] {
					s := Span{Label: e[0].(string), Score: e[1].(float64), Start: int(e[2].(float64)), End: int(e[3].(float64))}
					if s.Text = c.Text[s.Start:s.End]; s.Text != "" { // the pipeline may find nothing, even twice
						want = append(want, s)
					}
				}
				got := answers[i]
				if c.Answers[rule] == nil { // words, or too long a text for none
					continue
				}
				same := len(got.Spans) == len(want) && got.Err == nil && !got.Cut
				for j := 0; same && j < len(want); j++ {
					same, want[j].Score = math.Abs(got.Spans[j].Score-want[j].Score) < 1e-5, got.Spans[j].Score
					same = same && got.Spans[j] == want[j]
				}
				if !same {
					t.Errorf("%s, %s, %q:\ngot  %+v, %v\nwant %+v", file, rule, c.Text, got.Spans, got.Err, want)
				}
			}
		}
	}
}

// By default, an entity is made of whole words, without the marks beside them, also where windows meet. A text that
// needs several windows has the tags of all its words, and the service's schema has the score.
func TestEntitiesOfWords(t *testing.T) {
	m := must.Get(Open("testdata/entities/bytes"))(t)
	input := strings.Repeat("Ann lives in Oslo, near München. ", 20)
	a := must.Get(m.PredictAll(t.Context(), []string{input, "Ann", ""}, PredictOptions{}))(t)
	if n := len(strings.Fields(a[0].Text)); n != 8*20 || a[0].Cut || m.Cuts(input) {
		t.Errorf("got %d tags, cut %t, want 160 of a whole text", n, a[0].Cut)
	}
	end := 0
	for _, s := range a[0].Spans {
		if s.Start < end || s.Text != input[s.Start:s.End] || strings.TrimSpace(s.Text) != s.Text || s.Score <= 0 || s.Score > 1 {
			t.Errorf("got %+v after byte %d", s, end)
		}
		if end = s.End; s.End < len(input) && unicode.IsLetter(rune(input[s.End])) {
			t.Errorf("%q ends inside a word", s.Text)
		}
	}
	if len(a[0].Spans) < 10 || len(strings.Fields(a[1].Text)) != 1 || a[2].Err != nil || a[2].Text != "" || a[2].Spans == nil {
		t.Errorf("got %+v", a)
	}
	if shown, err := m.Attention(input, ""); err != nil || len(shown.Layers) == 0 {
		t.Errorf("the attention in the first window: %v", err)
	}
	must.Refuse(m.PredictAll(t.Context(), nil, PredictOptions{Entities: "frist"}))(t, "did you mean first?")
	must.Refuse(m.PredictAll(t.Context(), nil, PredictOptions{Top: 2}))(t, "top")
	properties := m.Config.Describe().Schema["spans"].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)
	if properties["score"] == nil {
		t.Error("the schema has no score")
	}
}
