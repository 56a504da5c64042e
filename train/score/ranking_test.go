package score

import (
	"math"
	"testing"
)

// If one answer is right, scikit-learn's label_ranking_average_precision_score is the MRR. With these ranks, it is
// 0.708333333333.
func TestRanking(t *testing.T) {
	var r Ranking
	if x := r.MRR(); x == x {
		t.Errorf("without ranks, the MRR is %v, want NaN", x)
	}
	for _, rank := range []int{1, 2, 1, 3} {
		r.Add(rank)
	}
	if got := r.MRR(); math.Abs(got-0.708333333333) > 1e-12 {
		t.Errorf("the MRR is %v, want 0.708333333333", got)
	}
	for n, want := range []float64{0, 0.5, 0.75, 1, 1} {
		if got := r.Recall(n); got != want {
			t.Errorf("the recall among the first %d is %v, want %v", n, got, want)
		}
	}
}
