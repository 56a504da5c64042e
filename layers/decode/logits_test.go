package decode

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTop compares top with a full sort, also for equal logits and −Inf.
func TestTop(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		logits := make([]float64, 1+rng.IntN(40))
		for i := range logits {
			if logits[i] = float64(rng.IntN(9)); logits[i] == 0 {
				logits[i] = math.Inf(-1)
			}
		}
		n := 1 + rng.IntN(50)
		var want []int
		for all := rank(logits); len(want) < n; {
			id, ok := all.next()
			if !ok {
				break
			}
			want = append(want, id)
		}
		if got := top(logits, n); !slices.Equal(got, want) {
			t.Fatalf("the %d highest logits of %v have the ids %v, want %v", n, logits, got, want)
		}
	}
}
