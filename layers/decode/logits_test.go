package decode

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTop compares top with a full sort, also for equal logits, −Inf and a least logit.
func TestTop(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		logits := make([]float64, 1+rng.IntN(100))
		for i := range logits {
			if logits[i] = float64(rng.IntN(9)); logits[i] == 0 {
				logits[i] = math.Inf(-1)
			}
		}
		var want []int
		least := float64(rng.IntN(4))
		if least == 0 {
			least = math.Inf(-1)
		}
		for id, x := range logits {
			if !math.IsInf(x, -1) && x >= least {
				want = append(want, id)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
		n := 1 + rng.IntN(110)>>rng.IntN(6)
		want = want[:min(n, len(want))]
		if got := top(logits, n, least); !slices.Equal(got, want) {
			t.Fatalf("the %d highest logits of %v have the ids %v, want %v", n, logits, got, want)
		}
	}
}
