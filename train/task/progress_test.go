package task

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/train"
)

func TestBestOf(t *testing.T) {
	history := []train.Check{
		{TrainLoss: 3, ValLoss: 5, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.2}},
		{TrainLoss: 2, ValLoss: 4, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.6}},
		{TrainLoss: 1, ValLoss: 6, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.5}},
	}
	unvalidated := []train.Check{{TrainLoss: 3}, {TrainLoss: 2}, {TrainLoss: 1}}
	for _, c := range []struct {
		name    string
		history []train.Check
		train.Stopping
		want []int // after each check
	}{
		{"the validation loss", history, train.Stopping{}, []int{0, 1, 1}},
		{"the validation loss by its name", history, train.Stopping{Monitor: "val_loss"}, []int{0, 1, 1}},
		{"the training loss", history, train.Stopping{Monitor: "train_loss"}, []int{0, 1, 2}},
		{"without validation", unvalidated, train.Stopping{}, []int{0, 1, 2}},
		{"a metric", history, train.Stopping{Monitor: "val_accuracy", Mode: "max"}, []int{0, 1, 1}},
		{"the least of a metric", history, train.Stopping{Monitor: "val_accuracy", Mode: "min"}, []int{0, 0, 0}},
		{"whatever is kept", history, train.Stopping{KeepLast: true}, []int{0, 1, 1}},
		{"none at first", history, train.Stopping{FirstEpoch: 2}, []int{-1, -1, 2}},
	} {
		stopping := train.EarlyStopping{Stopping: c.Stopping}
		var got []int
		for i := range c.history {
			got = append(got, bestOf(c.history[:i+1], &stopping))
		}
		all := bestOf(c.history, &train.EarlyStopping{Stopping: c.Stopping}) // as where a run goes on
		if !slices.Equal(got, c.want) || all != c.want[2] {
			t.Errorf("%s: the best are %v, and %d of all, want %v", c.name, got, all, c.want)
		}
	}
}

// OnCheck gets every check, also those from before where a run goes on.
func TestOnCheck(t *testing.T) {
	t.Parallel()
	c, dir := small(t, "copy"), t.TempDir()
	c.Training.MaxEpochs = 3
	var checks [][2]int // epochs in the history, and the best of them
	call := func(steps int) *Summary {
		task := made(t, c)
		task.MaxSteps = steps
		task.OnCheck = func(history []train.Check, best int) {
			checks = append(checks, [2]int{len(history), best})
			if last := history[len(history)-1]; last.Step != 10*len(history) || !last.Validated {
				t.Errorf("check %d of the history is %v", len(history), last)
			}
		}
		s, err := task.Train(t.Context(), dir, nil, nil)
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
