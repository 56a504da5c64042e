package task

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/train"
)

// OnCheck gets every check, also those from before where a run goes on. Other functions of a Call are called too.
func TestOnCheck(t *testing.T) {
	t.Parallel()
	c, dir := small(t, "copy"), t.TempDir()
	c.Training.MaxEpochs = 3
	var checks [][2]int // epochs in the history, and the best of them
	call := func(steps int) *Summary {
		onCheck := func(history []train.Check, best bool) (bool, error) {
			checks = append(checks, [2]int{len(history), c.Training.Stopping.BestOf(history)})
			if kept := checks[len(checks)-1][1] == len(history)-1; best != kept {
				t.Errorf("check %d is the best: %t, want %t", len(history), best, kept)
			}
			if last := history[len(history)-1]; last.Step != 10*len(history) || !last.Validated {
				t.Errorf("check %d of the history is %v", len(history), last)
			}
			return false, nil
		}
		told, saves := 0, 0
		s, err := made(t, c).Train(t.Context(), dir, train.Call{
			MaxSteps: steps, OnCheck: onCheck, OnMemory: func(int) { told++ }, BeforeSave: func() error { saves++; return nil },
		})
		if told != 1 || saves == 0 {
			t.Errorf("OnMemory was called %d times, BeforeSave %d times", told, saves)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if call(15); !slices.Equal(checks, [][2]int{{1, 0}}) {
		t.Errorf("checks of an epoch and a half are %v, want one", checks)
	}
	checks = nil
	s := call(0)
	if n := len(checks); n != 3 || checks[0] != [2]int{1, 0} || checks[2] != [2]int{3, s.BestEpoch} {
		t.Errorf("checks of the rest are %v, want the first again and two more, with epoch %d for the best in the end", checks, s.BestEpoch)
	}
}
