package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

var drawnPairs = flag.String("pairs", "", "a file of cases that testdata/pairs/make.py printed, for TestPairs")

// A pairsCase is what the reference libraries answer: scores of documents, or of labels, best first.
type pairsCase struct {
	Query     string
	Documents []string
	Order     []int

	Text, Template string
	Names, Labels  []string
	Several        bool

	Scores []float64
}

// Models that read pairs rank documents as CrossEncoder does, and choose among labels as the pipeline
// zero-shot-classification does, also where texts are cut or have tabs.
func TestPairs(t *testing.T) {
	var models map[string][]pairsCase
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(cmp.Or(*drawnPairs, "testdata/pairs/answers.json")))(t), &models))
	for name, cases := range models {
		t.Run(name, func(t *testing.T) {
			m := must.Get(Open(filepath.Join("testdata/pairs", name)))(t)
			cut := 0
			for i, c := range cases {
				var order []int
				var got []float64
				if strings.HasSuffix(name, "cross") {
					ranked, tokens, err := m.Rank(t.Context(), c.Query, c.Documents, 0)
					must.Do(t, err)
					for _, r := range ranked {
						order, got = append(order, r.Index), append(got, r.Score)
						if r.Cut {
							cut++
						}
					}
					if least := 4 * len(ranked); tokens < least {
						t.Errorf("case %d: %d tokens, want at least %d", i, tokens, least)
					}
				} else {
					options := PredictOptions{Top: len(c.Names), Labels: &Labels{c.Names, c.Template, c.Several}}
					a := must.Get(m.PredictAll(t.Context(), []string{c.Text}, options))(t)[0]
					must.Do(t, a.Err)
					if a.Text != c.Labels[0] || a.Top[0].Text != a.Text || a.Top[0].LogProb != a.LogProb {
						t.Errorf("case %d: %+v, want %q", i, a, c.Labels[0])
					}
					if a.Cut {
						cut++
					}
					c.Order = nil
					for _, l := range a.Top {
						order, got = append(order, slices.Index(c.Names, l.Text)), append(got, math.Exp(l.LogProb))
					}
					for _, l := range c.Labels {
						c.Order = append(c.Order, slices.Index(c.Names, l))
					}
				}
				for k, want := range c.Scores {
					if !(math.Abs(got[k]-want) <= 1e-5*max(1, math.Abs(want))) {
						t.Errorf("case %d: score %d is %g, want %g", i, k, got[k], want)
					}
					if order[k] != c.Order[k] && (k == 0 || math.Abs(c.Scores[k-1]-want) > 1e-5) && (k == len(got)-1 || math.Abs(c.Scores[k+1]-want) > 1e-5) {
						t.Errorf("case %d: place %d has %d, want %d", i, k, order[k], c.Order[k])
					}
				}
			}
			if cut == 0 {
				t.Error("no text was cut")
			}
		})
	}
}

// A document that can't be read has its own error, whatever top is, and wrong calls say what is wrong.
func TestPairErrors(t *testing.T) {
	cross, inference := must.Get(Open("testdata/pairs/bert-cross"))(t), must.Get(Open("testdata/pairs/bert-labels"))(t)
	ranked, _, err := cross.Rank(t.Context(), "the cat", []string{"a dog", "\xff", "a cat", "a dog", ""}, 2)
	if err != nil || len(ranked) != 3 || ranked[2].Index != 1 || !errors.As(ranked[2].Err, new(*InputError)) || ranked[0].Err != nil || ranked[0].Score < ranked[1].Score {
		t.Errorf("%+v, %v", ranked, err)
	}
	for i := range 9 { // equal scores are in the order of the documents
		ranked, _, err := cross.Rank(t.Context(), "who", slices.Repeat([]string{"a dog"}, i), 0)
		if err != nil || !slices.IsSortedFunc(ranked, func(a, b Ranked) int { return a.Index - b.Index }) {
			t.Errorf("%+v, %v", ranked, err)
		}
	}
	rank := func(m *Model, top int) error {
		_, _, err := m.Rank(t.Context(), "a", []string{"b"}, top)
		return err
	}
	must.Fail(t, rank(cross, -1), "top must be at least 1, or 0 for all, got -1")
	must.Fail(t, rank(inference, 0), "the model is for the task classification, and only models that score two texts rank documents: use heed predict")
	must.Fail(t, rank(labelModel(t), 0), "only models that score two texts")
	label := func(m *Model, o PredictOptions) error {
		_, err := m.PredictAll(t.Context(), nil, o)
		return err
	}
	for _, test := range []struct {
		labels Labels
		want   string
	}{
		{Labels{}, "labels must have at least one label"},
		{Labels{Names: []string{"a"}, Template: "about"}, `template must have {} once, where the label goes, and no other braces, got "about"`},
		{Labels{Names: []string{"a"}, Template: "{} and {}"}, "template must have {} once"},
		{Labels{Names: []string{"a"}, Template: "{0} {}"}, "template must have {} once"},
	} {
		must.Fail(t, label(inference, PredictOptions{Labels: &test.labels}), test.want)
	}
	must.Fail(t, label(labelModel(t), PredictOptions{Labels: &Labels{Names: []string{"a"}}}), "a label that begins with entail")
	must.Fail(t, label(cross, PredictOptions{Labels: &Labels{Names: []string{"a"}}}), "a label that begins with entail")
	long := strings.Repeat("the cat ", 30)
	answers := must.Get(inference.PredictAll(t.Context(), []string{"a dog", "\xff"}, PredictOptions{Labels: &Labels{Names: []string{"a", long}}}))(t)
	if answers[0].Text+answers[1].Text != "" || answers[0].Err == nil || !strings.Contains(answers[0].Err.Error(), "the first text is too short to be cut") || answers[1].Err == nil {
		t.Errorf("a sentence that is too long: %+v", answers)
	}
}
