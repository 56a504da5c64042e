package task

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/train"
)

func TestReadRun(t *testing.T) {
	c := small(t, "copy")
	c.Training.Epochs = 4
	dir := filepath.Join(t.TempDir(), "run")
	task := made(t, c)
	task.MaxSteps = 1
	if _, err := task.Train(t.Context(), dir, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRun(dir); !errors.Is(err, ErrNoHistory) {
		t.Errorf("before the first check: got %v", err)
	}
	task = made(t, c)
	task.MaxSteps = c.Training.Steps + c.Training.Steps/2
	if _, err := task.Train(t.Context(), dir, nil, nil); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRun(dir)
	if err != nil || r.Summary != nil || len(r.History) != 1 || r.Best != 0 || len(r.Seconds) != 1 || r.Seconds[0] <= 0 {
		t.Errorf("after one epoch: %+v, %v", r, err)
	}
	first := r.Seconds
	s, err := made(t, c).Train(t.Context(), dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err = ReadRun(dir)
	if err != nil || r.Summary == nil || r.Summary.Because != s.Because || len(r.History) != 4 || r.History[r.Best].Epoch != s.BestEpoch || r.Config.Training.Epochs != 4 {
		t.Fatalf("after all: %+v, %v", r, err)
	}
	if len(r.Seconds) != 4 || r.Seconds[0] != first[0] || slices.Min(r.Seconds) <= 0 || slices.Max(r.Seconds) > s.Seconds+1 {
		t.Errorf("steps took %v s, want those of the first epoch to be %v still", r.Seconds, first)
	}
	if times, err := os.ReadFile(filepath.Join(dir, TimesFile)); err != nil || strings.Count(string(times), "\n") != 4 {
		t.Errorf("%s is %q, %v, want a line a check", TimesFile, times, err)
	}
	for content, want := range map[string]string{"no JSON": TimesFile, fmt.Sprintf("{\"step\":%d,\"seconds_per_step\":2}\n{\"st", r.History[1].Step): ""} {
		for _, file := range []string{TimesFile, ReportFile} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if cut, err := ReadRun(dir); want == "" && (err != nil || !slices.Equal(cut.Seconds, []float64{0, 2, 0, 0})) {
			t.Errorf("times whose last line is cut: got %+v, %v", cut, err)
		} else if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("times that are no JSON: got %v", err)
		}
	}
	if _, err := made(t, c).Train(t.Context(), dir, nil, nil); !errors.Is(err, ErrFinished) {
		t.Errorf("what no other run shares was changed: got %v, want the run to be finished still", err)
	}
	if err := os.Remove(filepath.Join(dir, TimesFile)); err != nil {
		t.Fatal(err)
	}
	if r, err := ReadRun(dir); err != nil || slices.Max(r.Seconds) != 0 || len(r.Seconds) != 4 {
		t.Errorf("without times: %+v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(dir, HistoryFile), []byte("{\"epoch\":0}\n{\"epo"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRun(dir); err == nil || !strings.Contains(err.Error(), HistoryFile+" can't be read, or was changed: check 2: ") {
		t.Errorf("a history that is half a line: got %v", err)
	}
}

// The check whose weights are kept is found again from the history alone.
func TestKeptCheck(t *testing.T) {
	history := []train.Check{
		{TrainLoss: 3, ValLoss: 3, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.1}},
		{TrainLoss: 2, ValLoss: 1, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.3}},
		{TrainLoss: 1, ValLoss: 2, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.2}},
		{TrainLoss: 1, ValLoss: 1, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.4}},
	}
	without := []train.Check{{TrainLoss: 3}, {TrainLoss: 1}, {TrainLoss: 2}}
	for name, c := range map[string]struct {
		stopping train.Stopping
		history  []train.Check
		want     int
	}{
		"validation loss": {train.Stopping{}, history, 1},
		"training loss":   {train.Stopping{Monitor: "train_loss"}, history, 2},
		"accuracy":        {train.Stopping{Monitor: "val_accuracy", Mode: "max"}, history, 3},
		"last":            {train.Stopping{KeepLast: true}, history, 3},
		"delta":           {train.Stopping{MinDelta: 5}, history, 0},
		"none counts":     {train.Stopping{FirstEpoch: 9}, history, 3},
		"no validation":   {train.Stopping{}, without, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kept(c.stopping, c.history); got != c.want {
				t.Errorf("check %d, want %d", got, c.want)
			}
		})
	}
}
