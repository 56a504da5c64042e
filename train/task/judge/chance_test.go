package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/model"
)

// The values were computed by scipy.stats.binomtest(a, a+b).
func TestSignTest(t *testing.T) {
	for _, test := range []struct {
		a, b int
		want float64
	}{{0, 0, 1}, {0, 1, 1}, {3, 0, 0.25}, {5, 0, 0.0625}, {0, 6, 0.03125}, {7, 4, 0.548828125}, {4, 7, 0.548828125}, {60, 40, 0.0568879}, {5300, 4700, 2.076033695e-9}} {
		if got := signTest(test.a, test.b); math.Abs(got/test.want-1) > 1e-3 {
			t.Errorf("%d and %d: got %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

// A report is compared with its baseline row by row, and for rank correlations as a whole.
func TestChanceOf(t *testing.T) {
	number := func(x float64) Judged { return Judged{References: []string{"10"}, Answer: model.Answer{Number: &x}} }
	for name, test := range map[string]struct {
		model, baseline []Judged
		want            float64
	}{
		"labels":  {[]Judged{{Edits: 1}, {}, {}, {}, {Edits: 1}}, []Judged{{Edits: 1}, {Edits: 1}, {Edits: 1}, {Edits: 1}, {Edits: 1}}, 0.25},
		"tags":    {[]Judged{{Edits: 2}, {Edits: 5}}, []Judged{{Edits: 3}, {Edits: 1}}, 1},
		"numbers": {[]Judged{number(9), number(12), number(10)}, []Judged{number(12), number(7), number(10)}, 0.5},
	} {
		m := &Report{kind: kindOf(data.KindRegression), Judged: test.model}
		if name != "numbers" {
			m.kind = kindOf(data.KindClassification)
		}
		if got := m.kind.chance(m, &Report{Judged: test.baseline}); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	correlated := func(n int, noise float64) *Report {
		r, random := &Report{kind: kindOf(data.KindEmbed)}, rand.New(rand.NewPCG(1, 2))
		for i := range n {
			x := float64(i)/float64(n) + noise*random.Float64()
			r.Judged = append(r.Judged, number(x))
			r.Numbers.Add(x, float64(i))
		}
		return r
	}
	for n, want := range map[int]bool{12: true, 1000: false} {
		if got := (texts{}).chance(correlated(n, 1), correlated(n, 2)); got > 0.05 != want {
			t.Errorf("%d correlated rows: the probability is %v", n, got)
		}
	}
	if got := (texts{}).chance(correlated(12, 0), correlated(12, 0)); got != 1 {
		t.Errorf("equal reports have the probability %v", got)
	}
}
