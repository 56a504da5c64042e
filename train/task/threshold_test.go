package task

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
)

// A label is answered if its probability is at least the threshold. The answer comes first among the alternatives, with
// its own probability, and Judge counts it.
func TestThreshold(t *testing.T) {
	t.Parallel()
	task := fitted(t, rowsConfig(t, data.KindClassification, someRows(data.KindClassification)))
	inputs := slices.Compact(slices.Sorted(task.set.(*rowSet).Train.Sources()))
	likelier := must.Get(task.PredictAll(t.Context(), inputs, PredictOptions{Top: 2}))(t)
	p := make([]float64, len(inputs)) // probability of vowel
	for i, a := range likelier {
		p[i] = math.Exp(a.LogProb)
		if a.Text != "vowel" {
			p[i] = math.Exp(a.Top[1].LogProb)
		}
	}
	middle := slices.Sorted(slices.Values(p))[len(p)/2]
	for _, test := range []struct {
		label string
		p     float64
		top   int
	}{{"vowel", middle, 0}, {"vowel", middle, 1}, {"vowel", middle, 2}, {"other", 1 - middle + 1e-4, 0}, {"vowel", 0, 2}, {"vowel", 1, 0}} {
		o := PredictOptions{Top: test.top, Threshold: Threshold{Label: test.label, P: test.p}}
		answers := must.Get(task.PredictAll(t.Context(), inputs, o))(t)
		var counts [2]int
		for i, a := range answers {
			of := p[i]
			if test.label == "other" {
				of = 1 - p[i]
			}
			want, probability := "vowel", p[i]
			if (of >= test.p) != (test.label == "vowel") {
				want, probability = "other", 1-p[i]
			}
			counts[slices.Index([]string{"vowel", "other"}, want)]++
			if a.Text != want || math.Abs(math.Exp(a.LogProb)-probability) > 1e-5 {
				t.Errorf("%v: %q with %v of vowel: got %s with %v", o, inputs[i], p[i], a.Text, math.Exp(a.LogProb))
			}
			if len(a.Top) != test.top || test.top > 0 && a.Top[0].Text != want {
				t.Errorf("%v: got the alternatives %v, want %d, %s first", o, a.Top, test.top, want)
			}
		}
		if mixed := counts[0] > 0 && counts[1] > 0; mixed != (test.p > 0 && test.p < 1) {
			t.Errorf("%v: the answers are %v", o, counts)
		}
	}
	all := judged(t, task, task.Examples(), PredictOptions{Threshold: Threshold{Label: "vowel", P: 0}})
	if n := all.Classes.Count("vowel", "other") + all.Classes.Count("vowel", "vowel"); n != len(task.Examples()) {
		t.Errorf("Judge counts %d answers vowel, want %d", n, len(task.Examples()))
	}
	three := ofRows(t, data.KindClassification, someLabels())
	for _, test := range []struct {
		m    *Model
		t    Threshold
		want string
	}{
		{task.Model, Threshold{Label: "vowels", P: 0.5}, `threshold must name one of the labels "other" and "vowel", got "vowels"; did you mean vowel?`},
		{task.Model, Threshold{Label: "vowel", P: 1.5}, "threshold must be a probability from 0 to 1, got 1.5"},
		{task.Model, Threshold{Label: "vowel", P: math.NaN()}, "threshold must be a probability from 0 to 1, got NaN"},
		{task.Model, Threshold{Label: "", P: 0.5}, "threshold must name one of the labels"},
		{three.Model, Threshold{Label: "low", P: 0.5}, "threshold is for models with two labels, not for the task classification"},
	} {
		_, err := test.m.PredictAll(t.Context(), nil, PredictOptions{Threshold: test.t})
		if wrong := (*ConfigError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got error %v, want %q", test.t, err, test.want)
		}
	}
}
