package judge

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/data"
)

// compare ranks the positive of each query among all positives and negatives, without the query's other positives.
func TestCompare(t *testing.T) {
	r := &Report{kind: kindOf(data.KindEmbed)}
	r.gather([]data.Example{{Source: "a", Answer: "b\tc"}, {Source: "a", Answer: "d\ta"}, {Source: "b", Answer: "e\te"}}, false)
	c := newComparison(r.Judged)
	if !slices.Equal(c.texts, []string{"a", "b", "c", "d", "e"}) || c.scores != nil {
		t.Fatalf("the texts are %q, with scores %v", c.texts, c.scores)
	}
	near := map[int][]float32{0: {1, 0.5, 0.5, 0.9, 0.1}, 1: {0.2, 1, 0.3, 0.4, 0.35}}
	r.rank(c, func(some []int, out []float32) {
		for i, text := range some {
			copy(out[i*5:], near[text])
		}
	})
	for i, want := range []struct {
		before int
		answer string
	}{{1, "b"}, {0, "d"}, {1, "d"}} { // c is as near to a as b is; d is nearer to b than e is
		if j := r.Judged[i]; j.Edits != want.before || j.Answer.Text != want.answer || j.Right != (want.before == 0) {
			t.Errorf("row %d: %d texts come before the right one and the first is %q, want %d and %q", i, j.Edits, j.Answer.Text, want.before, want.answer)
		}
	}
	if got := r.Ranking.MRR(); math.Abs(got-2.0/3) > 1e-12 {
		t.Errorf("the MRR is %v, want 2/3", got)
	}
}

// The values are those of scikit-learn's TfidfVectorizer.
func TestTFIDF(t *testing.T) {
	out := make([]float32, 6)
	tfidf([]string{"The cat sees the dog", "a dog runs", "birds sing"})([]int{0, 1}, out)
	for i, want := range []float64{1, 0.1404406, 0, 0.1404406, 1, 0} {
		if math.Abs(float64(out[i])-want) > 1e-6 {
			t.Errorf("similarity %d is %v, want %v", i, out[i], want)
		}
	}
}
