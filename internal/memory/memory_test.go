package memory

import (
	"fmt"
	"math"
	"runtime/debug"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestProduct(t *testing.T) {
	for _, tc := range []struct {
		sizes []int
		want  int
	}{
		{nil, 1},
		{[]int{3, 5, 7}, 105},
		{[]int{math.MaxInt, 1}, math.MaxInt},
		{[]int{math.MaxInt/2 + 1, 2}, math.MaxInt},
		{[]int{1 << (word / 2), 1 << (word / 2)}, math.MaxInt}, // would wrap around to 0
		{[]int{1 << (word - 2), 4, 3}, math.MaxInt},
		{[]int{math.MaxInt, math.MaxInt, math.MaxInt}, math.MaxInt},
		{[]int{math.MaxInt, math.MaxInt, 0}, 0},
		{[]int{0, math.MaxInt, math.MaxInt}, 0},
	} {
		if got := Product(tc.sizes...); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.sizes, got, tc.want)
		}
	}
}

const word = 32 << (^uint(0) >> 63)

func TestSpare(t *testing.T) {
	if !Spare(0) || Spare(Limit()/2) || Spare(math.MaxInt/2) {
		t.Errorf("Spare(0, half of the limit, far too much) = %t, %t, %t, want true, false, false", Spare(0), Spare(Limit()/2), Spare(math.MaxInt/2))
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 10))
	if Spare(0) {
		t.Error("the heap is larger than GOMEMLIMIT, but Spare(0) = true")
	}
}

func TestCheck(t *testing.T) {
	limit := Limit()
	if limit < 1<<26 {
		t.Errorf("Limit() = %d bytes, want 64 MiB or more", limit)
	}
	for _, bytes := range [][]int{nil, {0}, {limit}, {limit / 2, limit / 2}} {
		must.Do(t, Check(bytes...))
	}
	for _, bytes := range [][]int{{limit + 1}, {limit, 1}, {math.MaxInt}, {math.MaxInt, math.MaxInt}, {1, math.MaxInt, 1}} {
		must.Fail(t, Check(bytes...), fmt.Sprintf("but there is only %s:", LimitText()))
	}
}
