package score

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// regressionOf returns a Regression with these answers and references.
func regressionOf(answers, references []float64) *Regression {
	var r Regression
	for i, x := range answers {
		r.Add(x, references[i])
	}
	return &r
}

// all returns the four scores.
func (r *Regression) all() []float64 {
	return []float64{r.MeanAbsoluteError(), r.RSquared(), r.Pearson(), r.Spearman()}
}

func TestRegressionLikeSciPy(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/regression.json"))(t)
	var cases []struct {
		Answers, References        []float64
		MAE, R2, Pearson, Spearman float64
	}
	must.Do(t, json.Unmarshal(text, &cases))
	if len(cases) < 7 {
		t.Fatalf("regression.json has %d cases, want 7", len(cases))
	}
	for i, c := range cases {
		got := regressionOf(c.Answers, c.References).all()
		for j, want := range []float64{c.MAE, c.R2, c.Pearson, c.Spearman} {
			if !(math.Abs(got[j]-want) <= 1e-9*max(1e-9, math.Abs(want))) {
				t.Errorf("case %d: score %d is %v, want %v", i, j, got[j], want)
			}
		}
	}
}

func TestRegressionEdges(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name                string
		answers, references []float64
		want                []float64 // mean absolute error, R², Pearson, Spearman
	}{
		{"no answers", nil, nil, []float64{nan, nan, nan, nan}},
		{"one answer", []float64{1}, []float64{3}, []float64{2, nan, nan, nan}},
		{"all right", []float64{0.1, 0.2, 0.4}, []float64{0.1, 0.2, 0.4}, []float64{0, 1, 1, 1}},
		{"opposite", []float64{3, 2, 1}, []float64{1, 2, 3}, []float64{4. / 3, -3, -1, -1}},
		{"equal answers", []float64{2, 2, 2}, []float64{1, 2, 3}, []float64{2. / 3, 0, nan, nan}},
		{"equal references", []float64{0.1, 0.1, 0.4}, []float64{0.1, 0.1, 0.1}, []float64{0.1, 0, nan, nan}},
		{"equal references, all right", []float64{0.1, 0.1, 0.1}, []float64{0.1, 0.1, 0.1}, []float64{0, 1, nan, nan}},
		{"equal answers have the mean rank", []float64{1, 1, 2, 3}, []float64{1, 2, 2, 3}, []float64{0.25, 0.5, 2 / math.Sqrt(5.5), 5. / 6}},
		{"an answer is NaN", []float64{1, nan, 3}, []float64{1, 2, 3}, []float64{nan, nan, nan, nan}},
		{"a reference is NaN", []float64{1, 2, 3}, []float64{1, 2, nan}, []float64{nan, nan, nan, nan}},
		{"an answer is infinite", []float64{1, 2, inf}, []float64{1, 2, 3}, []float64{inf, -inf, nan, 1}},
	} {
		got := regressionOf(c.answers, c.references).all()
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-15 || a != a && b != b }) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
