package task

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/train"
)

// OnCheck must be called for every check and, when a run is resumed, again for the earlier checks. The other functions
// of a Call must be called too.
func TestOnCheck(t *testing.T) {
	t.Parallel()
	c, dir := small(t, "copy"), t.TempDir()
	c.Training.MaxEpochs = 3
	var checks [][2]int // number of epochs in the history, and index of the best
	call := func(steps int) *Summary {
		onCheck := func(history []train.Check, best bool) (bool, error) {
			checks = append(checks, [2]int{len(history), c.Training.Stopping.BestOf(history)})
			if kept := checks[len(checks)-1][1] == len(history)-1; best != kept {
				t.Errorf("OnCheck for check %d: best is %t, want %t", len(history), best, kept)
			}
			if last := history[len(history)-1]; last.Step != 10*len(history) || !last.Validated {
				t.Errorf("check %d of the history is %v, want a validated check after step %d", len(history), last, 10*len(history))
			}
			return false, nil
		}
		told, saves := 0, 0
		s := run(t, made(t, c), dir, train.Call{
			MaxSteps: steps, OnCheck: onCheck, OnMemory: func(int) { told++ }, BeforeSave: func() error { saves++; return nil },
		})
		if told != 1 || saves == 0 {
			t.Errorf("OnMemory was called %d times, want 1; BeforeSave %d times, want at least 1", told, saves)
		}
		return s
	}
	if call(15); !slices.Equal(checks, [][2]int{{1, 0}}) {
		t.Errorf("after an epoch and a half, the checks are %v, want one", checks)
	}
	checks = nil
	s := call(0)
	if n := len(checks); n != 3 || checks[0] != [2]int{1, 0} || checks[2] != [2]int{3, s.BestEpoch} {
		t.Errorf("after resuming, the checks are %v, want three, the last with epoch %d as the best", checks, s.BestEpoch)
	}
}
