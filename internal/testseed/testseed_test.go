package testseed

import "testing"

func TestCases(t *testing.T) {
	defer func(old int) { *times = old }(*times)
	for _, tc := range [][3]int{{1, 10, 3}, {5, 50, 13}} { // -cases, number of cases, number with -short
		*times = tc[0]
		want := tc[1]
		if testing.Short() {
			want = tc[2]
		}
		if n := Cases(10); n != want {
			t.Errorf("%d cases, want %d", n, want)
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
