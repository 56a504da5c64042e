package task

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// logitOf returns the logit of one label minus the logit of another: the difference of their log probabilities.
func logitOf(t testing.TB, m *Model, input, label, against string) float64 {
	t.Helper()
	answers, err := m.PredictAll(t.Context(), []string{input}, PredictOptions{Top: len(m.Config.Task.Classes)})
	if err != nil || answers[0].Err != nil {
		t.Fatal(err, answers[0].Err)
	}
	logProb := func(label string) float64 {
		return answers[0].Top[slices.IndexFunc(answers[0].Top, func(a Alternative) bool { return a.Text == label })].LogProb
	}
	return logProb(label) - logProb(against)
}

// If the linear model answers alone, the value of a word is what leaving it out changes.
func TestExplainBaseline(t *testing.T) {
	c := rowsConfig(t, data.KindClassification, someRows(data.KindClassification))
	c.Mix = true
	task := made(t, c)
	must.Do(t, task.fitBaseline(t.Context()))
	task.Mixture = mixture{Linear: 1}
	const input = "c a d"
	first, second := task.Config.Task.Classes[0], task.Config.Task.Classes[1]
	words := must.Get(task.Explain(input, first, second))(t)
	whole := logitOf(t, task.Model, input, first, second)
	for i, rest := range []string{" a d", "c  d", "c a "} {
		want := whole - logitOf(t, task.Model, rest, first, second)
		if got := words[i].Value; math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) || want == 0 {
			t.Errorf("%q has the value %g, want %g, the difference without it", words[i].Word, got, want)
		}
	}
}

// In a pair, words have their places in the whole input, also if the longer text is cut.
func TestExplainPairs(t *testing.T) {
	c := forRows(t, data.KindClassification, strings.Repeat("a b\tc d\tyes\na c\td b\tno\n", 50))
	c.Data.Columns, c.Data.SourceUnits, c.Task.MaxLen = []string{"1", "2", "3"}, tokenizer.Tokens, 6
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads, c.Training.MaxEpochs = 16, 1, 2, 1
	m := made(t, c).Model
	const input = "a b a a a\tc  d"
	words := must.Get(m.Explain(input, "yes", ""))(t)
	var got []string
	for _, w := range words {
		got = append(got, w.Word)
		if input[w.Start:w.End] != w.Word {
			t.Errorf("the word %q is at %d to %d, where the input has %q", w.Word, w.Start, w.End, input[w.Start:w.End])
		}
	}
	if want := []string{"a", "b", "a", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("the words are %q, want %q", got, want)
	}
}

func TestExplainErrors(t *testing.T) {
	m := ofRows(t, data.KindClassification, someRows(data.KindClassification)).Model
	for _, c := range []struct{ label, against, want string }{
		{"vowle", "", `no label "vowle"; did you mean vowel?`}, {"", "", `no label ""`}, {"vowel", "x", `no label "x"`},
	} {
		must.Refuse(m.Explain("a b", c.label, c.against))(t, c.want)
	}
	if _, err := m.Explain("", "vowel", ""); !errors.As(err, new(*InputError)) {
		t.Errorf("without an input, got %v, want an InputError", err)
	}
	tags := ofRows(t, data.KindTagging, someRows(data.KindTagging)).Model
	must.Refuse(tags.Explain("a b", "A", ""))(t, "only labels of whole texts are explained by words: use heed predict")
}
