package kernel

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// parallelFor calls do for each of n parts, and wakes helpers.
func parallelFor(cores, n int, do func(i int)) { parallelRun(cores, n, parallelFunc(do), true) }

func TestParallel(t *testing.T) {
	for _, cores := range []int{1, 2, 3, 8} {
		for _, n := range []int{0, 1, 2, 7, 1000} {
			calls := make([]atomic.Int32, n)
			parallelFor(cores, n, func(i int) { calls[i].Add(1) })
			for i := range calls {
				if got := calls[i].Load(); got != 1 {
					t.Errorf("%d cores: part %d of %d was run %d times, want once", cores, i, n, got)
				}
			}
		}
	}
}

// TestParallelNested checks that nested calls from many goroutines finish.
func TestParallelNested(t *testing.T) {
	var total atomic.Int64
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 20 {
				parallelFor(4, 5, func(int) {
					parallelFor(4, 6, func(int) {
						parallelFor(4, 2, func(int) { total.Add(1) })
					})
				})
			}
		})
	}
	wg.Wait()
	if got := total.Load(); got != 10*20*5*6*2 {
		t.Errorf("%d calls, want %d", got, 10*20*5*6*2)
	}
}

// TestParallelWakes checks that sleeping helpers wake and help again.
func TestParallelWakes(t *testing.T) {
	helped := false
	for try := 0; try < 100 && !helped; try++ {
		time.Sleep(time.Millisecond)
		met := make(chan struct{})
		parallelFor(4, 2, func(int) { // each part waits some time for the other part
			select {
			case met <- struct{}{}:
			case <-met:
				helped = true
			case <-time.After(50 * time.Millisecond):
			}
		})
	}
	if !helped {
		t.Error("no helper ever came")
	}
}

func TestParallelPanics(t *testing.T) {
	var calls atomic.Int32
	func() {
		defer func() {
			if got := recover(); got != "five" {
				t.Errorf("recovered %v, want five", got)
			}
		}()
		parallelFor(4, 20, func(i int) {
			calls.Add(1)
			if i == 5 {
				panic("five")
			}
		})
	}()
	if got := calls.Load(); got != 20 {
		t.Errorf("%d calls, want 20", got)
	}
	parallelFor(4, 4, func(int) {}) // parallelRun still works
}
