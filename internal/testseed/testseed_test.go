package testseed

import "testing"

func TestOf(t *testing.T) {
	defer func(old uint64) { *seed = old }(*seed)
	*seed = 7
	if a, b := Of(t), Of(t); a != 7 || b != 7 {
		t.Errorf("the seeds are %d and %d, want 7", a, b)
	}
	*seed = 0
	if a, b := Of(t), Of(t); a == b || a == 0 || b == 0 {
		t.Errorf("the new seeds are %d and %d", a, b)
	}
}
