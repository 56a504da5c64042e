package testseed

import (
	"fmt"
	"math"
	"testing"
)

func TestCases(t *testing.T) {
	defer func(old int) { *times = old }(*times)
	for _, proofs := range []string{"", "1"} {
		t.Setenv("HEED_PROOFS", proofs)
		*times = 5
		want, part := 50, 1.0
		switch {
		case testing.Short() && !Race:
			want, part = 8, 1.0/6
		case proofs == "":
			want, part = 25, 1.0/2
		}
		if n := Cases(10); n != want {
			t.Errorf("HEED_PROOFS=%s: %d cases, want %d", proofs, n, want)
		}
		if *times = 1; Cases(1) != 1 {
			t.Errorf("HEED_PROOFS=%s: %d cases of one, want 1", proofs, Cases(1))
		}
		kept := 0
		for i := range 1000 {
			if !LeftOut(fmt.Sprintf("case %d", i)) {
				kept++
			}
		}
		if d := math.Abs(float64(kept) - 1000*part); d > 50 {
			t.Errorf("HEED_PROOFS=%s: %d of 1000 cases are kept, want about %.0f", proofs, kept, 1000*part)
		}
	}
}

func TestOf(t *testing.T) {
	defer func(old uint64) { *seed = old }(*seed)
	*seed = 7
	if a, b := Of(t), Of(t); a != 7 || b != 7 {
		t.Errorf("the seeds are %d and %d, want 7", a, b)
	}
	*seed = 0
	if a, b := Of(t), Of(t); a == b || a == 0 || b == 0 {
		t.Errorf("the new seeds are %d and %d, want two different numbers above 0", a, b)
	}
}
